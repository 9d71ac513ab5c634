#include "index/topology/vertex_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "index/topology/section_struct.h"
#include "index/topology/vertex_ids_format.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/utf8.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint32_t Kind(IdsSection section) { return static_cast<std::uint32_t>(section); }

// Returns the vertex ids in ascending order of external id.
// Errors: kInvalidArgument, a repeated id.
template <typename T>
Result<std::vector<std::uint64_t>> SortIds(std::span<const T> ids,
                                           std::span<const VertexId> deleted = {}) {
  std::vector<std::uint64_t> sorted;
  sorted.reserve(ids.size() - deleted.size());
  auto next_deleted = deleted.begin();
  for (std::uint64_t v = 0; v < ids.size(); ++v) {
    if (next_deleted != deleted.end() && static_cast<std::uint64_t>(*next_deleted) == v) {
      ++next_deleted;
    } else {
      sorted.push_back(v);
    }
  }
  RHIZOME_DCHECK(next_deleted == deleted.end());  // `deleted` ascends and holds only vertices of
                                                  // the store
  std::sort(sorted.begin(), sorted.end(),
            [&](std::uint64_t a, std::uint64_t b) { return ids[a] < ids[b]; });
  const auto repeated =
      std::adjacent_find(sorted.begin(), sorted.end(),
                         [&](std::uint64_t a, std::uint64_t b) { return ids[a] == ids[b]; });
  if (repeated != sorted.end()) {
    const auto [first, second] = std::minmax(repeated[0], repeated[1]);
    return Fail(Status::InvalidArgument(
        fmt::format("vertices {} and {} have the same external id \"{}\"; give each vertex its own",
                    first, second, ids[first])));
  }
  return sorted;
}

Status WriteHeader(SectionFileWriter& writer, ExternalIdKind kind, std::uint64_t vertices,
                   std::uint64_t sorted) {
  const std::uint64_t deleted = vertices - sorted;
  if (deleted > std::numeric_limits<std::uint32_t>::max())
    return Status::InvalidArgument(
        fmt::format("there are {} deleted vertices, but at most 2^32 - 1 are possible", deleted));
  const IdsHeader header{.vertices = vertices,
                         .id_kind = static_cast<std::uint32_t>(kind),
                         .deleted = static_cast<std::uint32_t>(deleted)};
  return WriteStructs<IdsHeader>(writer, Kind(IdsSection::kHeader), std::span(&header, 1));
}

/// Joins many short ids for one Append.
class PieceWriter {
 public:
  explicit PieceWriter(SectionFileWriter& writer) : writer_(writer) {}
  Status Add(std::string_view id) {
    piece_ += id;
    return piece_.size() < kPieceBytes ? Status::Ok() : Flush();
  }
  Status Flush() {
    RHIZOME_RETURN_IF_ERROR(writer_.Append(std::as_bytes(std::span(piece_))));
    piece_.clear();
    return Status::Ok();
  }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 16;
  SectionFileWriter& writer_;
  std::string piece_;
};

Status WriteStrings(SectionFileWriter& writer, std::span<const std::string> ids) {
  std::vector<std::uint64_t> offsets(ids.size() + 1, 0);
  for (std::size_t i = 0; i < ids.size(); ++i) offsets[i + 1] = offsets[i] + ids[i].size();
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, Kind(IdsSection::kOffsets), offsets));
  RHIZOME_RETURN_IF_ERROR(writer.BeginSection(Kind(IdsSection::kBytes), 1));
  PieceWriter pieces(writer);
  for (const std::string& id : ids) RHIZOME_RETURN_IF_ERROR(pieces.Add(id));
  return pieces.Flush();
}

Status WriteOffsets(SectionFileWriter& writer, const IdStream& ids) {
  RHIZOME_ASSIGN_OR_RETURN(ColumnWriter offsets,
                           ColumnWriter::Begin(writer, Kind(IdsSection::kOffsets), ids.bytes));
  std::uint64_t offset = 0;
  RHIZOME_RETURN_IF_ERROR(offsets.Add(offset));
  RHIZOME_RETURN_IF_ERROR(
      ids.read([&](std::string_view id) { return offsets.Add(offset += id.size()); }));
  return offsets.Flush();
}

}  // namespace

