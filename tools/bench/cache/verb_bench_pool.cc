#include "rhizome/policy.h"
#include "tools/bench/cache/bench_pool.h"
#include "tools/bench/cache/bench_pool_device.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

struct PoolFlags {
  BenchPoolOptions options;
  std::string store;
  std::string dir = ".";
  std::vector<std::string> pools;
  std::vector<std::string> policies;
  std::vector<std::string> device_pools;
  std::optional<std::uint64_t> gap_bytes;
};

Status ReadLists(const PoolFlags& flags, BenchPoolOptions& options) {
  if (!flags.pools.empty()) options.pool_bytes.clear();
  for (const std::string& text : flags.pools) {
    const std::optional<std::uint64_t> bytes = ParseSize(text);
    if (!bytes) {
      return Status::InvalidArgument("--pools: " + text + " is not a size such as 64M or 1G");
    }
    options.pool_bytes.push_back(*bytes);
  }
  if (!flags.device_pools.empty() && options.shares == BenchPoolOptions().shares)
    options.shares.clear();
  for (const std::string& text : flags.device_pools) {
    const std::optional<double> share = ParseShare(text);
    if (!share) {
      return Status::InvalidArgument("--device-pool: '" + text +
                                     "' is not a fraction of the rows, such as 5% or 0.05");
    }
    options.device_shares.push_back(*share);
  }
  if (!flags.policies.empty()) options.policies.clear();
  for (const std::string& text : flags.policies) {
    const std::optional<PolicyKind> kind = ParsePolicy(text);
    if (!kind) return Status::InvalidArgument("--policies: there is no policy '" + text + "'");
    options.policies.push_back(*kind);
  }
  return Status::Ok();
}

Result<Answer> RunBenchPool(const PoolFlags& flags, Session& session) {
  BenchPoolOptions options = OptionsAt(flags);
  RHIZOME_RETURN_IF_ERROR(ReadLists(flags, options));
  options.cost.fixed_gap_bytes = flags.gap_bytes;
  if (options.graph.dim > 0) options.array = "feat";
  if (options.graph.store && options.graph.dim > 0) {
    return Fail(Status::InvalidArgument(
        "--dim generates an array; with --store, name one of its arrays with --array"));
  }
  if (!options.array.empty() && !options.graph.store && options.graph.dim == 0) {
    return Fail(Status::InvalidArgument("--array needs --store; to generate an array, use --dim"));
  }
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchPool(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

void AddModelFlags(CLI::App& app, BenchPoolOptions& options) {
  CLI::App* const verb = &app;
  verb->add_option("--superbatch", options.superbatch, "Minibatches in the trace")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--shares", options.shares, "Sizes of the pool, as fractions of the rows")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X,...")
      ->default_str("0.01,0.05,0.1,0.2");
  verb->add_option("--superbatches", options.superbatches,
                   "Also replay the trace in superbatches of these sizes, with the prior of train "
                   "and without it")
      ->delimiter(',')
      ->type_name("N,...");
  AddChoice<BenchSeeds>(
      app, "--seeds", options.seeds,
      {{"shuffled", BenchSeeds::kShuffled}, {"grouped", BenchSeeds::kGrouped}},
      "Seeds of a minibatch: from all vertices, or from one partition after the other");
  verb->add_option("--reorder", options.reorder,
                   "Also replay the minibatches ordered by shared rows, in windows of N; 0: do not")
      ->check(CLI::Range(0U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option(
          "--trace-out", options.trace_out,
          "Write the requests of the minibatches: .npy [requests, 2], minibatch and vertex")
      ->type_name("F");
  verb->add_option("--row-bytes", options.row_bytes, "Cost model of reads: bytes per row")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seconds-per-read", options.cost.seconds_per_read,
                   "Cost model of reads: fixed time per read, in seconds")
      ->check(CLI::PositiveNumber)
      ->type_name("S")
      ->capture_default_str();
  verb->add_option("--bytes-per-second", options.cost.bytes_per_second,
                   "Cost model of reads: bandwidth")
      ->check(CLI::PositiveNumber)
      ->type_name("B")
      ->capture_default_str();
}

void AddDiskFlags(CLI::App& verb, PoolFlags& flags) {
  BenchPoolOptions& options = flags.options;
  verb.add_option("--array", options.array,
                  "Array of --store with layout row: also measure the time of reading its rows")
      ->type_name("NAME");
  verb.add_option(
          "--dim", options.graph.dim,
          "Also generate an array with this width, and measure the time of reading it; 0: none")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--pools", flags.pools, "With --array or --dim: sizes of the pool")
      ->delimiter(',')
      ->type_name("SIZE,...")
      ->default_str("384M");
  verb.add_option("--policies", flags.policies, "With --array or --dim: cache policies to measure")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("belady,cost,s3fifo,none");
  AddTurnFlags(verb, options.rounds, options.reference_seconds, "a run of the reference, fio");
  AddSize(verb, "--gap", flags.gap_bytes,
          "Maximum gap between ranges that are read together; default: from the speed of the disk; "
          "0: fewest bytes");
  verb.add_option("--step-seconds", options.step_seconds,
                  "Seconds of computing per step, to measure how much of the reading it hides")
      ->check(CLI::Range(0.0, 60.0))
      ->type_name("X")
      ->capture_default_str();
  verb.add_flag("--mapped", options.mapped, "Also read rows from memory-mapped files");
}

}  // namespace

void AddPoolBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<PoolFlags>();
  CLI::App* verb = AddBench(bench, root, session,
                            "rhizome bench pool --scale 12 --superbatch 10 --superbatches 2,5 "
                            "--dim 16 --pools 64K --rounds 1 "
                            "--seconds 0.1 --mapped",
                            flags, RunBenchPool);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  AddGraphFlags(*verb, flags->options.graph);
  AddModelFlags(*verb, flags->options);
  verb->add_option("--device-pool", flags->device_pools,
                   "Sizes of pools in device memory, as fractions of the rows: count the bytes "
                   "over the bus, without a device; replaces the default of --shares")
      ->delimiter(',')
      ->type_name("X%,...");
  AddDiskFlags(*verb, *flags);
}

}  // namespace rhizome
