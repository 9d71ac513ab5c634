#include <fmt/format.h>

#include <algorithm>

#include "rhizome/backup.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/escaped_text.h"
#include "storage/io/walk_files.h"
#include "storage/section/untrusted_json.h"
#include "tools/cli/text.h"
#include "tools/import/homes_json.h"
#include "tools/import/partition_run.h"
#include "tools/import/topology_json.h"
#include "tools/output/gauge_text.h"
#include "tools/verbs/verbs.h"
#include "tools/verbs/vertex_array.h"

namespace rhizome {
namespace {

struct InfoFlags {
  std::string store;
  bool metrics = false;
  bool schema = false;
  std::string backups;
};

/// Returns the total size of the generation's files whose path begins with `prefix`, in bytes.
std::uint64_t BytesBelow(const Manifest& manifest, std::string_view prefix) {
  std::uint64_t bytes = 0;
  for (const FileEntry& file : manifest.files) {
    if (file.path.compare(0, prefix.size(), prefix) == 0) bytes += file.size_bytes;
  }
  return bytes;
}

/// Returns the size of the row checksums of all arrays, in bytes.
std::uint64_t SidecarBytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const FileEntry& file : manifest.files)
    if (ArrayOfFile(file.path).ends_with(kSidecarSuffix)) bytes += file.size_bytes;
  return bytes;
}

const char* DirectionsName(Direction directions) {
  if (directions == Direction::kBoth) return "both";
  return directions == Direction::kIn ? "in" : "out";
}

const char* IdKindName(ExternalIdKind kind) {
  if (kind == ExternalIdKind::kString) return "string";
  return kind == ExternalIdKind::kInteger ? "integer" : "dense";
}

std::string_view AttributeOf(const ArrayEntry& entry, std::string_view name) {
  for (const auto& [key, value] : entry.attributes)
    if (key == name) return value;
  return {};
}

/// Returns the number of rows that the last compaction marked as older than their inputs.
std::uint64_t StaleRowsOf(const ArrayEntry& entry) {
  const auto rows = ParseCanonicalInteger(AttributeOf(entry, "stale_rows"));
  return rows ? static_cast<std::uint64_t>(*rows) : 0;
}

/// Lists the arrays visible to users; a checksum sidecar is counted as part of its array.
Json ArraysJson(const Manifest& manifest) {
  Json arrays = Json::array();
  for (const ArrayEntry& entry : manifest.arrays) {
    constexpr std::string_view kSidecar = ".crc32c";
    if (entry.name.size() > kSidecar.size() &&
        manifest.FindArray(entry.name.substr(0, entry.name.size() - kSidecar.size())) != nullptr &&
        entry.name.compare(entry.name.size() - kSidecar.size(), kSidecar.size(), kSidecar) == 0) {
      continue;
    }
    arrays.push_back(
        {{"name", entry.name},
         {"rows", entry.rows},
         {"dim", entry.dim},
         {"dtype", DataTypeName(entry.dtype)},
         {"type", TypeOf(entry.attributes)},
         {"vertex_type",
          BoundType(entry).empty() ? Json(nullptr) : Json(std::string(BoundType(entry)))},
         {"layout", ArrayLayoutName(entry.layout)},
         {"codec", CodecName(entry.codec.kind)},
         {"chunk_rows", entry.chunk_rows},
         {"inner_rows", entry.inner_rows},
         {"stale_rows", StaleRowsOf(entry)},
         {"lost_rows", LostRowsOf(entry)},
         {"lost_rows_hold", ShownMissingRow(entry)},
         {"bytes", BytesBelow(manifest, ArrayFolder(entry.name) + "/")},
         {"text_bytes", BytesBelow(manifest, fmt::format("{}{}/", kTextsPrefix, entry.name))},
         {"sidecar_bytes",
          BytesBelow(manifest, ArrayFolder(SidecarName(entry.name), entry.form) + "/")}});
  }
  return arrays;
}