VertexIds VertexIds::Dense(std::uint64_t vertex_count) {
  VertexIds ids;
  ids.vertex_count_ = vertex_count;
  return ids;
}

Status VertexIds::Write(ByteSink& sink, const StoreId& store_id, std::span<const std::int64_t> ids,
                        std::span<const VertexId> deleted) {
  RHIZOME_ASSIGN_OR_RETURN(const auto sorted, SortIds(ids, deleted));
  SectionFileWriter writer(sink, FileKind::kVertexIds, store_id);
  RHIZOME_RETURN_IF_ERROR(WriteHeader(writer, ExternalIdKind::kInteger, ids.size(), sorted.size()));
  RHIZOME_RETURN_IF_ERROR(writer.AddSection(Kind(IdsSection::kIntegers), ids));
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, Kind(IdsSection::kSorted), sorted));
  return writer.Finish();
}

Status VertexIds::Write(ByteSink& sink, const StoreId& store_id, std::span<const std::string> ids,
                        std::span<const VertexId> deleted) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!IsUtf8(ids[i]))
      return Status::InvalidArgument(fmt::format(
          "the external id of vertex {} is not valid UTF-8; convert the input to UTF-8", i));
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto sorted, SortIds(ids, deleted));
  SectionFileWriter writer(sink, FileKind::kVertexIds, store_id);
  RHIZOME_RETURN_IF_ERROR(WriteHeader(writer, ExternalIdKind::kString, ids.size(), sorted.size()));
  RHIZOME_RETURN_IF_ERROR(WriteStrings(writer, ids));
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, Kind(IdsSection::kSorted), sorted));
  return writer.Finish();
}

Status VertexIds::Write(ByteSink& sink, const StoreId& store_id, const IdStream& ids) {
  SectionFileWriter writer(sink, FileKind::kVertexIds, store_id);
  RHIZOME_RETURN_IF_ERROR(WriteHeader(writer, ids.kind, ids.vertices, ids.sorted));
  IdsSection bytes = IdsSection::kIntegers;
  if (ids.kind == ExternalIdKind::kString) {
    bytes = IdsSection::kBytes;
    RHIZOME_RETURN_IF_ERROR(WriteOffsets(writer, ids));
  }
  RHIZOME_RETURN_IF_ERROR(
      writer.BeginSection(Kind(bytes), bytes == IdsSection::kIntegers ? sizeof(std::int64_t) : 1));
  PieceWriter pieces(writer);
  RHIZOME_RETURN_IF_ERROR(ids.read([&](std::string_view id) { return pieces.Add(id); }));
  RHIZOME_RETURN_IF_ERROR(pieces.Flush());
  RHIZOME_ASSIGN_OR_RETURN(ColumnWriter sorted,
                           ColumnWriter::Begin(writer, Kind(IdsSection::kSorted), ids.largest));
  RHIZOME_RETURN_IF_ERROR(
      ids.read_sorted([&](std::uint64_t vertex) { return sorted.Add(vertex); }));
  RHIZOME_RETURN_IF_ERROR(sorted.Flush());
  return writer.Finish();
}

Status VertexIds::Corrupt(const std::string& what) const {
  return Status::Corruption(fmt::format("{}: {}", file_->path().string(), what));
}

namespace {

// Open the sorted side. LoadSorted reads all of it, even if the file is paged.
Result<Column> ReadSorted(const SectionFile& file, const IdsHeader& header) {
  return Column::Read(file, Kind(IdsSection::kSorted), header.vertices - header.deleted,
                      /*limit=*/header.vertices);
}
Result<Column> LoadSorted(const SectionFile& file, const IdsHeader& header) {
  return Column::Load(file, Kind(IdsSection::kSorted), header.vertices - header.deleted);
}

// Returns the vertices that the sorted side of a dictionary omits, sorted.
// Errors: kCorruption, it names a vertex that does not exist, or one twice.
Result<std::vector<VertexId>> OmittedFrom(const Column& sorted, const SectionFile& file,
                                          const IdsHeader& header) {
  const auto corrupt = [&](std::string_view what) {
    return Fail(Status::Corruption(fmt::format("{}: sorted ids: {}", file.path().string(), what)));
  };
  std::vector<VertexId> omitted;
  if (header.deleted == 0) return omitted;
  std::vector<bool> found(header.vertices, false);
  for (std::uint64_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] >= header.vertices) return corrupt("a vertex does not exist");
    found[sorted[i]] = true;
  }
  for (std::uint64_t v = 0; v < header.vertices; ++v)
    if (!found[v]) omitted.push_back(static_cast<VertexId>(v));
  if (omitted.size() != header.deleted) return corrupt("a vertex is repeated");
  return omitted;
}

}  // namespace

