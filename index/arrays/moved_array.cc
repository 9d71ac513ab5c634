#include "index/arrays/moved_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "index/delta/delta.h"
#include "index/delta/delta_row_writer.h"
#include "index/delta/graph_parts.h"
#include "index/delta/stale_vertices.h"
#include "index/delta/type_facts.h"
#include "index/generation/graph_input.h"
#include "index/ingest/row_sources.h"
#include "index/topology/type_rows.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/file_copy.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kDefaultMoveMemoryBytes = std::uint64_t{256} << 20;

/// Maximum bytes of rows in one commit of the delta, which is held in memory.
constexpr std::uint64_t kCommitBytes = std::uint64_t{4} << 20;

void SetAttribute(ArrayEntry& entry, std::string_view key, std::string value) {
  std::erase_if(entry.attributes, [&](const auto& one) { return one.first == key; });
  entry.attributes.emplace_back(key, std::move(value));
  std::sort(entry.attributes.begin(), entry.attributes.end());
}

/// Returns the name under which a step has stored the array.
std::string StoredName(const Manifest& manifest, const ArrayEntry& entry) {
  std::string name;
  for (const ArrayEntry& array : manifest.arrays)
    if (array.array_id == entry.array_id && !array.name.ends_with(kSidecarSuffix))
      name = array.name;
  return name;
}

/// Opens an array, one of `arrays`, for reads by row. `open` opens another array of them.
template <typename Open>
Result<std::unique_ptr<PlacedRows>> OpenRows(const ChunkArray& array,
                                             std::span<const ArrayEntry> arrays, const Open& open,
                                             std::uint64_t memory_bytes) {
  std::unique_ptr<ChunkArray> sidecar;
  if (array.entry().layout == ArrayLayout::kRow) {
    const std::string& name = array.entry().name;
    const ArrayEntry* stored = FindStoredArray(arrays, SidecarName(name));
    if (stored == nullptr)
      return Fail(
          Status::InvalidArgument(fmt::format("'{}' has no row checksums", ShownName(name))));
    RHIZOME_ASSIGN_OR_RETURN(sidecar, open(*stored));
  }
  return PlacedRows::Open(array, sidecar.get(), memory_bytes);
}

}  // namespace

bool MovedArray::same_generation() const {
  return made_.made_for.manifest().generation == current_.manifest().generation;
}

// Writes the array for the current generation:
// 1. opens the job's array, and the array to append to;
// 2. describes the new array, and finds its stale rows;
// 3. copies the rows chunk by chunk, or links full chunks if the order of rows is the same.
Status MovedArray::Write() {
  FileSystem& fs = current_.fs();
  RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, root_));
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, root_));
  RHIZOME_RETURN_IF_ERROR(OpenMade());
  RHIZOME_ASSIGN_OR_RETURN(to_, LoadOrder(current_));
  if (made_.appended) RHIZOME_RETURN_IF_ERROR(OpenKept());
  ArrayEntry entry = NewEntry();
  if (!same_generation() && kept_ == nullptr) RHIZOME_RETURN_IF_ERROR(MarkStale(entry));
  const bool link = same_generation() && entry.layout == ArrayLayout::kChunk;
  const auto fill = [&](std::span<const VertexId> wanted, std::span<std::byte> out) {
    return ReadRows(wanted, out);
  };
  RHIZOME_ASSIGN_OR_RETURN(array_, WriteFiles(entry, link, fill));
  return Status::Ok();
}

ArrayEntry MovedArray::NewEntry() const {
  ArrayEntry entry = old_->entry();
  std::uint64_t given = RowsGiven(entry);
  if (kept_ != nullptr) {
    entry = kept_->entry();
    given = std::max(RowsGiven(entry), made_.appended->first + made_.appended->count);
  }
  entry.rows = vertices();
  std::erase_if(entry.attributes, [](const auto& one) { return one.first == kRowsGivenAttribute; });
  if (given < entry.rows) SetAttribute(entry, kRowsGivenAttribute, std::to_string(given));
  return entry;
}

Status MovedArray::OpenMade() {
  const ArraySource& source = made_.source;
  const auto open = [&](const ArrayEntry& stored) {
    return ChunkArray::Open(current_.fs(), source.root, stored, source.files);
  };
  RHIZOME_ASSIGN_OR_RETURN(from_, LoadOrder(made_.made_for));
  RHIZOME_ASSIGN_OR_RETURN(old_, open(source.arrays.front()));
  RHIZOME_ASSIGN_OR_RETURN(rows_, OpenRows(*old_, source.arrays, open, memory_bytes()));
  return Status::Ok();
}