std::string ListNames(const Json& names) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + names[i].get<std::string>();
  }
  if (names.size() > kShown) text += fmt::format(", and {} more", names.size() - kShown);
  return text;
}

/// Returns the vertex types with their numbers of vertices if there are several.
Json ShownVertexTypes(const Json& f) {
  Json names = f["vertex_type_names"];
  if (names.size() > 1)
    for (std::size_t t = 0; t < names.size(); ++t)
      names[t] =
          fmt::format("{} ({})", names[t].get<std::string>(), WithCommas(f["vertex_counts"][t]));
  return names;
}

/// Returns the edge types with the vertex types of their ends, if these are known.
Json ShownEdgeTypes(const Json& f) {
  Json names = f["edge_type_names"];
  const auto shown = [](const Json& end) {
    return end.is_null() ? std::string("several") : end.get<std::string>();
  };
  for (std::size_t t = 0; t < f["edge_ends"].size(); ++t) {
    const Json& ends = f["edge_ends"][t];
    if (ends[0].is_null() && ends[1].is_null()) continue;
    names[t] =
        fmt::format("{} ({} to {})", names[t].get<std::string>(), shown(ends[0]), shown(ends[1]));
  }
  return names;
}

std::string DescribeGraph(const Json& f) {
  TextTable table;
  const std::uint64_t deleted = f["deleted_vertices"];
  table.Add({"vertices", WithCommas(f["vertices"]) +
                             (deleted == 0 ? ""
                                           : fmt::format(", and {} deleted, whose rows remain",
                                                         WithCommas(deleted)))});
  table.Add(
      {"edges",
       fmt::format("{}, {}{}", WithCommas(f["edges"]),
                   f["undirected"].get<bool>() ? "undirected (each pair counts twice)" : "directed",
                   f["weighted"].get<bool>() ? ", weighted" : "")});
  table.Add({"vertex types", ListNames(ShownVertexTypes(f))});
  table.Add({"edge types", ListNames(ShownEdgeTypes(f))});
  table.Add({"external ids", f["id_kind"].get<std::string>() == "dense"
                                 ? "integers 0..n-1 (no dictionary)"
                                 : f["id_kind"].get<std::string>()});
  return table.ToString();
}

std::string DescribeLayout(const Json& f) {
  TextTable table;
  table.Add({"partitions",
             fmt::format("{} by {}, rows in {} order", f["partitions"].get<int>(),
                         f["partitioner"].get<std::string>(), f["order"].get<std::string>())});
  table.Add({"replication factor", fmt::format("{:.3f}", f["replication_factor"].get<double>()),
             "average number of copies of a vertex"});
  table.Add({"vertex balance",
             fmt::format("{:.3f}, {}", f["vertex_balance"].get<double>(),
                         MaxOverMinText(f["vertex_max_over_min"])),
             "largest partition relative to the mean, to the smallest"});
  table.Add({"edge balance", fmt::format("{:.3f}, {}", f["edge_balance"].get<double>(),
                                         MaxOverMinText(f["edge_max_over_min"]))});
  table.Add({"interior", Percent(f["interior_share"].get<double>()),
             "vertices with all edges in one partition"});
  if (!f["homes"].is_null())
    table.Add({"homes of rows", HomesText(f["homes"]),
               HomesQuality(f["homes"]) + ", when the store was created"});
  table.Add(
      {"topology", HumanBytes(f["topology_bytes"]),
       fmt::format("{:.2f} bytes per edge, {} lists, codec {}", f["bytes_per_edge"].get<double>(),
                   f["directions"].get<std::string>(), f["topology_codec"].get<std::string>())});
  table.Add({"generation", WithCommas(f["generation"]),
             fmt::format("{} on disk, {}; keeps {} earlier", f["generations"].size(),
                         HumanBytes(f["generation_bytes"]), f["keep_generations"].dump())});
  table.Add({"updates since", WithCommas(f["delta_entries"]),
             fmt::format("commits {} to {}, in {}", f["base_sequence"].get<std::uint64_t>(),
                         f["commit"].get<std::uint64_t>(), Plural(f["delta_runs"], "run"))});
  return table.ToString();
}

