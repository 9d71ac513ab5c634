#include "index/sample/compressed_neighbors.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/delta/graph_parts.h"
#include "index/sample/plain_neighbors.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

// Prefetch distances of the offsets and of the bytes. Offsets are prefetched earlier, so that the
// bytes that they point to can be prefetched afterwards.
constexpr std::size_t kOffsetsAhead = 32;
constexpr std::size_t kBytesAhead = 16;

// Decoding a whole list costs about as much as decoding 1 / kDecodeShare of its entries one by one.
constexpr std::uint64_t kDecodeShare = 6;

bool SameList(const EntryRef& a, const EntryRef& b) {
  return a.local == b.local && a.partition == b.partition;
}

}  // namespace

CompressedNeighbors::CompressedNeighbors(const GraphSnapshot& graph, Direction direction)
    : direction_(direction), parts_(graph.parts()) {
  for (const Adjacency& partition : parts_->partitions) {
    partitions_.push_back(&partition);
    RHIZOME_CHECK(partitions_.back()->resident());
  }
}

Status CompressedNeighbors::LookUpList(std::span<const EntryRef> entries, std::span<Row> rows,
                                       std::vector<LocalId>& scratch) const {
  const LocalId local = entries.front().local;
  const Adjacency& partition = *partitions_[entries.front().partition];
  const Adjacency::Range list = partition.Entries(local, direction_);
  RHIZOME_DCHECK(std::all_of(entries.begin(), entries.end(), [&](const EntryRef& entry) {
    return entry.position >= list.first && entry.position - list.first < list.count;
  }));
  const bool whole = entries.size() * kDecodeShare >= list.count;
  if (partition.codec() == TopologyCodec::kNone || whole) {
    const auto neighbors = partition.ReadList(local, direction_, scratch);
    for (std::size_t i = 0; i < entries.size(); ++i)
      rows[i] = partition.RowOf(neighbors[entries[i].position - list.first]);
    return Status::Ok();
  }
  const auto bytes = partition.CompressedBytes(local, direction_);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto neighbor =
        partition.DecodeEntry(local, direction_, bytes, entries[i].position - list.first);
    if (!neighbor) {
      return Status::Corruption(
          fmt::format("{}: a list in memory cannot be decoded any more; the memory may be faulty",
                      partition.file().path().string()));
    }
    rows[i] = *neighbor;
  }
  for (Row& row : rows) row = partition.RowOf(static_cast<LocalId>(row));
  return Status::Ok();
}

Status CompressedNeighbors::LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const {
  RHIZOME_CHECK(entries.size() == rows.size());
  std::vector<LocalId> scratch;
  for (std::size_t begin = 0; begin < entries.size();) {
    std::size_t end = begin + 1;
    while (end < entries.size() && SameList(entries[end], entries[begin])) ++end;
    if (end + kOffsetsAhead < entries.size()) {
      const EntryRef& later = entries[end + kOffsetsAhead];
      partitions_[later.partition]->PrefetchList(later.local, direction_);
    }
    if (end + kBytesAhead < entries.size()) {
      const EntryRef& later = entries[end + kBytesAhead];
      partitions_[later.partition]->PrefetchBytes(later.local, direction_);
    }
    RHIZOME_RETURN_IF_ERROR(
        LookUpList(entries.subspan(begin, end - begin), rows.subspan(begin, end - begin), scratch));
    begin = end;
  }
  return Status::Ok();
}

Result<std::shared_ptr<const NeighborSource>> ResidentNeighbors(const GraphSnapshot& graph,
                                                                Direction direction) {
  RHIZOME_RETURN_IF_ERROR(graph.parts()->CheckWhole("a source of all lists"));
  bool plain = true;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    if (!graph.partition(p).resident()) {
      return Fail(
          Status::InvalidArgument(fmt::format("{}: the neighbour lists are on disk, but this job "
                                              "needs them in memory; use `topology=memory`",
                                              graph.store().path().string())));
    }
    plain = plain && graph.partition(p).codec() == TopologyCodec::kNone;
  }
  if (plain) return std::make_shared<PlainNeighbors>(graph, direction);
  return std::make_shared<CompressedNeighbors>(graph, direction);
}

}  // namespace internal
}  // namespace rhizome
