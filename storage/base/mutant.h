#pragma once

#include <string_view>

/// Is the program to make this mistake? Never, except in one test (tests/reliability/mutants),
/// which shows that the harness notices: the library of that test is compiled with RHIZOME_MUTANTS.
#ifdef RHIZOME_MUTANTS
namespace rhizome::inline internal {
inline std::string_view active_mutant;  // set before any thread begins
}
#define RHIZOME_MUTANT(name) (::rhizome::active_mutant == (name))
#else
#define RHIZOME_MUTANT(name) false
#endif
