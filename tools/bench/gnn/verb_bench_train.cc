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
          "Memory limit of a competitor, including the page cache; set with a control group, which "
          "needs root")
      ->default_str("1536M");
  verb->add_option("--dim", options.graph.dim, "Width of the generated features")
      ->check(CLI::Range(1U, 1U << 20))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--layers", options.layers, "Layers, one per hop")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--hidden", options.hidden, "Width of the hidden layers")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--steps", options.steps, "Maximum number of minibatches per epoch; 0: all")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--policies", options.policies, "Cache policies, each a competitor")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("belady,cost,s3fifo");
  verb->add_option("--mapped-store", options.mapped_store,
                   "Store of the same graph in another order, whose memory-mapped rows are another "
                   "competitor")
      ->type_name("S.rz");
  verb->add_option(
          "--rounds", options.rounds,
          "Number of rounds, in which every competitor is measured; the median is reported")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--topology", options.topology, "Location of neighbour lists; default: memory")
      ->check(CLI::IsMember({"memory", "direct"}))
      ->type_name("memory|direct");
  verb->add_option_function<std::vector<std::string>>(
          "--study",
          [&options](const std::vector<std::string>& given) {
            for (const std::string& one : given) options.studies.push_back(ParseStudy(one));
          },
          "Instead of the comparison, measure the first policy with each value of superbatch, "
          "memory, batch-size, or features (arrays of --store); may be repeated")
      ->type_name("NAME=V,V,...");
  verb->add_option("--plot", options.plot,
                   "Draw the time of each stage with gnuplot; for a study to F-NAME.svg")
      ->type_name("F.svg|F.png");
}

}  // namespace rhizome
