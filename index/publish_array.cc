#include "rhizome/index/publish_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rhizome/index/graph_input.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/index/placed_rows.h"
#include "rhizome/index/stale_vertices.h"
#include "rhizome/storage/array_rules.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kDefaultMemoryBytes = std::uint64_t{256} << 20;

/// An array in the rows of one generation, below a folder of its own.
struct Written {
  std::vector<ArrayEntry> arrays;
  std::vector<FileEntry> files;
  ArraySource source(const Path& root) const { return {arrays, root, files}; }
};

void SetAttribute(ArrayEntry& entry, std::string_view key, std::string value) {
  std::erase_if(entry.attributes, [&](const auto& one) { return one.first == key; });
  entry.attributes.emplace_back(key, std::move(value));
  std::sort(entry.attributes.begin(), entry.attributes.end());
}

/// Brings an array from the rows of one generation into those of a later one. Threads: one.
class Mover {
 public:
  Mover(const MadeArray& made, const Store& current, Path root, const JobControl& control)
      : made_(made), current_(current), root_(std::move(root)), control_(control) {}

  Status Run();
  const Path& root() const { return root_; }
  const Written& array() const { return array_; }
  bool has_marks() const { return !stale_.empty(); }

  /// After Run: the marks of an array that was stored as `stored`.
  Result<Written> WriteMarks(const std::string& stored) const;
  std::uint64_t new_vertices() const {
    return vertices() - made_.made_for.manifest().info.vertices;
  }

 private:
  using Fill = std::function<Status(std::span<const VertexId> vertices, std::span<std::byte> out)>;
  std::uint64_t vertices() const { return current_.manifest().info.vertices; }
  Status MarkStale(ArrayEntry& entry);
  Result<Written> Write(const ArrayEntry& entry, const VertexOrder& to, const Fill& fill) const;

  const MadeArray& made_;
  const Store& current_;
  const Path root_;
  const JobControl& control_;
  Written array_;
  std::optional<VertexOrder> to_;
  std::vector<std::uint8_t> stale_;  // by vertex, or empty: none
};

Result<Written> Mover::Write(const ArrayEntry& entry, const VertexOrder& to,
                             const Fill& fill) const {
  RHIZOME_ASSIGN_OR_RETURN(const auto writer,
                           ChunkArrayWriter::Create(current_.fs(), root_, entry));
  std::vector<VertexId> wanted;
  std::vector<std::byte> rows;
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "move rows to the new order",
                                             .done = chunk,
                                             .total = entry.chunk_count(),
                                             .detail = entry.name}));
    const std::uint64_t begin = chunk * entry.chunk_rows;
    wanted.clear();
    for (std::uint64_t row = begin; row < std::min(entry.rows, begin + entry.chunk_rows); ++row)
      wanted.push_back(to.VertexAt(static_cast<Row>(row)));
    rows.resize(wanted.size() * entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(fill(wanted, rows));
    RHIZOME_RETURN_IF_ERROR(writer->WriteChunk(chunk, rows));
  }
  Written written;
  RHIZOME_ASSIGN_OR_RETURN(written.files, writer->Finish());
  written.arrays = writer->arrays();
  return written;
}

Status Mover::Run() {
  FileSystem& fs = current_.fs();
  RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, root_));
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, root_));
  RHIZOME_ASSIGN_OR_RETURN(const VertexOrder from, LoadOrder(made_.made_for));
  RHIZOME_ASSIGN_OR_RETURN(to_, LoadOrder(current_));
  ArrayEntry entry = made_.source.arrays.front();
  const std::uint64_t given = RowsGiven(entry);
  entry.rows = vertices();
  if (given < entry.rows) SetAttribute(entry, kRowsGivenAttribute, std::to_string(given));
  RHIZOME_RETURN_IF_ERROR(MarkStale(entry));

  const auto open = [&](const ArrayEntry& stored) {
    return ChunkArray::Open(fs, made_.source.root, stored, made_.source.files);
  };
  RHIZOME_ASSIGN_OR_RETURN(const auto old, open(made_.source.arrays.front()));
  std::unique_ptr<ChunkArray> sidecar;
  if (entry.layout == ArrayLayout::kRow) {
    const ArrayEntry* stored = FindStoredArray(made_.source.arrays, SidecarName(entry.name));
    if (stored == nullptr)
      return Status::InvalidArgument(fmt::format("'{}' has no row checksums", entry.name));
    RHIZOME_ASSIGN_OR_RETURN(sidecar, open(*stored));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      const auto rows,
      PlacedRows::Open(*old, sidecar.get(),
                       made_.memory_bytes == 0 ? kDefaultMemoryBytes : made_.memory_bytes));
  std::vector<PlacedRows::Place> places;
  const std::uint64_t row_bytes = entry.row_bytes();
  const auto fill = [&](std::span<const VertexId> wanted, std::span<std::byte> out) {
    places.clear();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (static_cast<std::uint64_t>(wanted[i]) < from.size())
        places.push_back({from.RowOf(wanted[i]), i});
      else
        FillMissingRows(entry, out.subspan(i * row_bytes, row_bytes));
    }
    return rows->Read(places, out);
  };
  RHIZOME_ASSIGN_OR_RETURN(array_, Write(entry, *to_, fill));
  return Status::Ok();
}

