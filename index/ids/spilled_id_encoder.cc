#include "index/ids/spilled_id_encoder.h"

#include <cstring>
#include <numeric>
#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kPhase = "number ids";

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
  if (!strings_) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(texts_, SpillWriter::Create(space_, block_bytes));
  return Status::Ok();
}

Status SpilledIdEncoder::Take(std::string_view key, std::span<const std::uint64_t> positions,
                              bool is_new) {
  if (is_new) {
    const std::uint64_t needed = 24 * (first_positions_.size() + 1);
    if (needed > memory_bytes_ / 2 || first_positions_.size() == UINT32_MAX)
      return TooManyVertices(first_positions_.size() + 1, needed, memory_bytes_ / 2);
    first_positions_.push_back(positions.front());
    if (strings_) {
      text_bytes_.push_back(static_cast<std::uint32_t>(key.size()));
      RHIZOME_RETURN_IF_ERROR(texts_->Append(std::as_bytes(std::span(key))));
    } else {
      integers_.push_back(KeySorter::IntegerOf(key));
    }
  }
  const auto group = static_cast<std::uint32_t>(first_positions_.size() - 1);
  for (const std::uint64_t position : positions) {
    if (position < nodes_) continue;  // a node's number is its position
    const std::uint64_t end = position - nodes_;
    const End record{static_cast<std::uint32_t>(end % EndsOfBucket()), group};
    RHIZOME_RETURN_IF_ERROR(
        buckets_[end / EndsOfBucket()].Append(std::as_bytes(std::span(&record, 1))));
    if (++ends_done_ % (1 << 18) == 0)
      RHIZOME_RETURN_IF_ERROR(
          control_.Report({.phase = kPhase, .done = ends_done_, .total = 2 * edges_}));
  }
  return Status::Ok();
}

void SpilledIdEncoder::RankGroups() {
  std::vector<std::uint32_t> by_first(first_positions_.size());
  std::iota(by_first.begin(), by_first.end(), 0U);
  std::sort(by_first.begin(), by_first.end(), [&](std::uint32_t a, std::uint32_t b) {
    return first_positions_[a] < first_positions_[b];
  });
  number_.resize(by_first.size());
  for (std::size_t number = 0; number < by_first.size(); ++number)
    number_[by_first[number]] = static_cast<std::uint32_t>(number);
  std::vector<std::uint64_t>().swap(first_positions_);
}

Status SpilledIdEncoder::WriteEnds(Vertices& vertices) {
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolWriter out,
                           EdgeSpoolWriter::Create(space_, kSpilledBlockEdges));
  std::vector<std::uint32_t> ends;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    RHIZOME_RETURN_IF_ERROR(
        control_.Report({.phase = kPhase, .done = bucket, .total = buckets_.size()}));
    const std::uint64_t first = bucket * EndsOfBucket();
    ends.resize(std::min(EndsOfBucket(), 2 * edges_ - std::min(first, 2 * edges_)));
    RHIZOME_ASSIGN_OR_RETURN(const SpillFile file, buckets_[bucket].Finish());
    RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(file, /*ahead=*/true));
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const auto block, reader.Next());
      if (block.empty()) break;
      for (std::size_t at = 0; at + sizeof(End) <= block.size(); at += sizeof(End)) {
        End end{};
        std::memcpy(&end, block.data() + at, sizeof(end));
        ends[end.place] = number_[end.group];
      }
    }
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
      out.edges.src.push_back(ends[i]);
      out.edges.dst.push_back(ends[i + 1]);
      RHIZOME_RETURN_IF_ERROR(out.FlushIfFull(out.edges.src.size()));
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(vertices.edges, out.Finish(out.edges.src.size()));
  return Status::Ok();
}