/// Formats the sizes: the topology by section group, then everything else.
std::string DescribeBytes(const Json& f) {
  TextTable table({1, 2});
  table.Add({"bytes", "size", "per edge"});
  const double edges = std::max(f["edges"].get<double>(), 1.0);
  const auto add = [&](const std::string& name, const Json& bytes) {
    if (bytes == 0) return;
    table.Add({name, HumanBytes(bytes), fmt::format("{:.3f}", bytes.get<double>() / edges)});
  };
  for (const auto& [group, bytes] : f["topology_sections"].items())
    add("topology, " + group, bytes);
  add("order", f["order_bytes"]);
  add("dictionary", f["dictionary_bytes"]);
  add("arrays", f["array_bytes"]);
  add("sidecars", f["sidecar_bytes"]);
  return table.ToString();
}

/// Lists the arrays, with their vertex types if some are bound to one.
std::string DescribeArrays(const Json& arrays) {
  const bool bound = std::any_of(arrays.begin(), arrays.end(),
                                 [](const Json& a) { return !a["vertex_type"].is_null(); });
  TextTable table({1, 2, 6});
  std::vector<std::string> head = {"array", "rows", "dim", "dtype", "layout", "codec", "size"};
  if (bound) head.emplace_back("vertex type");
  table.Add(std::move(head));
  for (const Json& a : arrays) {
    std::vector<std::string> line = {
        ShownName(a["name"].get<std::string>()),
        WithCommas(a["rows"]),
        WithCommas(a["dim"]),
        a["type"] == kTypeText ? a["type"].get<std::string>() : a["dtype"].get<std::string>(),
        a["layout"].get<std::string>(),
        a["codec"].get<std::string>(),
        HumanBytes(a["bytes"].get<std::uint64_t>() + a["text_bytes"].get<std::uint64_t>())};
    const Json& type = a["vertex_type"];
    if (bound) line.push_back(type.is_null() ? std::string() : ShownName(type.get<std::string>()));
    table.Add(std::move(line));
  }
  return table.ToString();
}

std::string DescribeInfo(const Json& f) {
  std::string text = fmt::format("{}  (store {})\n\n{}\n{}\n{}", f["store"].get<std::string>(),
                                 f["id"].get<std::string>(), DescribeGraph(f), DescribeLayout(f),
                                 DescribeBytes(f));
  if (f["arrays"].empty()) return text + "\n  no arrays\n";
  text += "\n" + DescribeArrays(f["arrays"]);
  for (const Json& a : f["arrays"])
    if (a["stale_rows"] != 0)
      text += fmt::format(
          "  {} of {} may differ from a new computation; infer --incremental updates them\n",
          Plural(a["stale_rows"], "row"), ShownName(a["name"].get<std::string>()));
  for (const Json& a : f["arrays"])
    if (!a["lost_rows"].get<std::string>().empty())
      text +=
          fmt::format("  rows of {} that were lost in a repair, and are now {}: {}\n",
                      ShownName(a["name"].get<std::string>()),
                      a["lost_rows_hold"].get<std::string>(), a["lost_rows"].get<std::string>());
  return text;
}

/// Adds the hash of the commits, which distinguishes copies of a store, and the store that this one
/// follows, if any.
Status AddHistory(const Store& store, Json& fields) {
  RHIZOME_ASSIGN_OR_RETURN(const HistoryState history,
                           store.StateAt(fields["commit"].get<std::uint64_t>()));
  fields["commits_hash"] = StoreId{history.commits}.ToString();
  if (history.leader) {
    fields["follows"] = {{"store", history.leader->store.ToString()},
                         {"commit", history.leader->commit}};
  }
  return Status::Ok();
}

