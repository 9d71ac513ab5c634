#include "index/ids/spilled_id_encoder.h"

#include <cstring>
#include <numeric>
#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kPhase = "number ids";
constexpr std::uint32_t kUnnumbered = UINT32_MAX;

}  // namespace

Status TooManyVertices(std::uint64_t vertices, std::uint64_t needed, std::uint64_t budget) {
  return Status::OutOfMemory(
      fmt::format("numbering the ids of {} vertices needs about {} MiB of memory, but only {} MiB "
                  "of the limit are left; nothing was written; raise the memory limit",
                  vertices, (needed >> 20) + 1, budget >> 20));
}

Status SpilledIdEncoder::MakeBuckets() {
  const std::size_t block_bytes = SpillBlockBytes(memory_bytes_ / 8, BucketCount());
  for (std::size_t i = 0; i < BucketCount(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(SpillWriter writer, SpillWriter::Create(space_, block_bytes));
    buckets_.push_back(std::move(writer));
  }
  RHIZOME_ASSIGN_OR_RETURN(ids_, IdSpoolWriter::Create(space_, block_bytes));
  return Status::Ok();
}

Status SpilledIdEncoder::Take(std::string_view key, std::span<const std::uint64_t> positions,
                              bool is_new) {
  if (is_new) {
    const std::uint64_t needed = sizeof(std::uint32_t) * (groups_ + 1);
    if (needed > memory_bytes_ / 2 || groups_ == kUnnumbered)
      return TooManyVertices(groups_ + 1, needed, memory_bytes_ / 2);
    ++groups_;
    const std::int64_t integer = strings_ ? 0 : KeySorter::IntegerOf(key);
    const std::string_view bytes(reinterpret_cast<const char*>(&integer), sizeof(integer));
    RHIZOME_RETURN_IF_ERROR(ids_->Add(strings_ ? key : bytes));
  }
  for (const std::uint64_t position : positions) {
    const Placed record{static_cast<std::uint32_t>(position % BucketPositions()),
                        static_cast<std::uint32_t>(groups_ - 1)};
    RHIZOME_RETURN_IF_ERROR(
        buckets_[position / BucketPositions()].Append(std::as_bytes(std::span(&record, 1))));
    if (++positions_done_ % (1 << 18) == 0)
      RHIZOME_RETURN_IF_ERROR(
          control_.Report({.phase = kPhase, .done = positions_done_, .total = Positions()}));
  }
  return Status::Ok();
}

/// Returns the group at each position of a bucket.
Status SpilledIdEncoder::ReadBucket(std::size_t bucket, std::vector<std::uint32_t>& groups) {
  const std::uint64_t first = bucket * BucketPositions();
  groups.resize(std::min(BucketPositions(), Positions() - std::min(first, Positions())));
  RHIZOME_ASSIGN_OR_RETURN(const SpillFile file, buckets_[bucket].Finish());
  RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(file, /*ahead=*/true));
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto block, reader.Next());
    if (block.empty()) return Status::Ok();
    for (std::size_t at = 0; at + sizeof(Placed) <= block.size(); at += sizeof(Placed)) {
      Placed placed{};
      std::memcpy(&placed, block.data() + at, sizeof(placed));
      groups[placed.place] = placed.group;
    }
  }
}

// Visits all positions in order. A group gets the next number at its first position; the edges are
// written with the numbers of their ends.
Status SpilledIdEncoder::NumberGroups(Vertices& vertices) {
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolWriter out,
                           EdgeSpoolWriter::Create(space_, kSpilledBlockEdges));
  number_.assign(groups_, kUnnumbered);
  std::vector<std::uint32_t> groups;
  std::uint32_t next = 0;
  std::uint64_t position = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    RHIZOME_RETURN_IF_ERROR(
        control_.Report({.phase = kPhase, .done = bucket, .total = buckets_.size()}));
    RHIZOME_RETURN_IF_ERROR(ReadBucket(bucket, groups));
    for (const std::uint32_t group : groups) {
      std::uint32_t& number = number_[group];
      if (number == kUnnumbered) number = next++;
      if (position >= nodes_) {
        const bool is_src = (position - nodes_) % 2 == 0;
        (is_src ? out.edges.src : out.edges.dst).push_back(number);
        if (!is_src) RHIZOME_RETURN_IF_ERROR(out.FlushIfFull(out.edges.src.size()));
      }
      ++position;
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(vertices.edges, out.Finish(out.edges.src.size()));
  return Status::Ok();
}

/// Writes the numbers by group, which are the vertices sorted by id.
Result<SpillFile> SpilledIdEncoder::WriteNumbers() const {
  constexpr std::size_t kPiece = std::size_t{1} << 14;
  RHIZOME_ASSIGN_OR_RETURN(SpillWriter out, SpillWriter::Create(space_, 0));
  const std::span<const std::uint32_t> numbers(number_);
  for (std::size_t at = 0; at < numbers.size(); at += kPiece)
    RHIZOME_RETURN_IF_ERROR(
        out.Append(std::as_bytes(numbers.subspan(at, std::min(kPiece, numbers.size() - at)))));
  return out.Finish();
}

// Numbers the keys:
// 1. merges the sorted keys; each distinct key becomes a group, and each position is written to its
//    bucket (Take);
// 2. reads the buckets one by one, numbers the groups and writes the edges (NumberGroups);
// 3. stores the ids by vertex, and the vertices in the order of their ids.
Status SpilledIdEncoder::Encode(Vertices& vertices) {
  RHIZOME_RETURN_IF_ERROR(MakeBuckets());
  RHIZOME_RETURN_IF_ERROR(
      sorter_.Merge(control_, [this](std::string_view key, std::span<const std::uint64_t> positions,
                                     bool is_new) { return Take(key, positions, is_new); }));
  RHIZOME_RETURN_IF_ERROR(NumberGroups(vertices));
  buckets_.clear();
  vertices.kind = strings_ ? ExternalIdKind::kString : ExternalIdKind::kInteger;
  vertices.count = groups_;
  vertices.nodes.resize(nodes_);
  std::iota(vertices.nodes.begin(), vertices.nodes.end(), VertexId{0});
  RHIZOME_ASSIGN_OR_RETURN(vertices.dictionary.sorted, WriteNumbers());
  RHIZOME_ASSIGN_OR_RETURN(IdSpool by_group, ids_->Finish());
  RHIZOME_ASSIGN_OR_RETURN(
      vertices.dictionary.ids,
      ReorderIds(
          space_, std::move(by_group), [this](std::uint64_t group) { return number_[group]; },
          memory_bytes_ / 4, control_));
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
