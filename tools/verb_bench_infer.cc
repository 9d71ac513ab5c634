#include <algorithm>

#include "bench_infer.h"
#include "verb_bench.h"
#include "verbs.h"

namespace rhizome {
namespace {

struct InferFlags {
  BenchInferOptions options;
  std::string store;
  std::string dir = ".";
};

Result<Answer> Run(const InferFlags& flags, Session& session) {
  BenchInferOptions options = OptionsAt(flags);
  if (options.graph.fanouts.size() != 1) {
    return Fail(Status::InvalidArgument("--fanout: a pass has one: all, or a number"));
  }
  options.fanout = options.graph.fanouts.front();
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchInfer(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddBenchInfer(CLI::App& bench, Session& session) {
  auto flags = std::make_shared<InferFlags>();
  BenchInferOptions& options = flags->options;
  options.graph.undirected = true;
  options.graph.partitions = 8;
  options.graph.fanouts = {kAllNeighbors};
  CLI::App* verb =
      AddVerb(bench, session, "infer",
              "Chunks that layerwise inference asks for under each layout, and what caches miss",
              "rhizome bench infer --scale 12 --block-rows 128", flags, Run);
  verb->add_option("--store", flags->store, "Read this store instead of an R-MAT graph")
      ->type_name("STORE");
  AddMadeGraphFlags(*verb, flags->dir, options.graph.scale, options.graph.edge_factor);
  verb->add_option("--partitions", options.graph.partitions, "Parts of the graph that is made")
      ->check(CLI::Range(std::size_t{1}, kMaxPartitions))
      ->type_name("P")
      ->capture_default_str();
  AddFanouts(*verb, options.graph.fanouts, "Neighbours that a vertex is computed from")
      ->default_str("all");
  verb->add_option("--seed", options.graph.seed, "Of the graph, and of sampled neighbours")
      ->type_name("N")
      ->capture_default_str();
  AddThreads(*verb, options.graph.threads);
  verb->add_option("--block-rows", options.block_rows, "Vertices computed at a time")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--chunk-rows", options.chunk_rows, "Rows of a chunk; 0: for 1,024 chunks")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--cache-share", options.cache_share, "Cached chunks, of a worker's")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X")
      ->capture_default_str();
}

}  // namespace rhizome
