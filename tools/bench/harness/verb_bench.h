#pragma once

#include <memory>
#include <string>
#include <utility>

#include "rhizome/status.h"
#include "storage/io/io_queue.h"
#include "tools/bench/harness/bench.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// A row of the table of benches in tools/bench/benches.cc.
struct Bench {
  const char* name;         ///< name, as in `rhizome bench NAME`
  const char* description;  ///< one line, for `rhizome bench --help`

  /// Adds the verb to `root`. Null in rhizome-bench if the bench links libtorch; it is in
  /// rhizome-bench-gnn then.
  void (*add)(const Bench& bench, CLI::App& root, Session& session);
};

/// Adds the verb of a bench, like AddVerb.
template <typename Flags>
CLI::App* AddBench(const Bench& bench, CLI::App& root, Session& session, const std::string& example,
                   std::shared_ptr<Flags> flags,
                   Result<Answer> (*run)(const Flags& flags, Session& session)) {
  return AddVerb(root, session, bench.name, bench.description, example, std::move(flags), run);
}

/// Formats the fields of a bench: a line per number, a table per list of objects.
std::string DescribeBench(const Json& fields);

/// Adds --store, the store to measure, and --dir, the folder for temporary files.
void AddPlaceFlags(CLI::App& verb, std::string& store, std::string& dir);

/// Returns the options of a bench with the values of AddPlaceFlags filled in.
template <typename Flags>
auto OptionsAt(const Flags& flags) {
  auto options = flags.options;
  if (!flags.store.empty()) options.graph.store = flags.store;
  options.graph.dir = flags.dir;
  return options;
}

/// Adds the flags of the graph that a bench reads.
void AddGraphFlags(CLI::App& verb, BenchGraphOptions& graph);

/// Adds --depth and --io, which configure how `what` is read.
void AddQueueFlags(CLI::App& verb, std::uint32_t& depth, IoMaker& maker, const std::string& what);

/// Adds --rounds and --seconds: the number of rounds, and the duration of `turn`.
void AddTurnFlags(CLI::App& verb, std::uint32_t& rounds, double& seconds, const std::string& turn);

/// Adds --dir, --scale and --edge-factor, for an R-MAT graph that the bench generates and removes.
void AddMadeGraphFlags(CLI::App& verb, std::string& dir, std::uint32_t& scale,
                       std::uint32_t& edge_factor);

}  // namespace rhizome
