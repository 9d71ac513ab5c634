// Reads one partition of the topology. Lists come from one of three places: plain arrays in memory,
// compressed bytes in memory, or the partition file. FetchList covers all three: it finds the
// extent of a list, reads the extent through the block cache if there is one, and decodes the list.

#include "index/topology/adjacency.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "index/topology/block_cache.h"
#include "index/topology/compressed_list.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"
#include "storage/section/block_file.h"

namespace rhizome {
inline namespace internal {

std::string PartitionPath(std::uint32_t partition) {
  return fmt::format("topology/part-{:04}.adj", partition);
}

bool Adjacency::has(Direction direction) const {
  switch (direction) {
    case Direction::kOut:
      return keeps_out_;
    case Direction::kIn:
      return symmetric_ || keeps_in_;
    default:
      return has(Direction::kOut) && has(Direction::kIn);
  }
}

std::optional<LocalId> Adjacency::Find(Row row) const {
  const auto wanted = static_cast<std::uint64_t>(row);
  if (grouped_) {
    if (row >= base_ && row - base_ < static_cast<Row>(owned_count_))
      return static_cast<LocalId>(row - base_);
  } else {
    const std::size_t i = owned_rows_.LowerBound(0, owned_count_, wanted);
    if (i < owned_count_ && owned_rows_[i] == wanted) return static_cast<LocalId>(i);
  }
  const std::size_t i = mirrors_.LowerBound(0, mirrors_.size(), wanted);
  if (i == mirrors_.size() || mirrors_[i] != wanted) return std::nullopt;
  return static_cast<LocalId>(owned_count_ + i);
}

Adjacency::Range Adjacency::EntriesOfType(LocalId local, Direction direction, TypeId type) const {
  const Side& lists = side(direction);
  const Range all = Entries(local, direction);
  const Range none{all.first, 0};
  if (lists.type_lists.empty()) return type == 0 ? all : none;
  const std::size_t list = lists.type_lists[local];
  const std::size_t begin = type_list_offsets_[list];
  const std::size_t end = type_list_offsets_[list + 1];
  const std::size_t entry = types_.LowerBound(begin, end, type);
  if (entry == end || types_[entry] != type) return none;
  const std::uint64_t first = entry == begin ? 0 : type_ends_[entry - 1];
  return {all.first + first, type_ends_[entry] - first};
}

std::span<const LocalId> Adjacency::ReadList(LocalId local, Direction direction,
                                             std::vector<LocalId>& scratch) const {
  RHIZOME_CHECK(resident_);
  if (codec_ == TopologyCodec::kNone) return Neighbors(local, direction).neighbors;
  // The parser has decoded every list.
  RHIZOME_CHECK(DecodeList(local, direction, CompressedBytes(local, direction), scratch));
  return scratch;
}

Result<std::span<const LocalId>> Adjacency::FetchList(LocalId local, Direction direction,
                                                      std::vector<LocalId>& scratch) const {
  if (resident_) return ReadList(local, direction, scratch);
  RHIZOME_RETURN_IF_ERROR(CheckEntries(local, direction));
  const Extent extent = ExtentOf(local, direction);
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadExtent(extent));
  if (!DecodeList(local, direction, bytes, scratch))
    return Fail(
        Status::Corruption(fmt::format("{}: offset {}: the list of local vertex {} cannot "
                                       "be decoded",
                                       file_.path().string(), extent.offset_bytes, local)));
  return std::span<const LocalId>(scratch);
}

// Checks what the callers of Entries and EntriesOfType rely on: the entries exist, and the type
// list divides them into runs of ascending types.
Status Adjacency::CheckPaged(LocalId local, Direction direction) const {
  const auto corrupt = [&](std::string_view what) {
    return Status::Corruption(
        fmt::format("{}: local vertex {}: {}", file_.path().string(), local, what));
  };
  if (local >= vertex_count()) return corrupt("does not exist");
  const Side& lists = side(direction);
  const Range all = Entries(local, direction);
  if (all.first > edge_count_ || all.count > edge_count_ - all.first)
    return corrupt("its offsets are out of range or order");
  if (codec_ != TopologyCodec::kNone) {
    const std::uint64_t begin = lists.list_offsets[local];
    const std::uint64_t end = lists.list_offsets[local + std::size_t{1}];
    if (begin > end || end > lists.list_bytes)
      return corrupt("the offsets of its compressed list are out of range or order");
  }
  if (lists.type_lists.empty()) return Status::Ok();
  const std::size_t list = lists.type_lists[local];
  const std::size_t end = type_list_offsets_[list + 1];
  std::uint64_t covered = 0;
  for (std::size_t k = type_list_offsets_[list]; k < end; ++k) {
    if (type_ends_[k] <= covered || type_ends_[k] > all.count ||
        (covered > 0 && types_[k] <= types_[k - 1]))
      return corrupt("its type list is out of range or order");
    covered = type_ends_[k];
  }
  return covered == all.count ? Status::Ok() : corrupt("its type list does not match its list");
}

void Adjacency::KeepBlocks(std::shared_ptr<BlockCache> cache, std::uint64_t first_block) {
  cache_ = std::move(cache);
  first_block_ = first_block;
}

std::uint64_t Adjacency::block_count() const {
  return (file_.size_bytes() + kSectionBlockBytes - 1) / kSectionBlockBytes;
}

// Reads whole blocks. The last block ends where the checksummed part of the file ends.
Result<std::vector<std::byte>> Adjacency::ReadBlocks(std::uint64_t first,
                                                     std::uint64_t count) const {
  const std::uint64_t begin = first * kSectionBlockBytes;
  const std::uint64_t covered = file_.blocks()->footer().crc_table_offset;
  const std::uint64_t end = std::min((first + count) * kSectionBlockBytes, covered);
  return file_.ReadBytes(begin, end - begin);
}

Status Adjacency::LoadBlocks(std::uint64_t first, std::uint64_t count) const {
  RHIZOME_CHECK(cache_ != nullptr && !resident_);
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadBlocks(first, count));
  for (std::uint64_t offset = 0; offset < bytes.size(); offset += kSectionBlockBytes) {
    const auto block = std::span(bytes).subspan(
        offset, std::min<std::uint64_t>(kSectionBlockBytes, bytes.size() - offset));
    (void)cache_->Insert(first_block_ + first + offset / kSectionBlockBytes, block,
                         BlockCache::Room::kFree);
  }
  return Status::Ok();
}

