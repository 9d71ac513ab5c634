#include "index/ingest/ingest_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "index/homes/home_array.h"
#include "storage/base/exceptions.h"
#include "storage/io/outside.h"

namespace rhizome {
inline namespace internal {

Status CheckTarget(FileSystem& fs, const Path& path) {
  RHIZOME_RETURN_IF_ERROR(CheckOutside(fs, path));
  const Result<FileInfo> info = fs.Stat(path);
  if (!info) return info.error().code() == StatusCode::kNotFound ? Status::Ok() : info.error();
  const Status taken = Status::AlreadyExists(
      fmt::format("'{}' exists already; give another path, or remove it first", path.string()));
  if (info->kind != DirectoryEntry::Kind::kDirectory) return taken;
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(path));
  if (entries.empty()) return Status::Ok();
  // A killed ingestion may leave a LOCK without a committed store, so Store::Create decides.
  const bool locked = std::any_of(entries.begin(), entries.end(),
                                  [](const DirectoryEntry& entry) { return entry.name == "LOCK"; });
  return locked && !Store::Open(fs, path, Store::Mode::kRead) ? Status::Ok() : taken;
}

Result<IngestReport> MakeStore(FileSystem& fs, const Path& path, std::optional<StoreId> store_id,
                               const JobControl& control,
                               const std::function<Status(Store&, IngestReport&)>& build,
                               const StoreOptions& options) {
  const Stopwatch watch;
  RHIZOME_RETURN_IF_ERROR(CheckTarget(fs, path));
  RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
  IngestReport report;
  RHIZOME_ASSIGN_OR_RETURN(
      auto store, Store::Create(fs, path, store_id ? *store_id : StoreId::Random(), options));
  const Status built = Guarded([&] { return build(*store, report); });
  if (!built.ok()) {
    static_cast<void>(Store::Discard(std::move(store)));
    return Fail(built);
  }
  report.info = store->manifest().info;
  report.generation = store->manifest().generation;
  RHIZOME_ASSIGN_OR_RETURN(report.homes, FindHomes(store->manifest()));
  store.reset();
  report.seconds = watch.seconds();
  return report;
}

ImpliedVertices CountImplied(const IngestOptions& options, std::span<const ArrayRows> arrays) {
  ImpliedVertices implied;
  if (options.vertices)
    implied = {*options.vertices, fmt::format("`vertices={}`", *options.vertices)};
  if (options.nodes) return implied;
  for (const ArrayRows& array : arrays)
    if (array.vertex_type.empty() && array.rows >= std::max<std::uint64_t>(implied.count, 1))
      implied = {array.rows, fmt::format("the array '{}' without a nodes file", array.name)};
  return implied;
}

Status CheckVertexBound(const IngestOptions& options, std::uint64_t count) {
  if (count <= options.vertices.value_or(count)) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "`vertices={}`, but the input has {} vertices: its ids, or rows of arrays, go up to {}; give "
      "the number of vertices, or leave the option out",
      *options.vertices, count, count - 1));
}

Status CheckArrayRows(const ArrayRows& array, std::uint64_t expected, bool nodes) {
  if (array.rows == expected || (!array.exact_rows && array.rows < expected)) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "array '{}': {} has {}{} rows, but the {}", array.name, array.path,
      array.exact_rows ? "" : "at least ", array.rows,
      nodes ? fmt::format("nodes file has {} lines", expected)
            : fmt::format("ids are 0 to {}, so {} rows are expected", expected - 1, expected)));
}

std::vector<VertexId> VerticesOfLines(const NodeTable& nodes,
                                      std::vector<VertexId> vertex_of_accepted) {
  if (nodes.accepted.empty()) return vertex_of_accepted;
  std::vector<VertexId> vertices(nodes.lines, -1);
  for (std::uint64_t line = 0; line < nodes.lines; ++line) {
    const std::int64_t accepted = nodes.accepted[line];
    if (accepted >= 0) vertices[line] = vertex_of_accepted[static_cast<std::size_t>(accepted)];
  }
  return vertices;
}

