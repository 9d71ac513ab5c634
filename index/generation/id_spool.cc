// Spill files of external ids. IdReorder sorts them by number in two passes: the first measures how
// many bytes each range of numbers takes, the second scatters the ids to one file for each group of
// ranges. Each of these files fits in memory and is written in order.

#include "index/generation/id_spool.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kIdsOfReport = std::uint64_t{1} << 16;
constexpr std::uint64_t kRanges = std::uint64_t{1} << 16;  // at most twice as many
constexpr std::uint64_t kMinBucketBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kMaxBucketBytes = std::uint64_t{256} << 20;

/// Head of a record of a bucket; the id follows.
struct BucketHead {
  std::uint64_t number;
  std::uint32_t bytes;
};
constexpr std::size_t kBucketHeadBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

/// The place of an id in the bytes of a bucket.
struct Place {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
};

Status Truncated() { return Status::Corruption("a spilled id is truncated"); }

class IdReorder {
 public:
  IdReorder(SpillSpace& space, IdSpool ids,
            const std::function<std::uint64_t(std::uint64_t)>& number_of,
            std::uint64_t memory_bytes, const JobControl& control)
      : space_(space),
        ids_(std::move(ids)),
        number_of_(number_of),
        bucket_bytes_(std::clamp(memory_bytes / 2, kMinBucketBytes, kMaxBucketBytes)),
        control_(control),
        range_ids_(ids_.count / kRanges + 1) {}

  Result<IdSpool> Run() {
    RHIZOME_RETURN_IF_ERROR(FormBuckets());
    RHIZOME_RETURN_IF_ERROR(Scatter());
    RHIZOME_ASSIGN_OR_RETURN(
        IdSpoolWriter out,
        IdSpoolWriter::Create(space_, SpillBlockBytes(bucket_bytes_, std::uint64_t{4})));
    for (Bucket& bucket : buckets_) RHIZOME_RETURN_IF_ERROR(Gather(bucket, out));
    return out.Finish();
  }

 private:
  /// The ids of consecutive ranges: numbers [first, end).
  struct Bucket {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;
    std::optional<SpillWriter> writer = {};
  };

  /// Calls visit(number, id) for each id.
  template <typename Visit>
  Status ForEachId(Visit&& visit) const {
    RHIZOME_ASSIGN_OR_RETURN(IdSpoolReader reader, IdSpoolReader::Open(ids_));
    for (std::uint64_t i = 0; i < ids_.count; ++i) {
      if (i % kIdsOfReport == 0) RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
      RHIZOME_ASSIGN_OR_RETURN(const auto id, reader.Next());
      if (!id) return Truncated();
      RHIZOME_RETURN_IF_ERROR(visit(number_of_(i), *id));
    }
    return Status::Ok();
  }

  Status FormBuckets() {
    std::vector<std::uint64_t> bytes(ids_.count / range_ids_ + 1);
    RHIZOME_RETURN_IF_ERROR(ForEachId([&](std::uint64_t number, std::string_view id) {
      bytes[number / range_ids_] += id.size();
      return Status::Ok();
    }));
    std::uint64_t held = 0;
    for (std::size_t range = 0; range < bytes.size(); ++range) {
      const std::uint64_t first = range * range_ids_;
      const std::uint64_t end = std::min(first + range_ids_, ids_.count);
      const std::uint64_t more = bytes[range] + (end - first) * sizeof(Place);
      if (buckets_.empty() || held + more > bucket_bytes_) {
        buckets_.push_back({.first = first});
        held = 0;
      }
      held += more;
      buckets_.back().end = end;
      buckets_.back().bytes += bytes[range];
      bucket_of_range_.push_back(static_cast<std::uint32_t>(buckets_.size() - 1));
    }
    return Status::Ok();
  }

  Status Scatter() {
    const std::size_t block_bytes = SpillBlockBytes(bucket_bytes_, buckets_.size());
    for (Bucket& bucket : buckets_) {
      RHIZOME_ASSIGN_OR_RETURN(bucket.writer, SpillWriter::Create(space_, block_bytes));
    }
    std::vector<std::byte> record;
    RHIZOME_RETURN_IF_ERROR(ForEachId([&](std::uint64_t number, std::string_view id) {
      const auto bytes = static_cast<std::uint32_t>(id.size());
      record.resize(kBucketHeadBytes + id.size());
      std::memcpy(record.data(), &number, sizeof(number));
      std::memcpy(record.data() + sizeof(number), &bytes, sizeof(bytes));
      if (!id.empty()) std::memcpy(record.data() + kBucketHeadBytes, id.data(), id.size());
      return buckets_[bucket_of_range_[number / range_ids_]].writer->Append(record);
    }));
    ids_.file.Remove();
    return Status::Ok();
  }

