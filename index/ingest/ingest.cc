// If the input does not fit in memory, an external sort numbers the ids, and arrays are permuted
// through buckets. A partitioner that sees all edges at once scans the spilled edges if
// ExpansionBytes fit; otherwise hdrf replaces it. An edge cut of homes needs DivideRowsBytes, and
// the array `split` is held in memory.

#include "rhizome/ingest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "index/homes/home_array.h"
#include "index/ids/id_table.h"
#include "index/ingest/array_file.h"
#include "index/ingest/edge_file.h"
#include "index/ingest/given_homes.h"
#include "index/ingest/hold_out.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/ingest_graph.h"
#include "index/ingest/ingest_memory.h"
#include "index/ingest/ingest_steps.h"
#include "index/ingest/node_arrays.h"
#include "index/ingest/node_file.h"
#include "index/ingest/text_column.h"
#include "index/ingest/typed_arrays.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/type_names.h"
#include "storage/base/bytes_left.h"
#include "storage/base/exceptions.h"
#include "storage/io/outside.h"
#include "storage/store/caller_path.h"

namespace rhizome {
namespace {

// Estimated memory for building a generation, beyond its input; used for the check before the
// build.
constexpr std::uint64_t kBuildBytesPerEdge = 48;

/// The content of all input files, before external ids are resolved to vertex ids.
struct Parsed {
  explicit Parsed(IdType type) : ids(type) {}
  IdTable ids;
  NodeTable nodes;
  IngestedEdges edges;
  std::vector<std::shared_ptr<const LoadedArray>> arrays;
  GivenHomes homes;
};

/// Returns the name of the series to which a stored name such as emb.v3 belongs; `name` itself if
/// there is no such series.
std::string_view NameWithoutVersion(std::string_view name, std::span<const ArraySeries> series) {
  const auto version = SplitVersion(name);
  if (!version) return name;
  const bool known = std::ranges::any_of(series, [&](const ArraySeries& one) {
    return one.name == version->first && version->second <= one.last_version;
  });
  return known ? version->first : name;
}

/// Returns what to do if an array is given for a second vertex type under the same name; otherwise
/// nothing.
std::string ReasonOfTypes(std::string_view name, const IngestOptions& options) {
  std::vector<std::string_view> types;
  for (const ArrayFile& file : options.arrays)
    if (file.name == name && !file.vertex_type.empty()) types.push_back(file.vertex_type);
  if (types.empty()) return {};
  return fmt::format(
      "; an array has the rows of one vertex type, or of all: rename one, such as "
      "{0}:{0}_{1} for {0}:{1}",
      types.back(), name);
}

Status CheckArrayNames(const IngestOptions& options) {
  std::vector<std::string> names =
      options.nodes ? NodeArrayNames(options) : std::vector<std::string>();
  if (!options.nodes && !options.random_split.empty()) names.emplace_back("split");
  for (const ArrayFile& file : options.arrays) names.push_back(file.name);
  if (options.build.homes != HomeRule::kNone) names.emplace_back(kHomeArray);
  for (const EdgeAttribute& attribute : EdgeAttributesOf(options)) {
    for (const std::string& name : names) {
      if (name.starts_with(attribute.name() + ".p"))
        return Status::InvalidArgument(
            fmt::format("the array '{}' could have the name of the edge attribute '{}' in a "
                        "partition; choose another name",
                        name, attribute.name()));
    }
  }
  for (const std::string& name : names)
    RHIZOME_RETURN_IF_ERROR(CheckNewArrayName(NameWithoutVersion(name, options.series)));
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return Status::Ok();
  std::string reason = ReasonOfTypes(*twice, options);
  if (*twice == kHomeArray && options.build.homes != HomeRule::kNone)
    reason = ", which is reserved for the homes of rows";
  else if (*twice == "split" && !options.random_split.empty())
    reason = ": the input has one, and `random_split` would make another; leave one of them out";
  return Status::InvalidArgument(fmt::format("two arrays have the name '{}'{}", *twice, reason));
}

Status CheckVertexRanges(const IngestOptions& options) {
  if (options.vertex_ranges.empty()) return Status::Ok();
  std::uint64_t count = 0;
  for (const VertexRange& range : options.vertex_ranges) {
    RHIZOME_RETURN_IF_ERROR(CheckTypeName("type", range.type));
    if (__builtin_add_overflow(count, range.count, &count)) count = ~std::uint64_t{0};
  }
  if (!options.vertex_types.empty())
    return Status::InvalidArgument(
        "names of vertex types cannot be given with ranges of typed vertices");
  if (!options.nodes && options.vertices == count) return Status::Ok();
  return Status::InvalidArgument("ranges of typed vertices must cover all vertices");
}

/// Checks IngestOptions::vertex_types or edge_types; `column` is whether the input has types.
Status CheckFirstTypes(std::string_view kind, std::span<const std::string> names, bool column) {
  if (names.size() > 1 && !column)
    return Status::InvalidArgument(fmt::format(
        "{} {} types are given, but the input has no column of types", names.size(), kind));
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    RHIZOME_RETURN_IF_ERROR(CheckTypeName(fmt::format("{} type", kind), name));
    if (!seen.insert(name).second)
      return Status::InvalidArgument(fmt::format("the {} type '{}' is given twice", kind, name));
  }
  if (names.size() <= kMaxTypes) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{} {} types are more than {}", names.size(), kind, kMaxTypes));
}

/// Checks that every column with a given type exists and becomes an array or an attribute.
Status CheckTypedColumns(const IngestOptions& options) {
  std::vector<std::string> names =
      options.nodes ? TypedNodeColumns(options) : std::vector<std::string>();
  for (const EdgeAttribute& attribute : EdgeAttributesOf(options))
    names.push_back(attribute.name());
  for (const auto& [name, type] : options.types)
    if (std::find(names.begin(), names.end(), name) == names.end())
      return Status::InvalidArgument(fmt::format(
          "`types` gives the column '{}' a type, but no column of that name becomes an array or an "
          "attribute of edges; columns that do: {}",
          name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  return Status::Ok();
}

/// Checks what does not depend on the content of files.
Status CheckGiven(const IngestOptions& options) {
  if (options.inputs.empty() && options.edges.empty() && !options.nodes &&
      options.vertex_ranges.empty())
    return Status::InvalidArgument("there is no input; give an edge file, or a nodes file");
  if (options.node_ids && !options.nodes)
    return Status::InvalidArgument("ids of nodes in memory need a name; set `nodes` as well");
  if (!options.node_types.empty() && !options.node_ids)
    return Status::InvalidArgument("types of vertices in memory need the ids in memory");
  return Status::Ok();
}

/// Checks options whose columns are known.
Status CheckOptions(const IngestOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckEdgeColumns(options));
  if (options.nodes) RHIZOME_RETURN_IF_ERROR(CheckNodeColumns(options));
  RHIZOME_RETURN_IF_ERROR(CheckFirstTypes("vertex", options.vertex_types, HasVertexTypes(options)));
  RHIZOME_RETURN_IF_ERROR(CheckFirstTypes("edge", options.edge_types, HasEdgeTypes(options)));
  RHIZOME_RETURN_IF_ERROR(CheckTypedColumns(options));
  RHIZOME_RETURN_IF_ERROR(CheckFeatureColumns(options));
  RHIZOME_RETURN_IF_ERROR(CheckRandomSplit(options));
  RHIZOME_RETURN_IF_ERROR(CheckVertexRanges(options));
  RHIZOME_RETURN_IF_ERROR(CheckGivenVertices(options));
  RHIZOME_RETURN_IF_ERROR(CheckHomesFile(options));
  RHIZOME_RETURN_IF_ERROR(CheckHoldOut(options));
  return CheckArrayNames(options);
}

Status ReadAll(IngestContext& context, HeldOutEdges* held_out, Parsed& parsed) {
  if (context.options.nodes) {
    RHIZOME_ASSIGN_OR_RETURN(parsed.nodes, ReadNodes(context, parsed.ids));
    context.Hold(parsed.nodes.memory_bytes());
  }
  RHIZOME_ASSIGN_OR_RETURN(parsed.edges, ReadEdges(context, parsed.ids, nullptr, held_out));
  if (held_out != nullptr) {
    RHIZOME_RETURN_IF_ERROR(held_out->EndEdges(EdgeTypeNames(parsed.edges)));
    context.Hold(held_out->memory_bytes());
  }
  context.Hold(parsed.ids.memory_bytes() + parsed.edges.memory_bytes());
  for (const ArrayFile& file : context.options.arrays) {
    RHIZOME_ASSIGN_OR_RETURN(auto array, ReadArrayFile(context, file));
    parsed.arrays.push_back(std::move(array));
  }
  RHIZOME_ASSIGN_OR_RETURN(parsed.homes, GivenHomes::Read(context));
  return Status::Ok();
}

void SetEdges(IngestedEdges edges, IdTable::Vertices& vertices, GraphInput& input) {
  input.edge_type_names = EdgeTypeNames(edges);
  if (input.edge_type_names.size() > 1) input.edges.type = std::move(edges.columns.type);
  input.edges.weight = std::move(edges.columns.weight);
  input.edges.attributes = std::move(edges.columns.attributes);
  input.attribute_texts = std::move(edges.texts);
  input.edges.src = std::move(vertices.src);
  input.edges.dst = std::move(vertices.dst);
}

std::vector<ArrayRows> RowsOf(std::span<const std::shared_ptr<const LoadedArray>> arrays,
                              std::span<const ArrayFile> files) {
  std::vector<ArrayRows> rows;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    rows.push_back({arrays[i]->name, arrays[i]->path, arrays[i]->rows, arrays[i]->exact_rows,
                    files[i].vertex_type});
  return rows;
}

/// Adds the arrays of the files, each mapped to its vertices.
Status AddArrays(const IngestContext& context, const Parsed& parsed,
                 std::span<const VertexId> vertex_of_accepted, GraphInput& input) {
  const IngestOptions& options = context.options;
  RHIZOME_ASSIGN_OR_RETURN(const TypedRows typed,
                           TypedRows::Make(options, vertex_of_accepted, input));
  const bool nodes = options.nodes.has_value();
  RHIZOME_RETURN_IF_ERROR(typed.CheckRows(RowsOf(parsed.arrays, options.arrays),
                                          nodes ? parsed.nodes.lines : input.vertex_count, nodes));
  const auto rows = std::make_shared<const std::vector<std::int64_t>>(
      nodes ? RowsOfVertices(parsed.nodes, vertex_of_accepted, input.vertex_count)
            : std::vector<std::int64_t>());
  std::map<std::string, std::shared_ptr<const std::vector<std::int64_t>>> rows_of_type;
  for (std::size_t i = 0; i < parsed.arrays.size(); ++i) {
    const std::string& type = options.arrays[i].vertex_type;
    auto& own = rows_of_type[type];
    if (own == nullptr) own = typed.Has(type) ? typed.RowsOf(type, input.vertex_count) : rows;
    input.arrays.push_back(BindArray(parsed.arrays[i], own));
    if (options.arrays[i].texts)
      RHIZOME_RETURN_IF_ERROR(SetTexts(options.arrays[i].texts, input.arrays.back()));
  }
  SetLayouts(options, input);
  BindToTypes(options, typed, input);
  return Status::Ok();
}

Result<GraphInput> Assemble(IngestContext& context, HeldOutEdges* held_out, Parsed parsed) {
  const IngestOptions& options = context.options;
  std::vector<ArrayRows> arrays = RowsOf(parsed.arrays, options.arrays);
  if (options.homes_file) arrays.push_back(parsed.homes.rows(options));
  const ImpliedVertices implied = CountImplied(options, arrays);
  RHIZOME_ASSIGN_OR_RETURN(IdTable::Vertices vertices,
                           std::move(parsed.ids).Resolve(implied.count, implied.why));
  RHIZOME_RETURN_IF_ERROR(CheckVertexBound(options, vertices.count));
  if (vertices.count == 0)
    return Fail(Status::InvalidArgument("the input has no vertices; nothing was written"));
  const bool nodes = options.nodes.has_value();
  for (const ArrayRows& array : arrays)
    if (array.vertex_type.empty())
      RHIZOME_RETURN_IF_ERROR(
          CheckArrayRows(array, nodes ? parsed.nodes.lines : vertices.count, nodes));

  GraphInput input;
  input.vertex_count = vertices.count;
  input.undirected = options.undirected;
  input.id_kind = vertices.kind;
  input.integer_ids = std::move(vertices.integer_ids);
  input.string_ids = std::move(vertices.string_ids);
  SetVertexTypes(options, parsed.nodes, vertices.nodes, input);
  RHIZOME_RETURN_IF_ERROR(
      SetEndTypes(options, PartitionInput(vertices.count, vertices.src, vertices.dst), input));
  RHIZOME_ASSIGN_OR_RETURN(
      input.homes,
      std::move(parsed.homes).ByVertex(options, parsed.nodes, vertices.nodes, vertices.count));
  if (held_out != nullptr) held_out->Remove(vertices.count, vertices.src, vertices.dst);
  SetEdges(std::move(parsed.edges), vertices, input);
  input.weighted = HasWeights(options);
  RHIZOME_ASSIGN_OR_RETURN(input.arrays,
                           NodeArrays(context, parsed.nodes, vertices.nodes, vertices.count));
  RHIZOME_RETURN_IF_ERROR(AddArrays(context, parsed, vertices.nodes, input));
  return input;
}

/// Reads and builds in memory. If memory does not suffice, nothing was written.
/// Errors: kOutOfMemory, the memory does not suffice.
Result<IngestReport> IngestInMemory(FileSystem& fs, const Path& path, const InputPlan& plan,
                                    const JobControl& control) {
  const Stopwatch watch;
  const IngestOptions& options = plan.options;
  IngestContext context(fs, plan, control, /*spills=*/false);
  RHIZOME_ASSIGN_OR_RETURN(const auto held_out, HeldOutEdges::Create(fs, options, path, nullptr));
  Parsed parsed(options.id_type);
  RHIZOME_RETURN_IF_ERROR(ReadAll(context, held_out.get(), parsed));
  RHIZOME_ASSIGN_OR_RETURN(GraphInput input, Assemble(context, held_out.get(), std::move(parsed)));
  const std::uint64_t stored_edges = input.edges.size() * (options.undirected ? 2 : 1);
  RHIZOME_RETURN_IF_ERROR(context.CheckMemory(
      "building the store",
      std::max(stored_edges * kBuildBytesPerEdge +
                   input.vertex_count * (kBuildBytesPerVertex + kWriteBytesPerVertex),
               HomesBytes(options, input.vertex_count, input.edges.size()))));
  BuildOptions build = options.build;
  build.memory_bytes = BytesLeft(options.memory_bytes, context.held_bytes());
  auto built = IngestGraph(fs, path, std::move(input), build, options.store_id, control,
                           HooksOf(held_out.get()));
  if (held_out != nullptr && !built) held_out->RemoveFiles();
  RHIZOME_ASSIGN_OR_RETURN(IngestReport report, std::move(built));
  if (held_out != nullptr) report.held_out = held_out->Report();
  report.bad_lines = context.bad_lines();
  const std::vector<std::string> notes = context.Notes();
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  report.seconds = watch.seconds();
  return report;
}

// Ingests the input:
// 1. finds how its files are read (Sniff), and checks the options;
// 2. holds everything in memory if there is no limit, or if the estimate of the input fits;
// 3. otherwise, or if memory runs out after all, or if edges are sorted by time, passes it through
//    spill files.
Result<IngestReport> IngestAt(FileSystem& fs, const Path& path, const IngestOptions& given,
                              const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckGiven(given));
  RHIZOME_RETURN_IF_ERROR(CheckTarget(fs, path));
  RHIZOME_ASSIGN_OR_RETURN(const InputPlan plan, Sniff(fs, given));
  const IngestOptions& options = plan.options;
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  // The scratch folder is checked even if the input fits in memory, so that a wrong option fails
  // now and not only with a larger input.
  if (!options.scratch.empty()) RHIZOME_RETURN_IF_ERROR(CheckScratchPlace(fs, options.scratch));
  // A huge --vertices may exhaust the memory, so the error names that option.
  const auto in_memory = [&] {
    auto report = Guarded([&] { return IngestInMemory(fs, path, plan, control); });
    const bool room = report || report.error().code() != StatusCode::kOutOfMemory;
    if (room || !options.vertices) return report;
    return Result<IngestReport>(
        Fail(report.error().WithContext(fmt::format("`vertices={}`", *options.vertices))));
  };
  const bool sorts = options.hold_out.any() && options.hold_out.by == HoldOutOptions::By::kTime;
  if (sorts) return IngestSpilled(fs, path, plan, control);
  const bool never = options.spill == IngestOptions::Spill::kNever ||
                     (options.spill == IngestOptions::Spill::kAuto && options.memory_bytes == 0);
  if (never) return in_memory();
  if (options.spill == IngestOptions::Spill::kAuto) {
    RHIZOME_ASSIGN_OR_RETURN(const InputEstimate estimate, EstimateInput(fs, plan));
    if (MemoryToHold(estimate, options) <= options.memory_bytes) {
      auto report = in_memory();
      if (report || report.error().code() != StatusCode::kOutOfMemory) return report;
    }
  }
  return IngestSpilled(fs, path, plan, control);
}

}  // namespace

Result<IngestReport> IngestGraph(FileSystem& fs, const Path& path, GraphInput input,
                                 const BuildOptions& build, std::optional<StoreId> store_id,
                                 const JobControl& control, const BuildHooks& hooks) try {
  return WithAbsolute(fs, path, [&](const Path& absolute) {
    return MakeStore(
        fs, absolute, store_id, control, [&](Store& store, IngestReport& report) -> Status {
          const auto counts = CountTypes(input);
          RHIZOME_RETURN_IF_ERROR(BuildGeneration(store, std::move(input), build, control, hooks));
          report.notes = NotesOnMixedChunks(store.manifest(), counts);
          return Status::Ok();
        });
  });
} catch (...) {
  return Fail(StatusOfException());
}

Result<IngestReport> Ingest(FileSystem& fs, const Path& path, const IngestOptions& options,
                            const JobControl& control) try {
  return WithAbsolute(
      fs, path, [&](const Path& absolute) { return IngestAt(fs, absolute, options, control); });
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