/// Opens the array to append to. Compactions have merged the rows that were put during the job, but
/// only the deltas in between show which of the appended rows were among them.
Status MovedArray::OpenKept() {
  const auto& arrays = current_.manifest().arrays;
  const ArrayEntry* entry = FindStoredArray(arrays, made_.appended->array);
  if (entry == nullptr || entry->array_id != old_->entry().array_id)
    return Status::NotFound(
        fmt::format("array '{}' was dropped or replaced while its rows were computed",
                    ShownName(made_.appended->array)));
  const auto open = [&](const ArrayEntry& stored) { return current_.OpenArray(stored.name); };
  RHIZOME_ASSIGN_OR_RETURN(kept_, open(*entry));
  RHIZOME_ASSIGN_OR_RETURN(kept_rows_, OpenRows(*kept_, arrays, open, memory_bytes()));
  RHIZOME_ASSIGN_OR_RETURN(
      put_, ChangesAfter(current_, DeltaBaseOf(made_.made_for), made_.made_for.base_sequence(),
                         current_.base_sequence()));
  return Status::Ok();
}

std::uint64_t MovedArray::memory_bytes() const {
  const std::uint64_t all = made_.memory_bytes == 0 ? kDefaultMoveMemoryBytes : made_.memory_bytes;
  return made_.appended ? all / 2 : all;
}

bool MovedArray::IsKept(VertexId vertex) const {
  if (kept_ == nullptr) return false;
  const auto v = static_cast<std::uint64_t>(vertex);
  const bool is_new =
      v >= made_.appended->first && v - made_.appended->first < made_.appended->count;
  return !is_new || (put_ != nullptr && put_->FindRow(kept_->entry().array_id, vertex) != nullptr);
}

/// Reads the rows that the job computed. Rows of vertices that were new in its snapshot follow the
/// others, in the order of their ids.
Status MovedArray::ReadRows(std::span<const VertexId> wanted, std::span<std::byte> out) {
  const ArrayEntry& entry = old_->entry();
  const std::uint64_t row_bytes = entry.row_bytes();
  places_.clear();
  kept_places_.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto vertex = static_cast<std::uint64_t>(wanted[i]);
    if (IsKept(wanted[i]))
      kept_places_.push_back({to_->RowOf(wanted[i]), i});
    else if (vertex >= entry.rows)
      FillMissingRows(entry, out.subspan(i * row_bytes, row_bytes));
    else
      places_.push_back({vertex < from_->size() ? from_->RowOf(wanted[i]) : wanted[i], i});
  }
  if (!kept_places_.empty()) RHIZOME_RETURN_IF_ERROR(kept_rows_->Read(kept_places_, out));
  return rows_->Read(places_, out);
}

/// Writes the files of an array. If `link` is true, full chunks are unchanged, and are linked.
Result<MovedArray::Files> MovedArray::WriteFiles(const ArrayEntry& entry, bool link,
                                                 const Fill& fill) const {
  RHIZOME_ASSIGN_OR_RETURN(const auto writer,
                           ChunkArrayWriter::Create(current_.fs(), root_, entry));
  const auto of_type = RowsOfBound(entry, *to_, current_.manifest().info.vertex_types);
  std::vector<std::byte> rows;
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "move rows to the new order",
                                             .done = chunk,
                                             .total = entry.chunk_count(),
                                             .detail = ShownName(entry.name)}));
    const std::uint64_t begin = chunk * entry.chunk_rows;
    const std::uint64_t end = std::min(entry.rows, begin + entry.chunk_rows);
    if (of_type && !of_type->AnyIn(begin, end)) {
      RHIZOME_RETURN_IF_ERROR(writer->LeaveOut(chunk));
      continue;
    }
    if (link) {
      RHIZOME_ASSIGN_OR_RETURN(const bool linked, LinkChunk(*writer, chunk));
      if (linked) continue;
    }
    rows.resize((end - begin) * entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(FillChunk(entry, of_type ? &*of_type : nullptr, begin, fill, rows));
    RHIZOME_RETURN_IF_ERROR(writer->WriteChunk(chunk, rows));
  }
  Files written;
  RHIZOME_ASSIGN_OR_RETURN(written.files, writer->Finish());
  written.arrays = writer->arrays();
  return written;
}

/// Fills the rows of a chunk, which begin with row `begin`. In a bound array, only the rows of the
/// type come from `fill`.
Status MovedArray::FillChunk(const ArrayEntry& entry, const TypeRows* of_type, std::uint64_t begin,
                             const Fill& fill, std::span<std::byte> rows) const {
  const std::uint64_t row_bytes = entry.row_bytes();
  const std::uint64_t end = begin + rows.size() / row_bytes;
  std::vector<VertexId> wanted;
  for (std::uint64_t row = begin; row < end; ++row)
    if (of_type == nullptr || of_type->Has(row))
      wanted.push_back(to_->VertexAt(static_cast<Row>(row)));
  if (of_type == nullptr) return fill(wanted, rows);
  std::vector<std::byte> packed(wanted.size() * row_bytes);
  RHIZOME_RETURN_IF_ERROR(fill(wanted, packed));
  PlaceOfType(entry, *of_type, begin, packed, rows);
  return Status::Ok();
}