// As compaction marks the arrays that it carries over. The commits in between are still in the
// catalogue, because the snapshot pins the generation whose delta they were.
Status Mover::MarkStale(ArrayEntry& entry) {
  const auto origin = OriginOf(entry);
  if (!origin) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(auto handle,
                           Store::Open(current_.fs(), current_.path(), Store::Mode::kRead));
  const std::shared_ptr<const Store> store = std::move(handle);
  if (store->manifest().generation != current_.manifest().generation)
    return Status::Ok();  // another compaction: publishing is refused, and all begins again
  RHIZOME_ASSIGN_OR_RETURN(const auto parts, GraphParts::Load(store, GraphOptions{}));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto changes,
      ChangesAfter(*store, DeltaBaseOf(made_.made_for), origin->sequence, store->base_sequence()));
  const ArrayEntry* features = store->manifest().FindArray(origin->features);
  RHIZOME_ASSIGN_OR_RETURN(
      stale_, StaleVertices({.parts = *parts,
                             .view = nullptr,
                             .changes = changes.get(),
                             .first_new = made_.made_for.manifest().info.vertices,
                             .features_id = features == nullptr ? 0 : features->array_id,
                             .layers = origin->layers}));
  const auto count = std::count(stale_.begin(), stale_.end(), 1);
  if (count == 0)
    stale_.clear();
  else
    SetAttribute(entry, kStaleRowsAttribute, std::to_string(count));
  return Status::Ok();
}

// One byte a vertex: written when the name is known that the array is stored under.
Result<Written> Mover::WriteMarks(const std::string& stored) const {
  const ArrayEntry& entry = array_.arrays.front();
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry flags, DescribeArray(StaleArray(StaleName(stored)),
                                                                 entry.rows, entry.array_id + 1));
  const auto fill = [&](std::span<const VertexId> wanted, std::span<std::byte> out) {
    for (std::size_t i = 0; i < wanted.size(); ++i)
      out[i] = std::byte{stale_[static_cast<std::size_t>(wanted[i])]};
    return Status::Ok();
  };
  return Write(flags, *to_, fill);
}

/// The name under which a step has stored the array.
std::string StoredName(const Manifest& manifest, const ArrayEntry& entry) {
  std::string name;
  for (const ArrayEntry& array : manifest.arrays)
    if (array.array_id == entry.array_id && !array.name.ends_with(kSidecarSuffix))
      name = array.name;
  return name;
}

Status PublishMoved(ArrayChange& change, const Mover& mover, Written& marks,
                    const std::function<Status(ArrayChange&, const ArraySource&)>& steps) {
  RHIZOME_RETURN_IF_ERROR(steps(change, mover.array().source(mover.root())));
  if (!mover.has_marks()) return Status::Ok();
  const std::string stored = StoredName(change.manifest(), mover.array().arrays.front());
  // Until the change is committed its sources are read.
  RHIZOME_ASSIGN_OR_RETURN(marks, mover.WriteMarks(stored));
  RHIZOME_RETURN_IF_ERROR(change.Add(marks.source(mover.root())));
  return Status::Ok();
}

}  // namespace

Result<PublishReport> PublishMade(
    const Path& path, const MadeArray& made, const JobControl& control,
    const std::function<Status(ArrayChange& change, const ArraySource& source)>& steps) {
  FileSystem& fs = made.made_for.fs();
  const std::uint64_t made_in = made.made_for.manifest().generation;
  while (true) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(const auto current, Store::Open(fs, path, Store::Mode::kRead));
    PublishReport report{.generation = current->manifest().generation};
    Status status;
    if (report.generation == made_in) {
      status = ArrayChange::Run(fs, path, made_in,
                                [&](ArrayChange& change) { return steps(change, made.source); });
    } else {
      Mover mover(made, *current, made.source.root / fmt::format("moved-{}", report.generation),
                  control);
      RHIZOME_RETURN_IF_ERROR(mover.Run());
      report.new_vertices = mover.new_vertices();
      Written marks;
      status = ArrayChange::Run(fs, path, report.generation, [&](ArrayChange& change) {
        return PublishMoved(change, mover, marks, steps);
      });
    }
    if (status.ok()) return report;
    if (status.code() != StatusCode::kInvalidArgument) return Fail(status);
    // Refused for what it is, or because yet another compaction came?
    RHIZOME_ASSIGN_OR_RETURN(const auto now, Store::Open(fs, path, Store::Mode::kRead));
    if (now->manifest().generation == report.generation) return Fail(status);
  }
}

}  // namespace rhizome