Status Adjacency::FillFromBlock(std::uint64_t block, std::uint64_t skip,
                                std::span<std::byte> out) const {
  const bool hit = cache_->Read(first_block_ + block, skip, out);
  if (Metrics* const metrics = cache_->metrics())
    metrics->Add(hit ? Counter::kListCacheHits : Counter::kListCacheMisses);
  if (hit) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadBlocks(block, 1));
  (void)cache_->Insert(first_block_ + block, bytes);
  if (skip + out.size() > bytes.size())
    return Status::Corruption(fmt::format("{}: offset {}: a list extends beyond its section",
                                          file_.path().string(), block * kSectionBlockBytes));
  std::memcpy(out.data(), bytes.data() + skip, out.size());
  return Status::Ok();
}

// Reads a list from disk: block by block through the cache if there is one, otherwise in one read.
Result<std::vector<std::byte>> Adjacency::ReadExtent(const Extent& extent) const {
  // Longer lists, which belong to hubs, bypass the cache: each would evict hundreds of other lists.
  constexpr std::uint64_t kMaxBlocks = 64;
  const bool long_list = extent.size_bytes > kMaxBlocks * kSectionBlockBytes;
  if (cache_ == nullptr || cache_->frame_count() == 0 || (long_list && !cache_->holds_all()))
    return file_.ReadBytes(extent.offset_bytes, extent.size_bytes);
  std::vector<std::byte> bytes(extent.size_bytes);
  for (std::uint64_t done = 0; done < bytes.size();) {
    const std::uint64_t at = extent.offset_bytes + done;
    const std::uint64_t skip = at % kSectionBlockBytes;
    const std::uint64_t take =
        std::min<std::uint64_t>(kSectionBlockBytes - skip, bytes.size() - done);
    RHIZOME_RETURN_IF_ERROR(
        FillFromBlock(at / kSectionBlockBytes, skip, std::span(bytes).subspan(done, take)));
    done += take;
  }
  return bytes;
}

Adjacency::Extent Adjacency::ExtentOf(LocalId local, Direction direction) const {
  const Side& lists = side(direction);
  if (codec_ == TopologyCodec::kNone) {
    const Range range = Entries(local, direction);
    return {lists.offset_bytes + range.first * sizeof(LocalId), range.count * sizeof(LocalId)};
  }
  const std::uint64_t begin = lists.list_offsets[local];
  return {lists.offset_bytes + begin, lists.list_offsets[local + std::size_t{1}] - begin};
}

// A compressed list stores, for entry i, neighbour + vertices * (rank of the entry's type in the
// type list). These values ascend, because lists are sorted by (type, neighbour).
bool Adjacency::DecodeList(LocalId local, Direction direction, std::span<const std::byte> bytes,
                           std::vector<LocalId>& out) const {
  const Side& lists = side(direction);
  const std::uint64_t count = Entries(local, direction).count;
  const std::uint64_t vertices = vertex_count();
  if (codec_ == TopologyCodec::kNone) {
    if (bytes.size() != count * sizeof(LocalId)) return false;
    out.resize(count);
    if (count > 0) std::memcpy(out.data(), bytes.data(), bytes.size());
    return std::all_of(out.begin(), out.end(), [&](LocalId id) { return id < vertices; }) &&
           SortedWithinTypes(lists, local, out);
  }
  const auto list = CompressedList::Open(bytes, count);
  if (!list) return false;
  out.resize(count);
  if (lists.type_lists.empty()) return list->DecodeBelow(vertices, out);
  std::vector<std::uint64_t> values(count);
  if (!list->Decode(values)) return false;
  const std::size_t type_list = lists.type_lists[local];
  const std::size_t begin = type_list_offsets_[type_list];
  std::uint64_t i = 0;
  for (std::size_t k = begin; k < type_list_offsets_[type_list + 1]; ++k) {
    const std::uint64_t first = (k - begin) * vertices;
    for (; i < type_ends_[k]; ++i) {
      if (values[i] < first || values[i] - first >= vertices) return false;
      out[i] = static_cast<LocalId>(values[i] - first);
    }
  }
  return i == count;
}

