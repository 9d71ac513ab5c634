#include <fmt/format.h>

#include <optional>

#include "cache/job/process_memory.h"
#include "index/graph/compaction_watch.h"
#include "index/input/timestamp.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/text.h"
#include "tools/import/gnn_flags.h"
#include "tools/import/layout_flags.h"
#include "tools/import/topology_json.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct CompactFlags {
  std::string store;
  CompactOptions options;
  std::string expire;
  std::string metrics;
  Path scratch;
  double wait = 0;
  bool watch = false;
  std::uint32_t every_seconds = 10;
  const CLI::Option* min_delta = nullptr;
};

/// The share of --auto if only --watch is given: then an edge is written about five times while the
/// graph doubles.
constexpr double kWatchedShare = 0.2;

std::string DescribeCompact(const Json& f) {
  if (!f["compacted"].get<bool>()) {
    return fmt::format("{}: nothing to do, the delta has {}\n", f["store"].get<std::string>(),
                       fmt::format("{} entries", f["delta_entries"].get<std::uint64_t>()));
  }
  return fmt::format("{}: generation {} has {} and {}; {} merged in {}\n",
                     f["store"].get<std::string>(), f["generation"].get<std::uint64_t>(),
                     fmt::format("{} vertices", f["vertices"].get<std::uint64_t>()),
                     Plural(f["edges"], "edge"), Plural(f["commits"], "commit"),
                     HumanSeconds(f["seconds"]));
}

/// Parses --expire, such as "time<1700000000" or "time<2024-05-01".
Status ParseExpire(const std::string& given, CompactOptions& options) {
  const std::size_t at = given.find('<');
  const std::string bound = at == given.npos ? "" : given.substr(at + 1);
  auto before = ParseCanonicalInteger(bound);
  if (!before) before = ParseTimestamp(bound);
  if (at == 0 || !before)
    return Status::InvalidArgument(fmt::format(
        "--expire '{}': write ATTRIBUTE<NUMBER, such as time<1700000000, or a date", given));
  options.expire_attribute = given.substr(0, at);
  options.expire_before = *before;
  return Status::Ok();
}

// Leaves the neighbour lists on disk if the memory cannot hold both these and the lists of the next
// generation.
TopologyPlace PlaceOf(const Store& store, std::uint64_t memory_bytes) {
  std::uint64_t topology = 0;
  for (const FileEntry& file : store.manifest().files)
    if (file.path.starts_with("topology/")) topology += file.size_bytes;
  return memory_bytes != 0 && topology > memory_bytes / 4 ? TopologyPlace::kDirect
                                                          : TopologyPlace::kMemory;
}

// Compacts until the user interrupts it, which is no error.
Result<Answer> Watch(const CompactFlags& flags, const CompactOptions& options, Graph& graph,
                     Session& session) {
  Json compactions = Json::array();
  const auto note = PrintsNotes(session);
  const Status ended = WatchCompaction(
      graph, options, std::chrono::seconds(flags.every_seconds), session.control,
      [&](const CompactResult& result) {
        compactions.push_back({{"generation", result.generation}, {"commits", result.commits}});
        note(fmt::format("generation {}: {} merged", result.generation,
                         Plural(result.commits, "commit")));
      });
  if (ended.code() != StatusCode::kInterrupted) return Fail(ended);
  return Answer{{{"store", flags.store}, {"compactions", std::move(compactions)}},
                [](const Json& f) {
                  return fmt::format("{}: {} made\n", f["store"].get<std::string>(),
                                     Plural(f["compactions"].size(), "generation"));
                },
                {}};
}

// Opens the store for reading, so that other processes can write at the same time. Dropping
// generations frees space, so it must also work on a full disk; only a writer may use the reserve.
Result<std::unique_ptr<Store>> OpenStore(const CompactFlags& flags,
                                         std::shared_ptr<Metrics> metrics, const Session& session) {
  const bool frees = flags.options.keep_generations || flags.options.keep_bytes;
  return Store::Open(FileSystem::Posix(), flags.store,
                     frees ? Store::Mode::kWrite : Store::Mode::kRead,
                     {.scratch = flags.scratch,
                      .frees_space = frees,
                      .wait = WaitFor(flags.wait, session),
                      .log = LogOf(session),
                      .metrics = std::move(metrics)});
}