/// Returns the vertex types of the ends of edges, by edge type: [source, destination], null for
/// several types or an unknown one.
Json EdgeEndsJson(const Graph& graph) {
  const std::vector<std::string> types = graph.vertex_types();
  const auto name = [&](TypeId end) { return end == kSeveralTypes ? Json() : Json(types[end]); };
  Json ends = Json::array();
  for (const EdgeEnds& one : graph.edge_ends())
    ends.push_back(Json::array({name(one.source), name(one.destination)}));
  return ends;
}

/// Adds the counts of changes since the generation was built. Counting the remaining edges requires
/// the changed lists, and counting the vertices of several types the order of rows, so a graph is
/// opened if there are changes or types.
Status AddDeltaFields(const Store& store, Json& fields) {
  bool any = false;
  const Status scanned = store.ScanDelta(store.base_sequence(), [&](std::uint64_t, auto) {
    any = true;
    return Status::Interrupted("one is enough");
  });
  if (!any) RHIZOME_RETURN_IF_ERROR(scanned);
  const GenerationInfo& info = store.manifest().info;
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t deleted, Graph::CountDeleted(store));
  fields["vertices"] = info.vertices - deleted;
  fields["deleted_vertices"] = deleted;
  fields["generation_vertices"] = info.vertices;
  fields["generation_edges"] = info.edges;
  fields["delta_entries"] = 0;
  fields["delta_runs"] = 0;
  fields["base_sequence"] = store.base_sequence();
  fields["commit"] = store.base_sequence();
  fields["vertex_type_names"] = info.vertex_types;
  fields["edge_type_names"] = info.edge_types;
  fields["vertex_counts"] = Json::array({fields["vertices"]});
  fields["edge_ends"] = Json::array();
  if (!any && info.vertex_types.size() < 2) return AddHistory(store, fields);
  RHIZOME_ASSIGN_OR_RETURN(const auto graph,
                           Graph::Open(store, {.topology = TopologyPlace::kLazy}));
  fields["vertex_counts"] = graph->live_vertices_by_type();
  fields["edge_ends"] = EdgeEndsJson(*graph);
  if (!any) return AddHistory(store, fields);
  RHIZOME_ASSIGN_OR_RETURN(fields["edges"], graph->CountEdges());
  fields["vertices"] = graph->live_vertex_count();
  fields["deleted_vertices"] = graph->vertex_count() - graph->live_vertex_count();
  fields["vertex_types"] = graph->vertex_types().size();
  fields["edge_types"] = graph->edge_types().size();
  fields["delta_entries"] = graph->delta_size().entries;
  fields["delta_runs"] = graph->delta_size().runs;
  fields["commit"] = graph->sequence();
  fields["vertex_type_names"] = graph->vertex_types();
  fields["edge_type_names"] = graph->edge_types();
  return AddHistory(store, fields);
}

/// Returns the numbers of the generations on disk. Older ones exist while a reader uses them, or
/// while the store is configured to keep them.
Result<Json> GenerationsJson(const Store& store) {
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, store.fs().List(store.path() / "generations"));
  std::vector<std::uint64_t> numbers;
  for (const DirectoryEntry& entry : entries)
    if (const auto number = ParseCanonicalInteger(
            entry.name.substr(std::min(entry.name.find_first_not_of('0'), entry.name.size()))))
      numbers.push_back(static_cast<std::uint64_t>(*number));
  std::sort(numbers.begin(), numbers.end());
  return Json(numbers);
}

/// Returns the total size of the files of all generations, in bytes.
Result<std::uint64_t> BytesOnDisk(const Store& store) {
  std::uint64_t bytes = 0;
  const Path folder = store.path() / "generations";
  RHIZOME_RETURN_IF_ERROR(
      WalkFiles(store.fs(), folder, [&](const std::string& relative, DirectoryEntry::Kind) {
        const auto info = store.fs().Stat(folder / relative);
        if (info) bytes += info->size_bytes;  // otherwise a writer has just removed the file
        return Status::Ok();
      }));
  return bytes;
}