std::vector<std::int64_t> RowsOfVertices(const NodeTable& nodes,
                                         std::span<const VertexId> vertex_of_accepted,
                                         std::uint64_t vertex_count) {
  std::vector<std::int64_t> rows(vertex_count, -1);
  for (std::uint64_t line = 0; line < nodes.lines; ++line) {
    const std::int64_t accepted =
        nodes.accepted.empty() ? static_cast<std::int64_t>(line) : nodes.accepted[line];
    if (accepted < 0) continue;
    const VertexId vertex = vertex_of_accepted[static_cast<std::size_t>(accepted)];
    rows[static_cast<std::size_t>(vertex)] = static_cast<std::int64_t>(line);
  }
  return rows;
}

namespace {

void SetRangeTypes(std::span<const VertexRange> ranges, GraphInput& input) {
  for (const VertexRange& range : ranges) input.vertex_type_names.push_back(range.type);
  if (ranges.size() == 1) return;
  input.vertex_type.reserve(input.vertex_count);
  for (std::size_t type = 0; type < ranges.size(); ++type)
    input.vertex_type.insert(input.vertex_type.end(), ranges[type].count,
                             static_cast<TypeId>(type));
}

}  // namespace

void SetVertexTypes(const IngestOptions& options, const NodeTable& nodes,
                    std::span<const VertexId> vertex_of_accepted, GraphInput& input) {
  if (!options.vertex_ranges.empty()) return SetRangeTypes(options.vertex_ranges, input);
  if (nodes.type.empty()) {
    input.vertex_type_names = options.vertex_types;
    if (input.vertex_type_names.empty()) input.vertex_type_names = {"vertex"};
    return;
  }
  TypeNames names = nodes.type_names;
  const bool all_known = nodes.type.size() == input.vertex_count;
  const TypeId unknown = all_known ? TypeId{0} : names.Add("unknown");
  input.vertex_type_names = names.All();
  input.vertex_type.assign(input.vertex_count, unknown);
  for (std::size_t i = 0; i < nodes.type.size(); ++i)
    input.vertex_type[static_cast<std::size_t>(vertex_of_accepted[i])] = nodes.type[i];
}

Status SetEndTypes(const IngestOptions& options, const PartitionInput& edges, GraphInput& input) {
  if (options.end_types.empty()) return Status::Ok();
  if (input.vertex_type.empty()) {
    input.vertex_type_names = options.end_types;
    input.vertex_type.assign(input.vertex_count, 0);
  }
  return edges.ForEachBlock(
      [&](std::uint64_t, std::span<const VertexId> src, std::span<const VertexId> dst) {
        for (const VertexId vertex : src) input.vertex_type[static_cast<std::size_t>(vertex)] = 0;
        for (const VertexId vertex : dst) input.vertex_type[static_cast<std::size_t>(vertex)] = 1;
        return Status::Ok();
      });
}

void SetLayouts(const IngestOptions& options, GraphInput& input) {
  input.series = options.series;
  for (const ArrayFile& file : options.arrays) {
    if (!file.attributes) continue;
    for (ArrayInput& array : input.arrays)
      if (array.name == file.name) array.attributes = *file.attributes;
  }
  const Codec codec = options.layout == ArrayLayout::kRow ? Codec{} : options.codec;
  for (ArrayInput& array : input.arrays) {
    array.layout = options.layout;
    array.codec = codec;
    array.codec.element_bytes = DataTypeBytes(array.dtype);
    array.chunk_rows = options.chunk_rows;
    array.inner_rows = options.inner_rows;
  }
  input.attribute_layout = options.layout;
  input.attribute_codec = codec;
  input.attribute_chunk_rows = options.chunk_rows;
}

}  // namespace internal
}  // namespace rhizome
