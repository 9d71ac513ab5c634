#pragma once

/// Returns whether the program should make the deliberate mistake `name` (mutation testing). Always
/// false, except in files with such a switch that are compiled with RHIZOME_MUTANTS: for the test
/// of the harness (tests/reliability/mutants), and in the preset `mutants`, in which the oracles
/// must distinguish broken models and metrics from correct ones (tests/gnn/mutants.py).
#ifdef RHIZOME_MUTANTS
#include <cstdlib>
#include <string_view>

namespace rhizome {
inline namespace internal {
/// The active mistake. It is set before any thread starts.
inline std::string_view active_mutant = [] {
  const char* const name = std::getenv("RHIZOME_MUTANT");
  return std::string_view(name == nullptr ? "" : name);
}();
}  // namespace internal
}  // namespace rhizome
#define RHIZOME_MUTANT(name) (::rhizome::active_mutant == (name))
#else
#define RHIZOME_MUTANT(name) false
#endif