std::string DescribeNothing(const Json&) { return {}; }

/// Returns the stale rows of each array that `infer` computed.
Result<std::string> StaleRowsText(const GraphSnapshot& graph, const std::string& store) {
  std::vector<GaugeSample> rows;
  std::vector<GaugeSample> behind;
  for (const ArrayEntry& entry : graph.store().manifest().arrays) {
    if (!AttributeOf(entry, "made_by").starts_with("infer")) continue;
    RHIZOME_ASSIGN_OR_RETURN(const Staleness staleness, graph.StalenessOf(entry));
    const std::vector<std::pair<std::string, std::string>> labels = {{"store", store},
                                                                     {"array", entry.name}};
    rows.push_back({labels, static_cast<double>(staleness.marked_rows)});
    behind.push_back({labels, staleness.written_since ? 1.0 : 0.0});
  }
  return GaugeText("stale_rows",
                   "Rows that infer computed and later writes may have changed, as of the last "
                   "compaction",
                   rows) +
         GaugeText("array_behind", "1 if the graph was written to since infer computed the array",
                   behind);
}

/// Returns the time of the newest backup. Errors: kInvalidArgument, the backups are of another
/// store.
Result<std::string> BackupText(const InfoFlags& flags) {
  if (flags.backups.empty()) return std::string();
  RHIZOME_ASSIGN_OR_RETURN(const auto backups, ListBackups(FileSystem::Posix(), flags.backups));
  const std::vector<std::pair<std::string, std::string>> labels = {{"store", flags.store},
                                                                   {"backups", flags.backups}};
  std::vector<GaugeSample> newest;
  std::vector<GaugeSample> bytes;
  if (!backups.empty()) {
    newest.push_back({labels, static_cast<double>(backups.back().unix_seconds)});
    bytes.push_back({labels, static_cast<double>(backups.back().bytes)});
  }
  return GaugeText("last_backup_timestamp_seconds", "Time of the newest backup, since 1970",
                   newest) +
         GaugeText("last_backup_bytes", "Size of the newest backup's files and delta", bytes);
}

/// Prints metrics. Most of them are gauges, because counters start with the process.
Result<Answer> RunMetrics(const InfoFlags& flags, const Session& session) {
  const auto metrics = std::make_shared<Metrics>();
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(FileSystem::Posix(), flags.store,
                                                         Store::Mode::kRead, {.metrics = metrics}));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph,
                           Graph::Open(*store, {.topology = TopologyPlace::kLazy}));
  const std::pair<std::string, std::string> label{"store", EscapedText(flags.store)};
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t disk_bytes, BytesOnDisk(*store));
  const GaugeSample disk{{label}, static_cast<double>(disk_bytes)};
  RHIZOME_ASSIGN_OR_RETURN(const std::string stale,
                           StaleRowsText(*graph->Snapshot(), label.second));
  RHIZOME_ASSIGN_OR_RETURN(const std::string backup, BackupText(flags));
  const std::string text =
      MetricsText(metrics->Snapshot(), std::span(&label, 1)) +
      GaugeText("disk_bytes", "Size of the files of all generations", std::span(&disk, 1)) + stale +
      backup;
  // The text contains line breaks, which fields passed to `describe` must not have.
  if (!session.json) RHIZOME_RETURN_IF_ERROR(PrintOut(text));
  return Answer{{{"metrics", text}}, DescribeNothing, {}};
}

