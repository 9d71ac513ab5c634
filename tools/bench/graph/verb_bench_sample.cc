#include "tools/bench/graph/bench_sample.h"
#include "tools/bench/harness/verb_bench.h"
#include "tools/cli/cli.h"

namespace rhizome {
namespace {

struct BenchSampleFlags {
  BenchSampleOptions options;
  std::string store;
  std::string dir = ".";
  std::string vertex_parts;
};

Result<Answer> RunBenchSample(const BenchSampleFlags& flags, Session& session) {
  BenchSampleOptions options = OptionsAt(flags);
  if (!flags.vertex_parts.empty()) {
    options.vertex_parts = flags.vertex_parts;
    options.balance = true;
  }
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchSample(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddSampleBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<BenchSampleFlags>();
  BenchSampleOptions& options = flags->options;
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench sample --scale 12 --batches 4 --rounds 2",
               flags, RunBenchSample);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  AddGraphFlags(*verb, options.graph);
  verb->add_option("--batches", options.batches, "Minibatches per round")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--rounds", options.rounds, "Number of rounds; the median is reported")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  AddChoice<BenchSampleKind>(*verb, "--kind", options.kind,
                             {{"uniform", BenchSampleKind::kUniform},
                              {"replace", BenchSampleKind::kReplace},
                              {"weighted", BenchSampleKind::kWeighted},
                              {"typed", BenchSampleKind::kTyped},
                              {"disjoint", BenchSampleKind::kDisjoint}},
                             "Kind of sampling; weighted needs a --store with weights");
  AddChoice<bool>(*verb, "--frontier", options.again, {{"once", false}, {"again", true}},
                  "Expand each vertex once (as in PyG) or in every hop (as in DGL)");
  verb->add_option(
          "--callers", options.callers,
          "Number of concurrent batches, each on one thread; 1: one batch on all --threads")
      ->check(CLI::Range(1U, 256U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option(
          "--reference", options.reference,
          "Edges per second of another library to compare with (tools/bench/peers/sampling.py)")
      ->type_name("X");
  verb->add_option("--delta", options.delta,
                   "Also measure with this fraction of the edges written after the compaction, "
                   "half of them deletions")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X");
  verb->add_flag(
      "--balance", options.balance,
      "Also measure the work of each partition, with evenly distributed and with skewed seeds");
  verb->add_option("--vertex-parts", flags->vertex_parts,
                   "Edge cut to compare the work with: int32, the partition of each vertex id")
      ->type_name("F.npy");
}

}  // namespace rhizome
