#include "rhizome/policies.h"
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
      return Status::InvalidArgument("--pools: " + text + " is no size; write 64M or 1G");
    }
    options.pool_bytes.push_back(*bytes);
  }
  if (!flags.device_pools.empty() && options.shares == BenchPoolOptions().shares)
    options.shares.clear();
  for (const std::string& text : flags.device_pools) {
    const std::optional<double> share = ParseShare(text);
    if (!share) {
      return Status::InvalidArgument("--device-pool: '" + text +
                                     "' is no share of the rows; write 5% or 0.05");
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
    return Fail(Status::InvalidArgument("--dim makes an array; --store has its own: --array"));
  }
  if (!options.array.empty() && !options.graph.store && options.graph.dim == 0) {
    return Fail(Status::InvalidArgument("--array needs --store; or let --dim make one"));
  }
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchPool(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

void AddModelFlags(CLI::App& app, BenchPoolOptions& options) {
  CLI::App* const verb = &app;
  verb->add_option("--superbatch", options.superbatch, "Minibatches of the trace")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--shares", options.shares, "Sizes of the pool, as shares of the rows")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X,...")
      ->default_str("0.01,0.05,0.1,0.2");
  verb->add_option("--superbatches", options.superbatches,
                   "Also the trace in superbatches of so many minibatches, one after another: what "
                   "is read with a prior, as train has it, and without")
      ->delimiter(',')
      ->type_name("N,...");
  AddChoice<BenchSeeds>(app, "--seeds", options.seeds,
                        {{"shuffled", BenchSeeds::kShuffled}, {"grouped", BenchSeeds::kGrouped}},
                        "A minibatch's seeds: of all vertices, or of one partition in turn");
  verb->add_option("--reorder", options.reorder,
                   "Also the minibatches ordered by shared rows, in windows of N; 0: not")
      ->check(CLI::Range(0U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option(
          "--trace-out", options.trace_out,
          "Write what the minibatches ask for, .npy: [requests, 2] of minibatch and vertex")
      ->type_name("F");
  verb->add_option("--row-bytes", options.row_bytes, "Bytes of a row, as reads are timed")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seconds-per-read", options.cost.seconds_per_read,
                   "Fixed time of a read, as reads are timed")
      ->check(CLI::PositiveNumber)
      ->type_name("S")
      ->capture_default_str();
  verb->add_option("--bytes-per-second", options.cost.bytes_per_second,
                   "Bandwidth, as reads are timed")
      ->check(CLI::PositiveNumber)
      ->type_name("B")
      ->capture_default_str();
}

void AddDiskFlags(CLI::App& verb, PoolFlags& flags) {
  BenchPoolOptions& options = flags.options;
  verb.add_option("--array", options.array,
                  "Array of --store, in layout row: also read its rows, and take the time")
      ->type_name("NAME");
  verb.add_option("--dim", options.graph.dim,
                  "Columns of an array that is made for the run, and read likewise; 0: none")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--pools", flags.pools, "Sizes of the pool, on the disk")
      ->delimiter(',')
      ->type_name("SIZE,...")
      ->default_str("384M");
  verb.add_option("--policies", flags.policies, "Which take part, on the disk")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("belady,cost,s3fifo,none");
  AddTurnFlags(verb, options.rounds, options.reference_seconds, "the reference's turn");
  AddSize(verb, "--gap", flags.gap_bytes,
          "Read ranges so far apart as one; default: as the disk's constants say; 0: fewest bytes");
  verb.add_option("--step-seconds", options.step_seconds,
                  "Let each step compute so long, to see what of the gather it hides")
      ->check(CLI::Range(0.0, 60.0))
      ->type_name("X")
      ->capture_default_str();
  verb.add_flag("--mapped", options.mapped, "Also rows out of mapped files, read page by page");
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
                   "Pools on a device, as shares of the rows: count the bytes that cross the bus, "
                   "without a device, instead of the default --shares")
      ->delimiter(',')
      ->type_name("X%,...");
  AddDiskFlags(*verb, *flags);
}

}  // namespace rhizome
