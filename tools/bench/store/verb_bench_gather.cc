#include "tools/bench/harness/verb_bench.h"
#include "tools/bench/store/bench_gather.h"

namespace rhizome {
namespace {

struct GatherFlags {
  BenchGatherOptions options;
  std::string store;
  std::string dir = ".";
  bool buffered = false;
};

Result<Answer> RunGather(const GatherFlags& flags, Session& session) {
  BenchGatherOptions options = flags.options;
  if (!flags.store.empty()) options.store = flags.store;
  if (options.store && options.array.empty()) {
    return Fail(Status::InvalidArgument("--store needs --array, the array to read"));
  }
  options.dir = flags.dir;
  options.direct = !flags.buffered;
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchGather(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddGatherBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<GatherFlags>();
  BenchGatherOptions& options = flags->options;
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench gather --bytes 64M --rounds 1 --seconds 0.2",
               flags, RunGather);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  verb->add_option("--array", options.array, "Array of --store with layout row")->type_name("NAME");
  AddSize(*verb, "--bytes", options.bytes, "Size of the temporary array")->default_str("4G");
  AddSize(*verb, "--row-bytes", options.row_bytes, "Bytes per row; a multiple of 4")
      ->default_str("1024");
  AddQueueFlags(*verb, options.depth, options.maker, "rows");
  verb->add_flag("--buffered", flags->buffered,
                 "Read through the page cache instead of with O_DIRECT");
  AddTurnFlags(*verb, options.rounds, options.seconds, "one measurement");
  verb->add_option("--seed", options.seed, "Random seed of the rows to read")
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace rhizome
