#include "tools/bench/gnn/bench_train.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

struct BenchTrainFlags {
  BenchTrainOptions options;
  std::string store;
  std::string dir = ".";
};

TrainStudy ParseStudy(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals + 1 == text.size())
    throw CLI::ValidationError("--study", "'" + text + "' is not NAME=V,V,...");
  return {text.substr(0, equals), CLI::detail::split(text.substr(equals + 1), ',')};
}

Result<Answer> RunBenchTrain(const BenchTrainFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchTrain(OptionsAt(flags), session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddTrainBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<BenchTrainFlags>();
  BenchTrainOptions& options = flags->options;
  CLI::App* verb =
      AddBench(bench, root, session,
               "rhizome bench train --scale 13 --dim 64 --hidden 16 --steps 8 --limit 600M", flags,
               RunBenchTrain);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  AddGraphFlags(*verb, options.graph);
  AddSize(*verb, "--limit", options.limit_bytes,
          "Memory of a contestant, page cache included; set by a control group, as root")
      ->default_str("1536M");
  verb->add_option("--dim", options.graph.dim, "Columns of the features that are made")
      ->check(CLI::Range(1U, 1U << 20))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--layers", options.layers, "Layers; as many as hops")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--hidden", options.hidden, "Width of the hidden layers")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--steps", options.steps, "Minibatches of an epoch at most; 0: all")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--policies", options.policies, "What the pool keeps: one contestant each")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("belady,cost,s3fifo");
  verb->add_option("--mapped-store", options.mapped_store,
                   "The same graph in another order: rows mapped out of it are a contestant too")
      ->type_name("S.rz");
  verb->add_option("--rounds", options.rounds, "Turns of each contestant; the median counts")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--topology", options.topology, "Where neighbour lists are; default: memory")
      ->check(CLI::IsMember({"memory", "direct"}))
      ->type_name("memory|direct");
  verb->add_option_function<std::vector<std::string>>(
          "--study",
          [&options](const std::vector<std::string>& given) {
            for (const std::string& one : given) options.studies.push_back(ParseStudy(one));
          },
          "Instead of the contest, its first policy under each value of superbatch, memory, "
          "batch-size, or features (arrays of --store); several: --study A=1,2 --study B=3,4")
      ->type_name("NAME=V,V,...");
  verb->add_option("--plot", options.plot,
                   "Draw where the time goes (gnuplot); of a study F-NAME.svg")
      ->type_name("F.svg|F.png");
}

}  // namespace rhizome
