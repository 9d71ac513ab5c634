#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/bench/benches.h"
#include "tools/cli/program.h"
#include "tools/cli/sibling_binary.h"

// Main function of two binaries: rhizome-bench, and rhizome-bench-gnn, which also contains the
// benches that link libtorch. rhizome-bench runs rhizome-bench-gnn for those, so that other benches
// start without libtorch: loading it takes 0.3 s of processor time and 110 MB, which would be
// included in the measurements.

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

/// Returns whether `name` is a bench that exists only in the other binary.
bool IsElsewhere(const char* name) {
  for (const Bench& bench : AllBenches()) {
    if (std::strcmp(bench.name, name) == 0) return bench.add == nullptr;
  }
  return false;
}

/// Runs rhizome-bench-gnn in place of this process. Returns the exit code, only on failure.
int ExecGnnBenches(char** argv) {
  // The OpenMP threads of libtorch spin while they wait, unless this is set before it is loaded.
  setenv("OMP_WAIT_POLICY", "PASSIVE", /*overwrite=*/0);  // NOLINT(concurrency-mt-unsafe)
  const Status status = ExecSibling(kGnnBinary, argv);
  std::fprintf(stderr,
               "rhizome: unsupported: '%s' needs libtorch: install it with tools/install_deps.sh, "
               "and build %s (%s)\n",
               argv[1], kGnnBinary, status.message().c_str());
  return ExitCode(StatusCode::kUnsupported);
}

}  // namespace
}  // namespace rhizome

int main(int argc, char** argv) {
  if (argc > 1 && rhizome::IsElsewhere(argv[1])) return rhizome::ExecGnnBenches(argv);
  return rhizome::RunProgram({.name = "rhizome bench",
                              .description = "Benchmarks of Rhizome. Most compare it with the "
                                             "limits of this machine or with another program.",
                              .footer = "Example: rhizome bench pool --help",
                              .add_verbs = rhizome::AddBenches},
                             argc, argv);
}
