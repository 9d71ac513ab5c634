#pragma once

#include <string>

#include "bench.h"
#include "cli.h"

namespace rhizome {

/// A benchmark's fields as they are: a line for each number, a table for a list of objects.
std::string DescribeBench(const Json& fields);

/// Every benchmark, as a subcommand of `root`.
void AddBenches(CLI::App& root, Session& session);

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

/// `bench sample`.
void AddBenchSample(CLI::App& bench, Session& session);

/// `bench pool`.
void AddBenchPool(CLI::App& bench, Session& session);

/// `bench infer`.
void AddBenchInfer(CLI::App& bench, Session& session);

/// `bench train`.
void AddBenchTrain(CLI::App& bench, Session& session);

/// `bench partition`.
void AddBenchPartition(CLI::App& bench, Session& session);

/// `bench ingest`.
void AddBenchIngest(CLI::App& bench, Session& session);
void AddBenchVerify(CLI::App& bench, Session& session);

/// `bench lookup`.
void AddBenchLookup(CLI::App& bench, Session& session);

/// `bench write`.
void AddBenchWrite(CLI::App& bench, Session& session);

/// `bench topology`.
void AddBenchTopology(CLI::App& bench, Session& session);

/// `bench compact`.
void AddBenchCompact(CLI::App& bench, Session& session);

/// `bench aggregate` and `bench step`, which need librhizome_gnn.
void AddBenchAggregate(CLI::App& bench, Session& session);
void AddBenchStep(CLI::App& bench, Session& session);

}  // namespace rhizome
