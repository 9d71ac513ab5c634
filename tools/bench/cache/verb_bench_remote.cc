#include "tools/bench/cache/bench_remote.h"
#include "tools/bench/harness/verb_bench.h"
#include "tools/cli/topology_flags.h"

namespace rhizome {
namespace {

Result<Answer> RunBenchRemote(const BenchRemoteOptions& options, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchRemote(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

void AddTrainingFlags(CLI::App& verb, RemoteTraceOptions& trace) {
  verb.add_option("--ranks", trace.ranks, "Number of ranks, at most the number of homes")
      ->check(CLI::Range(1U, 65535U))
      ->type_name("N")
      ->capture_default_str();
  AddFanouts(verb, trace.fanouts, "Neighbours to sample in each hop")->default_str("25,10");
  verb.add_option("--batch-size", trace.batch_size, "Seeds per home and step")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--epochs", trace.epochs, "Epochs")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--split", trace.split,
                  "Split array, or NAME:K, whose training vertices are the seeds")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--seed", trace.seed, "Random seed of generated graphs and of samples")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--threads", trace.threads, "Threads for sampling")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void AddRemoteBench(const Bench& bench, CLI::App& root, Session& session) {
  auto options = std::make_shared<BenchRemoteOptions>();
  options->trace.epochs = 5;
  CLI::App* verb =
      AddBench(bench, root, session,
               "rhizome bench remote --traces rmat10 --batch-size 8 --epochs 1 --fraction .25",
               options, RunBenchRemote);
  verb->add_option("--store", options->stores,
                   "Stores, whose homes determine the owners of rows and seeds")
      ->delimiter(',')
      ->type_name("STORE,...");
  verb->add_option("--traces", options->traces,
                   "Graphs to ingest for the run, with homes by an edge cut: folders of --data, or "
                   "rmatN for an R-MAT graph with 2^N vertices")
      ->delimiter(',')
      ->type_name("NAME,...");
  verb->add_option("--data", options->data, "Folder with the data sets")->type_name("DIR");
  verb->add_option("--dir", options->dir, "Folder for generated graphs")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--fraction", options->fractions, "Buffer size of a rank, relative to its halo")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("X,...")
      ->default_str(".15,.25,.35,.5");
  verb->add_option("--superbatch", options->superbatches, "Minibatches per schedule of belady")
      ->delimiter(',')
      ->check(CLI::Range(1U, 1U << 20))
      ->type_name("N,...")
      ->default_str("8,16,32");
  std::vector<std::string> names = RemotePolicies();
  names.emplace_back("all");
  verb->add_option("--policies", options->policies,
                   "Policies to compare; scored is MassiveGNN with the best of its 21 settings")
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->type_name("NAME,...")
      ->default_str("all");
  AddTrainingFlags(*verb, options->trace);
  verb->add_option("--plot", options->plot, "Also draw the curves of the first graph with gnuplot")
      ->type_name("F.svg|F.png");
}

}  // namespace rhizome