/// Prints the schema, from which `init --schema` creates an empty store of the same shape.
Result<Answer> RunSchema(const InfoFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), flags.store, Store::Mode::kRead));
  const Store& fixed = *store;
  RHIZOME_ASSIGN_OR_RETURN(const auto graph,
                           Graph::Open(fixed, {.topology = TopologyPlace::kDirect}));
  const std::string text = SchemaText(SchemaOf(*graph));
  if (!session.json) RHIZOME_RETURN_IF_ERROR(PrintOut(text));
  return Answer{{{"schema", ParseUntrustedJson(text)}}, DescribeNothing, {}};
}

// Collects the fields from (1) the manifest, (2) the section tables of the partition files, (3) the
// delta, and (4) the folders of all generations.
Result<Answer> RunInfo(const InfoFlags& flags, Session& session) {
  if (flags.metrics) return RunMetrics(flags, session);
  if (flags.schema) return RunSchema(flags, session);
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<const Store> store,
                           Store::Open(FileSystem::Posix(), flags.store, Store::Mode::kRead));
  const Manifest& manifest = store->manifest();
  const GenerationInfo& info = manifest.info;
  const std::uint64_t topology_bytes = BytesBelow(manifest, "topology/");
  RHIZOME_ASSIGN_OR_RETURN(const TopologySections sections, TopologySections::Read(*store));
  Json fields = {{"store", flags.store}, {"id", store->id().ToString()}};
  AddGenerationFields(info, fields);
  RHIZOME_RETURN_IF_ERROR(AddMaxOverMin(*store, fields));
  fields["generation"] = manifest.generation;
  fields["arrays_folder"] = (store->GenerationFolder() / "arrays").string();
  fields["keep_generations"] = manifest.keep.generations;
  fields["keep_bytes"] = manifest.keep.bytes;
  fields["directions"] = DirectionsName(info.directions);
  fields["id_kind"] = IdKindName(info.id_kind);
  fields["topology_bytes"] = topology_bytes;
  fields["topology_codec"] = sections.codec();
  fields["topology_sections"] = ToJson(sections);
  fields["bytes_per_edge"] =
      info.edges == 0 ? 0.0 : static_cast<double>(topology_bytes) / static_cast<double>(info.edges);
  fields["order_bytes"] = BytesBelow(manifest, "order/");
  fields["dictionary_bytes"] = BytesBelow(manifest, "ids/");
  fields["array_bytes"] = BytesBelow(manifest, kArraysPrefix) + BytesBelow(manifest, kSumsPrefix) +
                          BytesBelow(manifest, kTextsPrefix) - SidecarBytes(manifest);
  fields["sidecar_bytes"] = SidecarBytes(manifest);
  fields["total_bytes"] = BytesBelow(manifest, "");
  RHIZOME_RETURN_IF_ERROR(AddDeltaFields(*store, fields));
  RHIZOME_ASSIGN_OR_RETURN(fields["generations"], GenerationsJson(*store));
  RHIZOME_ASSIGN_OR_RETURN(fields["generation_bytes"], BytesOnDisk(*store));
  fields["arrays"] = ArraysJson(manifest);
  RHIZOME_ASSIGN_OR_RETURN(const auto homes, FindHomes(manifest));
  fields["homes"] = HomesJson(homes);
  return Answer{std::move(fields), DescribeInfo, {}};
}

}  // namespace

void AddInfoVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<InfoFlags>();
  CLI::App* verb =
      AddVerb(root, session, "info", "Describe a store: contents, partitions and sizes",
              "rhizome info demo.rz", flags, RunInfo);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  CLI::Option* const metrics = verb->add_flag(
      "--metrics", flags->metrics, "Print the metrics of the store instead, as Prometheus text");
  verb->add_option("--backups", flags->backups,
                   "With --metrics: the store's folder of backups, whose age is a metric")
      ->needs(metrics)
      ->type_name("DIR");
  verb->add_flag("--schema", flags->schema,
                 "Print the schema of the store instead, as JSON for init --schema")
      ->excludes(metrics);
}

}  // namespace rhizome