Result<Answer> RunCompact(const CompactFlags& flags, Session& session) {
  CompactOptions options = flags.options;
  if (!flags.expire.empty()) RHIZOME_RETURN_IF_ERROR(ParseExpire(flags.expire, options));
  const std::uint64_t base_memory_bytes = StartMemory(session, options.memory_bytes);
  const Stopwatch watch;
  RHIZOME_RETURN_IF_ERROR(session.control.Report({.phase = "opening the store"}));
  RHIZOME_ASSIGN_OR_RETURN(const auto metrics, MetricsFor(flags.metrics));
  RHIZOME_ASSIGN_OR_RETURN(const auto store, OpenStore(flags, metrics, session));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto graph, Graph::Open(*store, {.topology = PlaceOf(*store, options.memory_bytes)}));
  if (flags.watch) {
    if (flags.min_delta->count() == 0) options.min_delta = kWatchedShare;
    return Watch(flags, options, *graph, session);
  }
  const std::uint64_t entries = graph->Snapshot()->delta_size().entries;
  RHIZOME_ASSIGN_OR_RETURN(const CompactResult result, graph->Compact(options, session.control));
  const double seconds = watch.seconds();
  Json fields = {{"store", flags.store}, {"compacted", result.compacted}};
  const auto made = graph->Snapshot();
  AddGenerationFields(made->info(), fields);
  RHIZOME_RETURN_IF_ERROR(AddMaxOverMin(made->store(), fields));
  fields["vertices"] = graph->live_vertex_count();
  fields["delta_entries"] = entries;
  fields["commits"] = result.commits;
  fields["seconds"] = seconds;
  fields["base_memory_bytes"] = base_memory_bytes;
  fields["peak_memory_bytes"] = PeakResidentBytes();
  fields["bad_lines"] = 0;
  fields["generation"] = result.generation;
  RHIZOME_RETURN_IF_ERROR(WriteMetrics(flags.metrics, store->metrics(), flags.store));
  return Answer{std::move(fields), DescribeCompact, {}};
}

}  // namespace

void AddCompactVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<CompactFlags>();
  CompactOptions& options = flags->options;
  CLI::App* verb = AddVerb(root, session, "compact",
                           "Merge everything written since the last generation into a new one",
                           "rhizome compact demo.rz", flags, RunCompact);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  flags->min_delta =
      verb->add_option(
              "--auto", options.min_delta,
              "Compact only if the delta has at least this fraction of the edges, such as 0.1")
          ->check(CLI::NonNegativeNumber)
          ->type_name("SHARE");
  verb->add_flag("--watch", flags->watch,
                 "Keep running, and compact whenever the delta has reached --auto, by default 0.2; "
                 "other processes can write at the same time");
  verb->add_option("--every", flags->every_seconds, "With --watch: seconds between two checks")
      ->check(CLI::Range(1U, 86400U))
      ->type_name("SECONDS")
      ->capture_default_str();
  verb->add_flag("--repartition", options.repartition,
                 "Partition all edges again; default: new edges join their neighbours");
  AddPartitioner(*verb, options.partition.kind);
  verb->add_option("--partitions", options.partition.partitions,
                   "With --repartition: number of partitions; 0: keep the number")
      ->check(CLI::Range(std::size_t{0}, kMaxPartitions))
      ->type_name("P")
      ->capture_default_str();
  verb->add_option("--seed", options.partition.seed, "With --repartition: random seed")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--expire", flags->expire,
                   "Drop edges whose attribute is below a bound, such as time<1700000000, or "
                   "time<2024-05-01 if it has times")
      ->type_name("ATTRIBUTE<NUMBER");
  verb->add_option("--keep-generations", options.keep_generations,
                   "Number of earlier generations to keep on disk from now on, for programs that "
                   "read arrays as Zarr; initially 1")
      ->type_name("N");
  AddSize(*verb, "--keep-bytes", options.keep_bytes,
          "Remove kept generations if they exceed this size, or if less than this is free on the "
          "disk; initially 64G");
  AddMetricsFile(*verb, flags->metrics);
  AddScratch(*verb, flags->scratch);
  AddWait(*verb, flags->wait)
      ->description(
          "With --keep-generations or --keep-bytes: maximum time to wait while another process has "
          "the store open for writing");
  AddThreads(*verb, options.threads);
  AddSize(*verb, "--memory", options.memory_bytes, "Memory limit; 0: none");
}

}  // namespace rhizome
