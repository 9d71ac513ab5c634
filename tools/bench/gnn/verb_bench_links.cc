#include "tools/bench/gnn/bench_links.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

struct LinksFlags {
  BenchLinksOptions options;
  std::string store;
  std::string dir = ".";
};

Result<Answer> RunBenchLinks(const LinksFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchLinks(OptionsAt(flags), session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddLinksBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<LinksFlags>();
  BenchLinksOptions& options = flags->options;
  options.graph.relations = 10;
  options.graph.dim = 128;
  options.graph.fanouts = {15, 10};
  CLI::App* verb = AddBench(bench, root, session,
                            "rhizome bench links --scale 8 --hidden 16 --batch-size 50 --batches 2",
                            flags, RunBenchLinks);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  AddGraphFlags(*verb, options.graph);
  verb->get_option("--fanout")->default_str("15,10");
  verb->add_option("--relations", options.graph.relations,
                   "Edge types of the generated graph, drawn at random; 0: no types")
      ->check(CLI::Range(0, 32768))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--dim", options.graph.dim, "Width of the generated features")
      ->check(CLI::Range(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--features", options.features, "Array of --store with the input rows")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--model", options.model, "Kind of model; 'rhizome models' lists them")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--hidden", options.hidden, "Width of the layers and of the embedding")
      ->check(CLI::Range(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--batches", options.batches,
                   "Batches of vertices, and of edges, that are computed samplewise")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  AddSize(*verb, "--memory", options.memory_bytes,
          "Memory limit of infer and of score beyond their size at start; half of it is the "
          "samplewise cache of rows. Default: no limit");
}

}  // namespace rhizome
