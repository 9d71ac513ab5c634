#include "tools/import/layout_flags.h"

#include <fmt/format.h>

#include <charconv>

#include "cache/job/process_memory.h"
#include "index/partition/partitioner.h"
#include "rhizome/chunk_array.h"
#include "storage/array/codec.h"
#include "tools/cli/allocator.h"
#include "tools/cli/text.h"
#include "tools/import/hold_out_flags.h"
#include "tools/import/homes_json.h"
#include "tools/import/partition_run.h"
#include "tools/import/topology_json.h"

// Flags for the layout of a new store, the start of a process with a memory limit (StartLimited),
// and the answer of `ingest` and `import` (IngestAnswer).

namespace rhizome {

void AddChunkRowsFlag(CLI::App& verb, std::uint64_t& chunk_rows) {
  verb.add_option("--chunk-rows", chunk_rows, "Rows per chunk; 0: automatic")
      ->check(CLI::Range(std::uint64_t{0}, kMaxRows))
      ->type_name("N");
}

void AddInnerRowsFlag(CLI::App& verb, std::uint64_t& inner_rows) {
  verb.add_option_function<std::string>(
          "--inner-rows",
          [&inner_rows](const std::string& given) {
            if (given == "auto") {
              inner_rows = kChosenInnerRows;
              return;
            }
            const char* const end = given.data() + given.size();
            const auto [rest, error] = std::from_chars(given.data(), end, inner_rows);
            if (error != std::errc() || rest != end || inner_rows > kMaxRows)
              throw CLI::ValidationError("--inner-rows",
                                         "'" + given + "' is neither a number of rows nor auto");
          },
          "With layout chunk: store each chunk as a shard of inner chunks of N rows, which can be "
          "read separately; auto: inner chunks of 32 to 64 KiB")
      ->type_name("N|auto");
}

namespace {

/// Returns the values that --codec accepts: with `levels`, "raw", "zstd[:1-19]", ...; otherwise
/// only the names.
std::vector<std::string> CodecWords(bool levels) {
  std::vector<std::string> words;
  for (const CodecKind codec : PublishedCodecs()) {
    words.emplace_back(CodecName(codec));
    const int highest = LevelsOf(codec).highest;
    if (levels && highest > 0) words.back() += fmt::format("[:1-{}]", highest);
  }
  return words;
}

}  // namespace

void AddCodecFlag(CLI::App& verb, Codec& codec) {
  verb.add_option_function<std::string>(
          "--codec",
          [&codec](const std::string& given) {
            const std::optional<Codec> parsed = ParseCodecFlag(given);
            if (!parsed) {
              std::vector<std::string> words = CodecWords(/*levels=*/true);
              const std::string last = words.back();
              words.pop_back();
              throw CLI::ValidationError("--codec", fmt::format("'{}' is not {} or {}", given,
                                                                fmt::join(words, ", "), last));
            }
            codec = *parsed;
          },
          "Compression of chunks, optionally with a level, such as zstd:9")
      ->type_name(fmt::format("{}", fmt::join(CodecWords(/*levels=*/false), "|")))
      ->default_str("blosc-lz4:5");
}

namespace {

void AddStoreIdFlag(CLI::App& verb, std::optional<StoreId>& store_id) {
  verb.add_option_function<std::string>(
          "--store-id",
          [&store_id](const std::string& given) {
            Result<StoreId> parsed = StoreId::Parse(given);
            if (!parsed) throw CLI::ValidationError("--store-id", parsed.error().message());
            store_id = *parsed;
          },
          "Id of the store; default: random. With a given id, equal input gives equal bytes")
      ->type_name("32 HEX DIGITS");
}

}  // namespace

void AddPartitioner(CLI::App& verb, PartitionerKind& kind) {
  std::vector<std::pair<std::string, PartitionerKind>> choices;
  for (const PartitionerKind each : Partitioners())
    choices.emplace_back(PartitionerName(each), each);
  AddChoice<PartitionerKind>(
      verb, "--partitioner", kind, std::move(choices),
      "How to partition the edges. refined: neighbour expansion within bounds on the balance of "
      "edges and vertices; adadne: the same with GLISP's expansion speeds, without these bounds");
}

void AddSpill(CLI::App& verb, IngestOptions::Spill& spill, Path& scratch) {
  AddChoice<IngestOptions::Spill>(verb, "--spill", spill,
                                  {{"auto", IngestOptions::Spill::kAuto},
                                   {"always", IngestOptions::Spill::kAlways},
                                   {"never", IngestOptions::Spill::kNever}},
                                  "Use scratch files; auto: only for what exceeds --memory");
  AddScratch(verb, scratch);
}

void AddLayoutFlags(CLI::App& verb, LayoutFlags& flags) {
  PartitionOptions& partition = flags.build.partition;
  flags.partitions_flag =
      verb.add_option("--partitions", partition.partitions, "Number of partitions of the edges")
          ->check(CLI::Range(std::size_t{1}, kMaxPartitions))
          ->type_name("P")
          ->capture_default_str();
  AddPartitioner(verb, partition.kind);
  verb.add_option("--homes", flags.homes,
                  "Assign each row a home, one of --partitions, for training over ranks. edgecut: "
                  "balanced homes with few edges between them; owner: the partition where a lookup "
                  "starts; F: file with one home per row (.npy, Zarr v3 or text)")
      ->type_name("edgecut|owner|F");
  AddChoice<OrderKind>(verb, "--order", flags.build.order,
                       {{"pds", OrderKind::kPds},
                        {"ps", OrderKind::kPs},
                        {"natural", OrderKind::kNatural},
                        {"degree", OrderKind::kDegree},
                        {"random", OrderKind::kRandom}},
                       "Order of the rows on disk");
  AddChoice<Direction>(
      verb, "--directions", flags.build.directions,
      {{"both", Direction::kBoth}, {"out", Direction::kOut}, {"in", Direction::kIn}},
      "Directions of the neighbour lists to store");
  AddChoice<TopologyCodec>(
      verb, "--topology-codec", flags.build.topology_codec,
      {{"none", TopologyCodec::kNone}, {"elias-fano", TopologyCodec::kEliasFano}},
      "Compression of neighbour lists; none is fastest");
  AddChoice<ArrayLayout>(
      verb, "--layout", flags.layout, {{"row", ArrayLayout::kRow}, {"chunk", ArrayLayout::kChunk}},
      "Layout of arrays. row: fast random reads, for training; chunk: compressed, for scans");
  AddChunkRowsFlag(verb, flags.chunk_rows);
  AddInnerRowsFlag(verb, flags.inner_rows);
  AddCodecFlag(verb, flags.codec);
  AddSize(verb, "--memory", flags.memory_bytes,
          fmt::format("Memory limit of the process beyond its size at start, at least {}; larger "
                      "data goes through scratch files",
                      HumanBytes(kMinMemoryBytes)));
  AddThreads(verb, partition.threads);
  verb.add_option("--seed", partition.seed, "Random seed of partitioner and order")
      ->type_name("N")
      ->capture_default_str();
  AddStoreIdFlag(verb, flags.store_id);
}

namespace {

std::string DescribeLayoutFlags(const Json& f) {
  const std::string store = f["store"];
  std::string text =
      fmt::format("{}: {}, {}, {} by {} in {} order\n", store,
                  f["vertices"] == 1 ? "1 vertex" : WithCommas(f["vertices"]) + " vertices",
                  Plural(f["edges"], "edge"), Plural(f["partitions"], "partition"),
                  f["partitioner"].get<std::string>(), f["order"].get<std::string>());
  text += fmt::format(
      "  replication factor {:.3f}, interior vertices {}\n"
      "  largest partition relative to the mean, to the smallest: vertices {:.3f}, {}; edges "
      "{:.3f}, {}\n",
      f["replication_factor"].get<double>(), Percent(f["interior_share"].get<double>()),
      f["vertex_balance"].get<double>(), MaxOverMinText(f["vertex_max_over_min"]),
      f["edge_balance"].get<double>(), MaxOverMinText(f["edge_max_over_min"]));
  if (!f["homes"].is_null())
    text += fmt::format("  homes: {}; {}\n", HomesText(f["homes"]), HomesQuality(f["homes"]));
  text += DescribeHeldOut(f["held_out"]);
  if (f["bad_lines"] != 0) {
    text += fmt::format("  {} skipped\n", Plural(f["bad_lines"], "malformed line"));
  }
  if (f["spilled"].get<bool>()) {
    text += fmt::format("  used {} of scratch files\n", HumanBytes(f["spilled_bytes"]));
  }
  text += fmt::format("  in {}, peak memory {}\n", HumanSeconds(f["seconds"]),
                      HumanBytes(f["peak_memory_bytes"]));
  return text + fmt::format("next: rhizome info {}\n", store);
}

}  // namespace

Result<std::uint64_t> StartLimited(Session& session, const LayoutFlags& flags) {
  const std::uint64_t limit = flags.memory_bytes;
  if (limit > 0) {
    if (limit < kMinMemoryBytes)
      return Fail(Status::OutOfMemory(fmt::format(
          "--memory {} is too small: every input needs at least {}; nothing was written",
          HumanBytes(limit), HumanBytes(kMinMemoryBytes))));
    ReturnFreedMemory(128 << 10);
  }
  return StartMemory(session, limit);
}

Answer IngestAnswer(const Session& session, const std::string& store, const IngestReport& report,
                    const PartitionOptions& partition, std::uint64_t base_memory_bytes) {
  Json fields = {{"store", store}};
  AddGenerationFields(report.info, fields);
  fields["vertex_max_over_min"] = fields["edge_max_over_min"] = nullptr;
  // The store has been written, so an error on reopening it is ignored.
  if (const auto made = Store::Open(FileSystem::Posix(), store, Store::Mode::kRead))
    static_cast<void>(AddMaxOverMin(**made, fields));
  fields["seconds"] = report.seconds;
  fields["base_memory_bytes"] = base_memory_bytes;
  fields["peak_memory_bytes"] = PeakResidentBytes();
  fields["bad_lines"] = report.bad_lines;
  fields["held_out"] = HeldOutJson(report);
  fields["notes"] = report.notes;
  for (const std::string& note : report.notes) Tell(session, "note", note);
  PartitionOptions used = partition;
  used.kind = ParseStoredPartitioner(report.info.partitioner).value_or(PartitionerKind::kRandom);
  used.partitions = report.info.partitions;
  const auto warning =
      BalanceWarning(used, report.info.vertex_balance, report.info.edges, report.info.vertices);
  if (warning) Tell(session, "warning", *warning);
  fields["balance_warning"] = warning ? Json(*warning) : Json();
  fields["homes"] = HomesJson(report.homes);
  const auto uneven =
      report.homes ? HomeWarning(*report.homes, report.info.vertices) : std::nullopt;
  if (uneven) Tell(session, "warning", *uneven);
  fields["homes_warning"] = uneven ? Json(*uneven) : Json();
  fields["spilled"] = report.spilled;
  fields["spilled_bytes"] = report.spilled_bytes;
  fields["generation"] = report.generation;
  return Answer{std::move(fields), DescribeLayoutFlags, {}};
}

}  // namespace rhizome