Result<bool> MovedArray::LinkChunk(ChunkArrayWriter& writer, std::uint64_t chunk) const {
  const ArrayEntry& entry = writer.entry();
  if ((chunk + 1) * entry.chunk_rows > entry.rows) return false;
  const std::string path = ChunkPath(entry.name, chunk);
  const auto& files = made_.source.files;  // sorted by path by their writer
  const auto file =
      std::lower_bound(files.begin(), files.end(), path,
                       [](const FileEntry& one, const std::string& at) { return one.path < at; });
  if (file == files.end() || file->path != path) return false;
  RHIZOME_RETURN_IF_ERROR(
      LinkOrCopyFile(current_.fs(), made_.source.root / path, root_ / path, file->size_bytes));
  RHIZOME_RETURN_IF_ERROR(writer.AdoptChunk(chunk, *file));
  return true;
}

// Marks stale rows in the same way as compaction does for carried arrays. The commits in between
// are still in the catalogue, because the snapshot pins the generation whose delta had them.
Status MovedArray::MarkStale(ArrayEntry& entry) {
  const auto origin = OriginOf(entry);
  if (!origin) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(auto handle,
                           Store::Open(current_.fs(), current_.path(), Store::Mode::kRead));
  const std::shared_ptr<const Store> store = std::move(handle);
  if (store->manifest().generation != current_.manifest().generation)
    return Status::Ok();  // after another compaction, publishing is refused and repeated
  RHIZOME_ASSIGN_OR_RETURN(const auto parts, GraphParts::Load(store, GraphOptions{}));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto changes,
      ChangesAfter(*store, DeltaBaseOf(made_.made_for), origin->sequence, store->base_sequence()));
  RHIZOME_ASSIGN_OR_RETURN(stale_,
                           StaleVertices({.parts = *parts,
                                          .view = nullptr,
                                          .changes = changes.get(),
                                          .first_new = old_->entry().rows,
                                          .features_ids = FeatureIdsOf(*origin, store->manifest()),
                                          .layers = origin->layers,
                                          .direction = origin->direction}));
  const auto count = std::count(stale_.begin(), stale_.end(), 1);
  if (count == 0)
    stale_.clear();
  else
    SetAttribute(entry, kStaleRowsAttribute, std::to_string(count));
  return Status::Ok();
}

Status MovedArray::PublishRest(ArrayChange& change) {
  if (!stale_.empty()) RHIZOME_RETURN_IF_ERROR(PublishMarks(change));
  return PutNewRows(change.store());
}

// Writes one byte a vertex, once the stored name of the array is known.
Status MovedArray::PublishMarks(ArrayChange& change) {
  const ArrayEntry& entry = array_.arrays.front();
  const std::string stored = StoredName(change.manifest(), entry);
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry flags, DescribeArray(StaleArray(StaleName(stored)),
                                                                 entry.rows, entry.array_id + 1));
  const auto fill = [&](std::span<const VertexId> wanted, std::span<std::byte> out) {
    for (std::size_t i = 0; i < wanted.size(); ++i)
      out[i] = std::byte{stale_[static_cast<std::size_t>(wanted[i])]};
    return Status::Ok();
  };
  RHIZOME_ASSIGN_OR_RETURN(marks_, WriteFiles(flags, /*link=*/false, fill));
  RHIZOME_RETURN_IF_ERROR(change.Add({marks_.arrays, root_, marks_.files}));
  return Status::Ok();
}

/// Puts the rows of vertices that the generation's files do not have. The job computed no rows from
/// rows_given on. For appended rows, it also computed none before them, and rows that were put
/// during the job are kept.
Status MovedArray::PutNewRows(Store& store) {
  const ArrayEntry& entry = old_->entry();
  const std::uint64_t end = RowsGiven(entry);
  std::uint64_t first = vertices();
  if (made_.appended) first = std::max<std::uint64_t>(first, made_.appended->first);
  if (first >= end) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const auto delta, Delta::Load(Delta::Empty(DeltaBaseOf(store)), store));
  RHIZOME_ASSIGN_OR_RETURN(const auto writer, DeltaRowWriter::Open(store));
  const auto type = TypeNamed(delta->vertex_types(), BoundType(entry));
  const auto is_other = [&](VertexId vertex) {
    return type && TypeOfVertex(*to_, *delta, vertex) != *type;
  };
  const auto needs_none = [&](std::uint64_t v) {
    const auto vertex = static_cast<VertexId>(v);
    return is_other(vertex) || (made_.appended && delta->RowCommit(entry.array_id, vertex));
  };
  const std::uint64_t at_once = std::max<std::uint64_t>(kCommitBytes / entry.row_bytes(), 1);
  std::vector<VertexId> wanted;
  std::vector<std::byte> rows;
  const std::uint64_t begin = first;
  while (first < end) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "put rows of new vertices",
                                             .done = first - begin,
                                             .total = end - begin,
                                             .detail = ShownName(entry.name)}));
    wanted.clear();
    for (std::uint64_t v = first; v < std::min(end, first + at_once) && !needs_none(v); ++v)
      wanted.push_back(static_cast<VertexId>(v));
    if (wanted.empty()) {
      ++first;
      continue;
    }
    rows.resize(wanted.size() * entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(ReadRows(wanted, rows));
    RHIZOME_RETURN_IF_ERROR(
        writer->Put(entry.array_id, static_cast<VertexId>(first), entry.row_bytes(), rows));
    first += wanted.size();
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
