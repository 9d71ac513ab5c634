#pragma once

#include <memory>
#include <string>
#include <utility>

#include "bench.h"
#include "cli.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// A bench: a row of the table in tools/bench/benches.cc.
struct Bench {
  const char* name;         ///< the word after `rhizome bench`
  const char* description;  ///< one line, for `rhizome bench --help`

  /// Adds the verb to `root`. Null in rhizome-bench where the bench links libtorch: it is then in
  /// rhizome-bench-gnn.
  void (*add)(const Bench& bench, CLI::App& root, Session& session);
};

/// Adds the verb of a bench, as AddVerb does.
template <typename Flags>
CLI::App* AddBench(const Bench& bench, CLI::App& root, Session& session, const std::string& example,
                   std::shared_ptr<Flags> flags,
                   Result<Answer> (*run)(const Flags& flags, Session& session)) {
  return AddVerb(root, session, bench.name, bench.description, example, std::move(flags), run);
}

/// A benchmark's fields as they are: a line for each number, a table for a list of objects.
std::string DescribeBench(const Json& fields);

/// --store and --dir: what is measured, and where temporary files go.
void AddPlaceFlags(CLI::App& verb, std::string& store, std::string& dir);

/// A benchmark's options with what AddPlaceFlags put beside them.
template <typename Flags>
auto OptionsAt(const Flags& flags) {
  auto options = flags.options;
  if (!flags.store.empty()) options.graph.store = flags.store;
  options.graph.dir = flags.dir;
  return options;
}

/// The flags of the graph that a benchmark walks.
void AddGraphFlags(CLI::App& verb, BenchGraphOptions& graph);

/// --depth and --io: how `what` is read.
void AddQueueFlags(CLI::App& verb, std::uint32_t& depth, IoMaker& maker, const std::string& what);

/// --rounds and --seconds: how often, and how long `turn` lasts.
void AddTurnFlags(CLI::App& verb, std::uint32_t& rounds, double& seconds, const std::string& turn);

/// --dir, --scale and --edge-factor, of an R-MAT graph that the benchmark makes and removes again.
void AddMadeGraphFlags(CLI::App& verb, std::string& dir, std::uint32_t& scale,
                       std::uint32_t& edge_factor);

}  // namespace rhizome