std::optional<LocalId> Adjacency::DecodeEntry(LocalId local, Direction direction,
                                              std::span<const std::byte> bytes,
                                              std::uint64_t i) const {
  const std::uint64_t count = Entries(local, direction).count;
  const std::uint64_t vertices = vertex_count();
  if (i >= count) return std::nullopt;
  if (codec_ == TopologyCodec::kNone) {
    if (bytes.size() != count * sizeof(LocalId)) return std::nullopt;
    const auto id = LoadLittle<LocalId>(bytes.data() + i * sizeof(LocalId));
    return id < vertices ? std::optional(id) : std::nullopt;
  }
  const auto list = CompressedList::Open(bytes, count);
  if (!list) return std::nullopt;
  const auto value = list->At(i);
  if (!value) return std::nullopt;
  if (!side(direction).type_lists.empty()) return static_cast<LocalId>(*value % vertices);
  return *value < vertices ? std::optional(static_cast<LocalId>(*value)) : std::nullopt;
}

std::optional<LocalId> Adjacency::DecodeAt(LocalId local, Direction direction,
                                           std::span<const std::byte> bytes,
                                           std::uint64_t position) const {
  if (codec_ != TopologyCodec::kNone)
    return DecodeEntry(local, direction, bytes, position - Entries(local, direction).first);
  const auto id = LoadLittle<LocalId>(bytes.data());
  return id < vertex_count() ? std::optional(id) : std::nullopt;
}

bool Adjacency::SortedWithinTypes(const Side& side, LocalId local,
                                  std::span<const LocalId> list) const {
  if (side.type_lists.empty()) return std::is_sorted(list.begin(), list.end());
  const std::size_t type_list = side.type_lists[local];
  std::size_t first = 0;
  for (std::size_t k = type_list_offsets_[type_list]; k < type_list_offsets_[type_list + 1]; ++k) {
    const auto run = list.subspan(first, type_ends_[k] - first);
    if (!std::is_sorted(run.begin(), run.end())) return false;
    first = type_ends_[k];
  }
  return true;
}

TypeId Adjacency::TypeAt(const Side& side, LocalId local, std::uint64_t i) const {
  if (side.type_lists.empty()) return 0;
  const std::size_t list = side.type_lists[local];
  return static_cast<TypeId>(
      types_[type_ends_.UpperBound(type_list_offsets_[list], type_list_offsets_[list + 1], i)]);
}

TypeId Adjacency::TypeOfEntry(LocalId local, Direction direction, std::uint64_t i) const {
  return TypeAt(side(direction), local, i);
}

float Adjacency::Weight(Direction direction, std::uint64_t position) const {
  if (weights_.empty() && paged_weights_.empty()) return 1;
  const bool through_edges = direction == Direction::kIn && !in_edges_.empty();
  const std::uint64_t edge = through_edges ? in_edges_[position] : position;
  return paged_weights_.empty()
             ? weights_[edge]
             : std::bit_cast<float>(static_cast<std::uint32_t>(paged_weights_[edge]));
}

TypeId Adjacency::TypeOfEdge(LocalEdge edge) const {
  RHIZOME_CHECK(edge < edge_count_);
  const Side& lists = out_.offsets.empty() ? in_ : out_;
  const std::size_t after = lists.offsets.UpperBound(edge);
  const auto local = static_cast<LocalId>(after - 1);
  return TypeAt(lists, local, edge - lists.offsets[local]);
}

std::uint64_t Adjacency::GlobalDegree(LocalId local, Direction direction) const {
  const std::uint64_t here = Entries(local, direction).count;
  const auto boundary = BoundaryIndex(local);
  if (!boundary) return here;
  return here + (direction == Direction::kOut || symmetric_ ? out_degrees_[*boundary]
                                                            : in_degrees_[*boundary]);
}

std::span<const std::uint8_t> Adjacency::PartitionSet(LocalId local) const {
  const auto boundary = BoundaryIndex(local);
  if (!boundary) return {};
  const auto set = partition_sets_.Bytes(*boundary * set_bytes_, set_bytes_);
  if (paged() && partitions_ % 8 != 0 && (set.back() >> (partitions_ % 8)) != 0)
    ThrowStatus(Status::Corruption(fmt::format("{}: partition set of local vertex {}: wrong bits",
                                               file_.path().string(), local)));
  return set;
}

// Every mirror is a boundary vertex: its owner holds edges of it too.
std::optional<std::size_t> Adjacency::BoundaryIndex(LocalId local) const {
  if (local >= owned_count_) return boundary_owned_count_ + (local - owned_count_);
  if (!boundary_.Test(local)) return std::nullopt;
  return boundary_.Rank(local);
}

}  // namespace internal
}  // namespace rhizome