  /// Appends the ids of a bucket to `out` in order.
  Status Gather(Bucket& bucket, IdSpoolWriter& out) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(const SpillFile file, bucket.writer->Finish());
    bucket.writer.reset();
    places_.assign(bucket.end - bucket.first, Place());
    texts_.clear();
    texts_.reserve(bucket.bytes);
    RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(file, /*ahead=*/true));
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(auto rest, reader.Next());
      if (rest.empty()) break;
      while (rest.size() >= kBucketHeadBytes) {
        BucketHead head{};
        std::memcpy(&head.number, rest.data(), sizeof(head.number));
        std::memcpy(&head.bytes, rest.data() + sizeof(head.number), sizeof(head.bytes));
        rest = rest.subspan(kBucketHeadBytes);
        if (head.bytes > rest.size() || head.number - bucket.first >= places_.size())
          return Truncated();
        places_[head.number - bucket.first] = {texts_.size(), head.bytes};
        texts_.append(reinterpret_cast<const char*>(rest.data()), head.bytes);
        rest = rest.subspan(head.bytes);
      }
    }
    for (const Place& place : places_)
      RHIZOME_RETURN_IF_ERROR(out.Add(std::string_view(texts_).substr(place.offset, place.bytes)));
    return Status::Ok();
  }

  SpillSpace& space_;
  IdSpool ids_;
  const std::function<std::uint64_t(std::uint64_t)>& number_of_;
  const std::uint64_t bucket_bytes_;
  const JobControl& control_;
  const std::uint64_t range_ids_;
  std::vector<std::uint32_t> bucket_of_range_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;
  std::string texts_;
};

}  // namespace

Result<IdSpoolWriter> IdSpoolWriter::Create(SpillSpace& space, std::size_t block_bytes) {
  RHIZOME_ASSIGN_OR_RETURN(SpillWriter writer, SpillWriter::Create(space, block_bytes));
  return IdSpoolWriter(std::move(writer));
}

Status IdSpoolWriter::Add(std::string_view id) {
  const auto bytes = static_cast<std::uint32_t>(id.size());
  record_.resize(sizeof(bytes) + id.size());
  std::memcpy(record_.data(), &bytes, sizeof(bytes));
  if (!id.empty()) std::memcpy(record_.data() + sizeof(bytes), id.data(), id.size());
  ++spool_.count;
  spool_.bytes += id.size();
  return writer_.Append(record_);
}

Result<IdSpool> IdSpoolWriter::Finish() {
  RHIZOME_ASSIGN_OR_RETURN(spool_.file, writer_.Finish());
  return std::move(spool_);
}

Result<IdSpoolReader> IdSpoolReader::Open(const IdSpool& spool) {
  RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(spool.file, /*ahead=*/true));
  return IdSpoolReader(std::move(reader));
}

Result<std::optional<std::string_view>> IdSpoolReader::Next() {
  if (rest_.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(rest_, reader_.Next());
    if (rest_.empty()) return std::optional<std::string_view>();
  }
  std::uint32_t bytes = 0;
  if (rest_.size() < sizeof(bytes)) return Fail(Truncated());
  std::memcpy(&bytes, rest_.data(), sizeof(bytes));
  rest_ = rest_.subspan(sizeof(bytes));
  if (rest_.size() < bytes) return Fail(Truncated());
  const std::string_view id(reinterpret_cast<const char*>(rest_.data()), bytes);
  rest_ = rest_.subspan(bytes);
  return std::optional(id);
}

Result<IdSpool> ReorderIds(SpillSpace& space, IdSpool ids,
                           const std::function<std::uint64_t(std::uint64_t)>& number_of,
                           std::uint64_t memory_bytes, const JobControl& control) {
  return IdReorder(space, std::move(ids), number_of, memory_bytes, control).Run();
}

IdStream SpilledDictionary::Stream(ExternalIdKind kind) const {
  IdStream stream{.kind = kind,
                  .vertices = ids.count,
                  .sorted = ids.count,
                  .largest = ids.count == 0 ? 0 : ids.count - 1,
                  .bytes = ids.bytes,
                  .read = {},
                  .read_sorted = {}};
  stream.read = [this](const IdStream::PutId& put) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(IdSpoolReader reader, IdSpoolReader::Open(ids));
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const auto id, reader.Next());
      if (!id) return Status::Ok();
      RHIZOME_RETURN_IF_ERROR(put(*id));
    }
  };
  stream.read_sorted = [this](const IdStream::PutVertex& put) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(sorted, /*ahead=*/true));
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const auto block, reader.Next());
      if (block.empty()) return Status::Ok();
      for (std::size_t at = 0; at + sizeof(std::uint32_t) <= block.size();
           at += sizeof(std::uint32_t)) {
        std::uint32_t vertex = 0;
        std::memcpy(&vertex, block.data() + at, sizeof(vertex));
        RHIZOME_RETURN_IF_ERROR(put(vertex));
      }
    }
  };
  return stream;
}

}  // namespace internal
}  // namespace rhizome
