#pragma once

/// True when the program shall make the mistake `name`. It is false everywhere but where the files
/// that hold a switch are compiled with RHIZOME_MUTANTS: for the test of the harness
/// (tests/reliability/mutants), and in the preset `mutants`, whose networks and metrics the oracles
/// must tell from sound ones (tests/gnn/mutants.py).
#ifdef RHIZOME_MUTANTS
#include <cstdlib>
#include <string_view>

namespace rhizome::inline internal {
/// The mistake that is made; it is set before any thread begins.
inline std::string_view active_mutant = [] {
  const char* const name = std::getenv("RHIZOME_MUTANT");
  return std::string_view(name == nullptr ? "" : name);
}();
}  // namespace rhizome::inline internal
#define RHIZOME_MUTANT(name) (::rhizome::active_mutant == (name))
#else
#define RHIZOME_MUTANT(name) false
#endif
