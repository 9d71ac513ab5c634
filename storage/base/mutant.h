#pragma once

#include <string_view>

/// True when the program shall make the mistake `name`. It is false everywhere but in one test
/// (tests/reliability/mutants), whose library is compiled with RHIZOME_MUTANTS and which shows that
/// the harness notices each mistake.
#ifdef RHIZOME_MUTANTS
namespace rhizome::inline internal {
inline std::string_view active_mutant;  // set before any thread begins
}
#define RHIZOME_MUTANT(name) (::rhizome::active_mutant == (name))
#else
#define RHIZOME_MUTANT(name) false
#endif