// Parses a dictionary:
// 1. compares the header with the manifest;
// 2. reads the ids;
// 3. checks that the sorted side ascends, unless the file is paged;
// 4. finds the vertices that it omits, which are the deleted ones.
Result<VertexIds> VertexIds::Parse(SectionFile file, ExternalIdKind kind,
                                   std::uint64_t vertex_count) {
  VertexIds ids;
  ids.file_ = std::move(file);
  ids.kind_ = kind;
  ids.vertex_count_ = vertex_count;
  RHIZOME_ASSIGN_OR_RETURN(const auto headers,
                           ReadStructs<IdsHeader>(*ids.file_, Kind(IdsSection::kHeader), 1));
  const IdsHeader& header = headers.front();
  if (header.vertices != vertex_count)
    return Fail(ids.Corrupt(fmt::format("header: {} vertices, but the manifest has {}",
                                        header.vertices, vertex_count)));
  if (header.id_kind != static_cast<std::uint32_t>(kind) || header.deleted > vertex_count)
    return Fail(
        ids.Corrupt("header: the kind of ids differs from the manifest, or there are more deleted "
                    "vertices than vertices"));
  const auto read = header.deleted == 0 ? &ReadSorted : &LoadSorted;
  RHIZOME_ASSIGN_OR_RETURN(ids.sorted_, read(*ids.file_, header));
  RHIZOME_RETURN_IF_ERROR(kind == ExternalIdKind::kString ? ids.ReadStrings() : ids.ReadIntegers());
  if (!ids.paged()) RHIZOME_RETURN_IF_ERROR(ids.CheckSorted());
  RHIZOME_ASSIGN_OR_RETURN(ids.deleted_, OmittedFrom(ids.sorted_, *ids.file_, header));
  return ids;
}

Result<std::vector<VertexId>> VertexIds::ParseDeleted(const SectionFile& file,
                                                      std::uint64_t vertex_count) {
  RHIZOME_ASSIGN_OR_RETURN(const auto headers,
                           ReadStructs<IdsHeader>(file, Kind(IdsSection::kHeader), 1));
  const IdsHeader& header = headers.front();
  const auto corrupt = [&](std::string_view what) {
    return Fail(Status::Corruption(fmt::format("{}: {}", file.path().string(), what)));
  };
  if (header.vertices != vertex_count || header.deleted > vertex_count)
    return corrupt(
        "header: the number of vertices differs from the manifest, or there are more deleted "
        "vertices than vertices");
  RHIZOME_ASSIGN_OR_RETURN(const auto sorted, LoadSorted(file, header));
  return OmittedFrom(sorted, file, header);
}

Status VertexIds::ReadIntegers() {
  if (kind_ != ExternalIdKind::kInteger) return Corrupt("dense ids have no dictionary");
  const std::uint32_t kind = Kind(IdsSection::kIntegers);
  RHIZOME_RETURN_IF_ERROR(file_->Expect(kind, sizeof(std::int64_t), vertex_count_));
  RHIZOME_ASSIGN_OR_RETURN(integers_, Column::Read(*file_, kind, vertex_count_));
  return Status::Ok();
}

Status VertexIds::ReadStrings() {
  RHIZOME_ASSIGN_OR_RETURN(offsets_,
                           Column::Read(*file_, Kind(IdsSection::kOffsets), vertex_count_ + 1));
  const std::uint32_t bytes = Kind(IdsSection::kBytes);
  RHIZOME_RETURN_IF_ERROR(file_->Expect(bytes, 1, file_->Count(bytes)));
  RHIZOME_ASSIGN_OR_RETURN(bytes_, Column::Read(*file_, bytes, file_->Count(bytes)));
  if (offsets_[0] != 0 || offsets_[vertex_count_] != bytes_.size())
    return Corrupt("offsets do not begin at 0 and end at the last byte");
  if (paged()) return Status::Ok();
  for (std::uint64_t i = 0; i < vertex_count_; ++i) {
    if (offsets_[i] > offsets_[i + 1] || offsets_[i + 1] > bytes_.size())
      return Corrupt(fmt::format("offsets: the offset of vertex {} is out of order", i + 1));
    if (!IsUtf8(StringAt(i))) return Corrupt(fmt::format("the id of vertex {} is not UTF-8", i));
  }
  return Status::Ok();
}

