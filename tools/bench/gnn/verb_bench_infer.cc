#include <algorithm>

#include "tools/bench/gnn/bench_infer.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

struct InferFlags {
  BenchInferOptions options;
  std::string store;
  std::string dir = ".";
};

Result<Answer> RunBenchInfer(const InferFlags& flags, Session& session) {
  BenchInferOptions options = OptionsAt(flags);
  if (options.graph.fanouts.size() != 1) {
    return Fail(Status::InvalidArgument("--fanout must be all or one number"));
  }
  options.fanout = options.graph.fanouts.front();
  if (!options.peer_python.empty() && options.peer_script.empty()) {
    return Fail(Status::InvalidArgument(
        "--peer-python needs --peer-script, tools/bench/peers/pyg_infer.py in the source tree"));
  }
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchInfer(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

void AddNumber(CLI::App& verb, const std::string& name, std::uint64_t& value,
               const std::string& description) {
  verb.add_option(name, value, description)->type_name("N")->capture_default_str();
}

/// Adds the flags of all parts except `counts`.
void AddContestFlags(CLI::App& verb, BenchInferOptions& options) {
  verb.add_option("--rounds", options.rounds,
                  "Number of rounds, in which every competitor is measured; the median is reported")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  AddNumber(verb, "--dim", options.graph.dim, "Width of the generated features");
  verb.add_option("--features", options.features, "Array of --store with the input rows")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option(
          "--models", options.models,
          "Kinds of models; with several, `time` only compares their inference with all neighbours")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("sage");
  verb.add_option("--layers", options.layers, "Layers of the model")
      ->check(CLI::Range(1U, 16U))
      ->type_name("N")
      ->capture_default_str();
  AddNumber(verb, "--hidden", options.hidden, "Width of the layers");
  verb.add_option("--few", options.few, "Fanout of the competitors that sample")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->type_name("N")
      ->capture_default_str();
  AddSize(verb, "--limit", options.limit_bytes,
          "Memory limit of infer beyond its size at start, including the page cache; set with a "
          "control group")
      ->default_str("512M");
  verb.add_flag("!--no-samplewise", options.samplewise, "Omit Rhizome's samplewise inference");
  verb.add_option(
          "--peer-python", options.peer_python,
          "Python with torch_geometric, and pyg-lib or torch-sparse, to include PyG in `time`")
      ->type_name("F");
  verb.add_option("--peer-script", options.peer_script, "tools/bench/peers/pyg_infer.py")
      ->type_name("F");
  verb.add_option("--peer-kernel", options.peer_kernel,
                  "PyG's NeighborLoader, or a sparse product, which supports only all neighbours")
      ->check(CLI::IsMember({"loader", "spmm"}))
      ->type_name("loader|spmm")
      ->capture_default_str();
  AddNumber(verb, "--peer-batches", options.peer_batches,
            "Maximum number of random batches per layer of PyG; 0: all");
  verb.add_option("--latency", options.latency_ms, "Latency of the remote source, in milliseconds")
      ->check(CLI::Range(0.0, 10'000.0))
      ->type_name("X")
      ->capture_default_str();
  verb.add_option("--in-flight", options.in_flight, "Concurrent chunk reads from the remote source")
      ->check(CLI::Range(1U, 1024U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--plot", options.plot, "Draw F-time, F-stages and F-codecs with gnuplot")
      ->type_name("F.svg|F.png");
}

}  // namespace

void AddInferBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<InferFlags>();
  BenchInferOptions& options = flags->options;
  options.graph.undirected = true;
  options.graph.partitions = 8;
  options.graph.fanouts = {kAllNeighbors};
  options.graph.dim = 128;
  CLI::App* verb = AddBench(bench, root, session, "rhizome bench infer --scale 12 --block-rows 128",
                            flags, RunBenchInfer);
  verb->add_option("--store", flags->store, "Read this store instead of an R-MAT graph")
      ->type_name("STORE");
  verb->add_option(
          "--parts", options.parts,
          "Parts to run. counts: chunks requested and missed; time: compared with PyG and "
          "samplewise inference, under --limit (needs root); resume: after a kill at half of the "
          "time; far: a source with latency, through caches; codecs: of the embeddings. With "
          "--store, time, resume and codecs use a temporary array rhizome-bench in it")
      ->delimiter(',')
      ->check(CLI::IsMember({"counts", "time", "resume", "far", "codecs"}))
      ->type_name("NAME,...")
      ->default_str("counts");
  AddMadeGraphFlags(*verb, flags->dir, options.graph.scale, options.graph.edge_factor);
  verb->add_option("--partitions", options.graph.partitions,
                   "Number of partitions of the generated graph")
      ->check(CLI::Range(std::size_t{1}, kMaxPartitions))
      ->type_name("P")
      ->capture_default_str();
  verb->add_option("--relations", options.graph.relations,
                   "Edge types of the generated graph, drawn at random; 0: no types")
      ->check(CLI::Range(0, 32768))
      ->type_name("N")
      ->capture_default_str();
  AddFanouts(*verb, options.graph.fanouts, "Neighbours to use per vertex")->default_str("all");
  verb->add_option("--seed", options.graph.seed,
                   "Random seed of the graph and of sampled neighbours")
      ->type_name("N")
      ->capture_default_str();
  AddThreads(*verb, options.graph.threads);
  verb->add_option("--block-rows", options.block_rows, "Vertices computed together")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--chunk-rows", options.chunk_rows, "Rows per chunk; 0: for 1,024 chunks")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--cache-share", options.cache_share,
                   "Fraction of a worker's chunks that its cache holds")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X")
      ->capture_default_str();
  AddContestFlags(*verb, options);
}

}  // namespace rhizome
