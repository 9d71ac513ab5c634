#include <algorithm>
#include <string>

#include "tools/bench/graph/bench_partition.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

struct BenchPartitionFlags {
  BenchPartitionOptions options;
  std::string partitioners;
  std::string dir = ".";
};

Result<Answer> RunBenchPartition(const BenchPartitionFlags& flags, Session& session) {
  BenchPartitionOptions options = flags.options;
  options.dir = flags.dir;
  if (!flags.partitioners.empty()) options.partitioners.clear();
  for (const std::string& name : SplitList(flags.partitioners, ',')) {
    if (flags.partitioners.empty()) break;
    const std::optional<PartitionerKind> kind = ParsePartitioner(name);
    if (!kind) return Fail(Status::InvalidArgument("--partitioners: there is no '" + name + "'"));
    options.partitioners.push_back(*kind);
  }
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchPartition(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddPartitionBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<BenchPartitionFlags>();
  BenchPartitionOptions& options = flags->options;
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench partition --scales 10,11 --parts 2,4", flags,
               RunBenchPartition);
  verb->add_option("--scales", options.scales, "Scales N of the R-MAT graphs with 2^N vertices")
      ->delimiter(',')
      ->check(CLI::Range(1U, 32U))
      ->type_name("N,...")
      ->default_str("16,18,20");
  verb->add_option("--edge-factor", options.edge_factor, "Edges per vertex")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--parts", options.partitions, "Numbers of partitions")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{1}, kMaxPartitions))
      ->type_name("P,...")
      ->default_str("8");
  verb->add_option("--partitioners", flags->partitioners, "Which")
      ->type_name("NAME,...")
      ->default_str("refined,adadne,dne,hdrf,dbh,hash2d");
  verb->add_option("--seed", options.seed, "Random seed of the graphs and of the first run")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seeds", options.seeds,
                   "Runs of each partitioner; the run with the median replication factor is shown")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  AddThreads(*verb, options.threads);
  verb->add_option("--dir", flags->dir, "Folder for the generated edges")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--plot", options.plot, "Also draw the curves with gnuplot")
      ->type_name("F.svg|F.png");
}

}  // namespace rhizome