// Checks that the ids ascend strictly, which implies that the ids, and the vertices, are distinct.
// Vertices missing from the sorted side were deleted.
Status VertexIds::CheckSorted() const {
  for (std::uint64_t i = 0; i < sorted_.size(); ++i) {
    const std::uint64_t vertex = sorted_[i];
    if (vertex >= vertex_count_)
      return Corrupt(fmt::format("sorted ids, entry {}: {} is beyond the {} vertices", i, vertex,
                                 vertex_count_));
    if (i == 0) continue;
    const std::uint64_t before = sorted_[i - 1];
    const bool rises = kind_ == ExternalIdKind::kString ? StringAt(before) < StringAt(vertex)
                                                        : IntegerAt(before) < IntegerAt(vertex);
    if (!rises) return Corrupt(fmt::format("sorted ids, entry {}: is not ascending", i));
  }
  return Status::Ok();
}

std::string_view VertexIds::StringAt(std::uint64_t vertex) const {
  const std::uint64_t begin = offsets_[vertex];
  const std::uint64_t size = offsets_[vertex + 1] - begin;
  const auto bytes = bytes_.Bytes(begin, size);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (bytes_.paged() && !IsUtf8(text))
    ThrowStatus(Corrupt(fmt::format("the id of vertex {} is not UTF-8", vertex)));
  return text;
}

// Returns the first position of the sorted side whose vertex does not satisfy `below`.
template <typename Below>
std::uint64_t VertexIds::SortedBound(Below&& below) const {
  std::uint64_t begin = 0;
  std::uint64_t end = sorted_.size();
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if (below(sorted_[middle])) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

std::uint64_t VertexIds::LowerBound(const ExternalId& id) const {
  if (kind_ == ExternalIdKind::kString) {
    const std::string& text = std::get<std::string>(id);
    return SortedBound([&](std::uint64_t vertex) { return StringAt(vertex) < text; });
  }
  const std::int64_t integer = std::get<std::int64_t>(id);
  if (kind_ == ExternalIdKind::kDense)
    return integer < 0 ? 0 : std::min(static_cast<std::uint64_t>(integer), vertex_count_);
  return SortedBound([&](std::uint64_t vertex) { return IntegerAt(vertex) < integer; });
}

std::optional<VertexId> VertexIds::FindInteger(std::int64_t id) const {
  if (kind_ == ExternalIdKind::kDense) {
    if (id < 0 || static_cast<std::uint64_t>(id) >= vertex_count_) return std::nullopt;
    return id;
  }
  const std::uint64_t begin =
      SortedBound([&](std::uint64_t vertex) { return IntegerAt(vertex) < id; });
  if (begin == sorted_.size() || IntegerAt(sorted_[begin]) != id) return std::nullopt;
  return static_cast<VertexId>(sorted_[begin]);
}

std::optional<VertexId> VertexIds::FindString(std::string_view id) const {
  const std::uint64_t begin =
      SortedBound([&](std::uint64_t vertex) { return StringAt(vertex) < id; });
  if (begin == sorted_.size() || StringAt(sorted_[begin]) != id) return std::nullopt;
  return static_cast<VertexId>(sorted_[begin]);
}

std::optional<VertexId> VertexIds::Find(const ExternalId& id) const {
  if (kind_ == ExternalIdKind::kString) return FindString(ToString(id));
  if (const auto* integer = std::get_if<std::int64_t>(&id)) return FindInteger(*integer);
  const auto integer = ParseCanonicalInteger(std::get<std::string>(id));
  return integer ? FindInteger(*integer) : std::nullopt;
}

ExternalId VertexIds::IdOf(VertexId vertex) const {
  const auto index = static_cast<std::size_t>(vertex);
  switch (kind_) {
    case ExternalIdKind::kString:
      return std::string(StringAt(index));
    case ExternalIdKind::kInteger:
      return IntegerAt(index);
    default:
      return vertex;
  }
}

}  // namespace internal
}  // namespace rhizome