// Stores the texts by vertex. They arrive in the order of the keys, are scattered by vertex to
// buckets that each fit in memory, and are written in the order of vertices.
Status SpilledIdEncoder::TakeStrings(SpillFile texts, Vertices& vertices) {
  const std::size_t count = number_.size();
  StringIds& ids = vertices.string_ids;
  ids.sorted.assign(number_.begin(), number_.end());
  ids.offsets.assign(count + 1, 0);
  for (std::size_t group = 0; group < count; ++group)
    ids.offsets[number_[group] + std::size_t{1}] = text_bytes_[group];
  std::partial_sum(ids.offsets.begin(), ids.offsets.end(), ids.offsets.begin());

  const std::uint64_t bucket_bytes = std::max<std::uint64_t>(memory_bytes_ / 8, 64 << 10);
  const std::size_t bucket_count = ids.offsets.back() / bucket_bytes + 1;
  std::vector<SpillWriter> buckets;
  for (std::size_t i = 0; i < bucket_count; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(
        SpillWriter writer,
        SpillWriter::Create(space_, SpillBlockBytes(memory_bytes_ / 8, bucket_count)));
    buckets.push_back(std::move(writer));
  }
  RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(texts, /*ahead=*/true));
  std::span<const std::byte> block;
  std::vector<std::byte> record;
  for (std::size_t group = 0; group < count; ++group) {
    const std::size_t bytes = text_bytes_[group];
    if (block.empty() && bytes > 0) {
      RHIZOME_ASSIGN_OR_RETURN(block, reader.Next());
    }
    if (bytes > block.size()) return Status::Corruption("the spilled texts of ids became shorter");
    const std::uint32_t number = number_[group];
    record.resize(sizeof(number) + bytes);
    std::memcpy(record.data(), &number, sizeof(number));
    std::memcpy(record.data() + sizeof(number), block.data(), bytes);
    block = block.subspan(bytes);
    RHIZOME_RETURN_IF_ERROR(buckets[ids.offsets[number] / bucket_bytes].Append(record));
  }
  texts.Remove();

  RHIZOME_ASSIGN_OR_RETURN(SpillWriter out,
                           SpillWriter::Create(space_, SpillBlockBytes(memory_bytes_ / 8, 4)));
  std::vector<std::byte> bytes;
  auto begin = ids.offsets.begin();  // offset of the first vertex of the bucket
  for (std::size_t i = 0; i < bucket_count; ++i) {
    const auto end = std::lower_bound(begin, ids.offsets.end() - 1, (i + 1) * bucket_bytes);
    bytes.resize(*end - *begin);
    RHIZOME_ASSIGN_OR_RETURN(const SpillFile file, buckets[i].Finish());
    RHIZOME_ASSIGN_OR_RETURN(SpillReader records, SpillReader::Open(file, /*ahead=*/true));
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(auto rest, records.Next());
      if (rest.empty()) break;
      while (rest.size() >= sizeof(std::uint32_t)) {
        std::uint32_t number = 0;
        std::memcpy(&number, rest.data(), sizeof(number));
        const std::uint64_t length = ids.offsets[number + std::size_t{1}] - ids.offsets[number];
        std::memcpy(bytes.data() + (ids.offsets[number] - *begin), rest.data() + sizeof(number),
                    length);
        rest = rest.subspan(sizeof(number) + length);
      }
    }
    constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
    for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes)
      RHIZOME_RETURN_IF_ERROR(
          out.Append(std::span(bytes).subspan(at, std::min(kPieceBytes, bytes.size() - at))));
    begin = end;
  }
  RHIZOME_ASSIGN_OR_RETURN(vertices.string_file, out.Finish());
  return Status::Ok();
}

// Numbers the keys:
// 1. merges the sorted keys; each distinct key becomes a group, and each end of an edge is written
//    to the bucket of its position (Take);
// 2. numbers the groups by their first positions (RankGroups);
// 3. reads the buckets one by one and writes the edges with their new numbers (WriteEnds);
// 4. stores the ids by vertex, strings through buckets (TakeStrings).
Status SpilledIdEncoder::Encode(Vertices& vertices) {
  RHIZOME_RETURN_IF_ERROR(MakeBuckets());
  RHIZOME_RETURN_IF_ERROR(
      sorter_.Merge(control_, [this](std::string_view key, std::span<const std::uint64_t> positions,
                                     bool is_new) { return Take(key, positions, is_new); }));
  RankGroups();
  RHIZOME_RETURN_IF_ERROR(WriteEnds(vertices));
  buckets_.clear();
  vertices.count = number_.size();
  vertices.nodes.resize(nodes_);
  std::iota(vertices.nodes.begin(), vertices.nodes.end(), VertexId{0});
  if (strings_) {
    vertices.kind = ExternalIdKind::kString;
    RHIZOME_ASSIGN_OR_RETURN(SpillFile texts, texts_->Finish());
    return TakeStrings(std::move(texts), vertices);
  }
  vertices.kind = ExternalIdKind::kInteger;
  vertices.integer_ids.resize(number_.size());
  for (std::size_t group = 0; group < number_.size(); ++group)
    vertices.integer_ids[number_[group]] = integers_[group];
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
