#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "benches.h"
#include "program.h"
#include "sibling.h"

// The main of two binaries: rhizome-bench, and rhizome-bench-gnn, which has all of it and the
// benches that link libtorch. rhizome-bench runs the other for those, so that the rest start
// without libtorch: loading it takes 0.3 s of a processor and 110 MB, which would be part of what
// a bench measures.

namespace rhizome {
namespace {

constexpr const char* kGnnBinary = "rhizome-bench-gnn";

void AddBenches(CLI::App& root, Session& session) {
  for (const Bench& bench : AllBenches()) {
    if (bench.add != nullptr) {
      bench.add(bench, root, session);
    } else {
      root.add_subcommand(bench.name, bench.description);
    }
  }
}

/// Is `name` a bench that this binary has only the name of?
bool IsElsewhere(const char* name) {
  for (const Bench& bench : AllBenches()) {
    if (std::strcmp(bench.name, name) == 0) return bench.add == nullptr;
  }
  return false;
}

/// Returns only where it fails, with the exit code.
int BecomeGnnBenches(char** argv) {
  // libtorch's OpenMP threads spin while they wait, unless this is set before they are loaded.
  setenv("OMP_WAIT_POLICY", "PASSIVE", /*overwrite=*/0);  // NOLINT(concurrency-mt-unsafe)
  const Status status = BecomeSibling(kGnnBinary, argv);
  std::fprintf(
      stderr,
      "rhizome: unsupported: '%s' needs libtorch: tools/install_deps.sh installs it, after "
      "which the build makes %s (%s)\n",
      argv[1], kGnnBinary, status.message().c_str());
  return ExitCode(StatusCode::kUnsupported);
}

}  // namespace
}  // namespace rhizome

int main(int argc, char** argv) {
  if (argc > 1 && rhizome::IsElsewhere(argv[1])) return rhizome::BecomeGnnBenches(argv);
  return rhizome::RunProgram({.name = "rhizome bench",
                              .description = "Measures this machine against the physical limit.",
                              .footer = "Example: rhizome bench pool --help",
                              .add_verbs = rhizome::AddBenches},
                             argc, argv);
}
