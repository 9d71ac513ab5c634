#include "tools/bench/graph/bench_topology.h"
#include "tools/bench/harness/verb_bench.h"
#include "tools/cli/topology_flags.h"

namespace rhizome {
namespace {

struct TopologyFlags {
  BenchTopologyOptions options;
  std::string store;
  std::string other;
  std::string dir = ".";
};

Result<Answer> RunTopology(const TopologyFlags& flags, Session& session) {
  BenchTopologyOptions options = OptionsAt(flags);
  if (!flags.other.empty()) options.other = flags.other;
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchTopology(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddTopologyBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<TopologyFlags>();
  BenchTopologyOptions& options = flags->options;
  CLI::App* verb = AddBench(
      bench, root, session,
      "rhizome bench topology --scale 12 --rounds 1 --seconds 0.2 --batches 2", flags, RunTopology);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  AddGraphFlags(*verb, options.graph);
  verb->add_option("--other", flags->other,
                   "Store of the same graph with the other codec, to compare with")
      ->type_name("STORE");
  AddQueueFlags(*verb, options.depth, options.maker, "lists");
  AddSize(*verb, kNeighborCacheFlag, options.cache_bytes, "Size of the neighbour cache")
      ->default_str("64M");
  verb->add_option("--batches", options.batches, "Minibatches per sampling round")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  AddTurnFlags(*verb, options.rounds, options.seconds, "one round of random reads");
}

}  // namespace rhizome
