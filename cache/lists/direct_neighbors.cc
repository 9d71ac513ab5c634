#include "cache/lists/direct_neighbors.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "cache/lists/neighbor_cache.h"
#include "index/delta/graph_parts.h"
#include "index/topology/adjacency.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"
#include "storage/base/process.h"
#include "storage/section/block_file.h"

namespace rhizome {
namespace {

/// Entries [begin, end) of a LookUp that need the same byte range of a partition file.
struct Miss {
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t partition = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// One coalesced read, which serves misses [begin, end).
struct Read {
  BlockFile::Blocks blocks;
  std::uint32_t partition = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint64_t staging_offset = 0;
};

bool IsBefore(const Miss& a, const Miss& b) {
  return std::tie(a.partition, a.offset_bytes) < std::tie(b.partition, b.offset_bytes);
}

/// Groups misses by partition, without another change of their order.
void GroupByPartition(std::size_t partitions, std::vector<Miss>& misses) {
  std::vector<std::size_t> next(partitions + 1, 0);
  for (const Miss& miss : misses) ++next[miss.partition + 1];
  for (std::size_t p = 0; p < partitions; ++p) next[p + 1] += next[p];
  std::vector<Miss> grouped(misses.size());
  for (const Miss& miss : misses) grouped[next[miss.partition]++] = miss;
  misses.swap(grouped);
}

/// Sorts misses by partition and offset. The entries of a sweep are in the order of their lists on
/// disk, so that only the draws within a list are out of place: they are inserted, which is several
/// times faster than a sort. Entries in another order are sorted.
void SortMisses(std::size_t partitions, std::vector<Miss>& misses) {
  constexpr std::size_t kMovesOfEach = 8;
  if (partitions > 1) GroupByPartition(partitions, misses);
  std::size_t moves = kMovesOfEach * misses.size();
  for (std::size_t i = 1; i < misses.size(); ++i) {
    const Miss miss = misses[i];
    std::size_t to = i;
    for (; to > 0 && moves > 0 && IsBefore(miss, misses[to - 1]); --to, --moves)
      misses[to] = misses[to - 1];
    misses[to] = miss;
    if (moves == 0) return std::sort(misses.begin(), misses.end(), IsBefore);
  }
}

bool SameList(const EntryRef& a, const EntryRef& b) {
  return a.local == b.local && a.partition == b.partition;
}

}  // namespace

/// Queue and staging memory of one concurrent LookUp. Serve runs these steps: (1) PlanReads merges
/// misses that are close together in the file into reads; (2) FillStaging assigns as many reads as
/// fit to the staging memory; (3) RunReads submits them and reaps completions; (4) Deliver verifies
/// the blocks of each completed read and decodes the wanted entries. Steps 2 to 4 repeat until all
/// misses are served.
class DirectReader {
 public:
  DirectReader(const std::vector<const Adjacency*>& partitions, Direction direction,
               const DirectNeighborsOptions& options)
      : partitions_(partitions), direction_(direction), options_(options) {}

  Status Init() {
    RHIZOME_ASSIGN_OR_RETURN(staging_, AlignedBuffer::Allocate(options_.staging_bytes));
    RHIZOME_ASSIGN_OR_RETURN(queue_, IoQueue::Open(options_.io));
    queue_->RegisterMemory(staging_.bytes());
    return Status::Ok();
  }

  /// Serves `misses`, which are sorted by partition and offset. After a failure no read is in
  /// flight, unless broken().
  Status Serve(std::span<const EntryRef> entries, std::span<Row> rows,
               std::span<const Miss> misses) {
    PlanReads(misses);
    for (std::size_t begin = 0; begin < reads_.size();) {
      const std::size_t end = FillStaging(begin);
      RHIZOME_RETURN_IF_ERROR(RunReads(entries, rows, misses, begin, end));
      begin = end;
    }
    return Status::Ok();
  }

  IoStats stats() const { return queue_->stats(); }
  IoMaker maker() const { return queue_->maker(); }
  bool broken() const { return broken_; }

 private:
  void PlanReads(std::span<const Miss> misses);
  std::size_t FillStaging(std::size_t begin);
  Status RunReads(std::span<const EntryRef> entries, std::span<Row> rows,
                  std::span<const Miss> misses, std::size_t begin, std::size_t end);
  Status Deliver(std::span<const EntryRef> entries, std::span<Row> rows,
                 std::span<const Miss> misses, const Read& read,
                 std::span<const std::byte> bytes) const;

  const std::vector<const Adjacency*>& partitions_;
  const Direction direction_;
  const DirectNeighborsOptions& options_;
  AlignedBuffer staging_;
  AlignedBuffer long_;  // for a single read that is longer than the staging memory
  std::vector<Read> reads_;
  std::vector<ReadRequest> requests_;
  std::unique_ptr<IoQueue>
      queue_;  // destroyed first, because its reads write into the members above
  bool broken_ = false;
};

void DirectReader::PlanReads(std::span<const Miss> misses) {
  reads_.clear();
  for (std::size_t i = 0; i < misses.size(); ++i) {
    const Miss& miss = misses[i];
    const BlockFile& file = *partitions_[miss.partition]->file().blocks();
    const BlockFile::Blocks blocks = file.BlocksOf(miss.offset_bytes, miss.size_bytes);
    if (!reads_.empty() && reads_.back().partition == miss.partition) {
      Read& last = reads_.back();
      const std::uint64_t last_end = last.blocks.offset_bytes + last.blocks.size_bytes;
      const std::uint64_t end = std::max(last_end, blocks.offset_bytes + blocks.size_bytes);
      const bool near = blocks.offset_bytes <= last_end + options_.gap_bytes;
      const bool fits = end - last.blocks.offset_bytes <= options_.max_read_bytes;
      if (end == last_end || (near && fits)) {
        last.blocks.size_bytes = end - last.blocks.offset_bytes;
        last.end = i + 1;
        continue;
      }
    }
    reads_.push_back({.blocks = blocks, .partition = miss.partition, .begin = i, .end = i + 1});
  }
}

/// Assigns staging memory to the reads from `begin` on. Returns the index of the first read that
/// does not fit.
std::size_t DirectReader::FillStaging(std::size_t begin) {
  std::uint64_t used = 0;
  std::size_t end = begin;
  for (; end < reads_.size(); ++end) {
    // Offsets at whole blocks satisfy the alignment of any direct read.
    const std::uint64_t size = AlignUp(reads_[end].blocks.size_bytes, kSectionBlockBytes);
    if (size > staging_.size_bytes() - used) break;
    reads_[end].staging_offset = used;
    used += size;
  }
  return std::max(end, begin + 1);  // a read that is too long runs alone, into long_
}

Status DirectReader::RunReads(std::span<const EntryRef> entries, std::span<Row> rows,
                              std::span<const Miss> misses, std::size_t begin, std::size_t end) {
  std::span<std::byte> memory = staging_.bytes();
  if (reads_[begin].blocks.size_bytes > memory.size()) {
    if (long_.size_bytes() < reads_[begin].blocks.size_bytes) {
      RHIZOME_ASSIGN_OR_RETURN(long_, AlignedBuffer::Allocate(reads_[begin].blocks.size_bytes));
    }
    memory = long_.bytes();
    reads_[begin].staging_offset = 0;
  }
  requests_.assign(end - begin, {});
  for (std::size_t i = begin; i < end; ++i) {
    requests_[i - begin] = {
        .file = &partitions_[reads_[i].partition]->file().blocks()->file(),
        .offset_bytes = reads_[i].blocks.offset_bytes,
        .buffer = memory.subspan(reads_[i].staging_offset, reads_[i].blocks.size_bytes)};
  }
  Status failed;
  std::size_t submitted = 0;
  while ((failed.ok() && submitted < requests_.size()) || queue_->in_flight() > 0) {
    if (failed.ok() && submitted < requests_.size()) {
      const auto taken = queue_->Submit(std::span(requests_).subspan(submitted));
      if (!taken) broken_ = true;
      RHIZOME_RETURN_IF_ERROR(taken ? Status::Ok() : taken.error());
      submitted += *taken;
    }
    // Waits for an eighth of the reads at a time, because each call enters the kernel.
    const auto done = queue_->Reap(std::max<std::size_t>(queue_->in_flight() / 8, 1));
    if (!done) broken_ = true;
    RHIZOME_RETURN_IF_ERROR(done ? Status::Ok() : done.error());
    for (const ReadRequest* const request : *done) {
      if (!failed.ok()) continue;
      const Read& read = reads_[begin + static_cast<std::size_t>(request - requests_.data())];
      failed = Guarded([&] {
        return request->status.ok() ? Deliver(entries, rows, misses, read, request->buffer)
                                    : request->status;
      });
    }
  }
  return failed;
}

Status DirectReader::Deliver(std::span<const EntryRef> entries, std::span<Row> rows,
                             std::span<const Miss> misses, const Read& read,
                             std::span<const std::byte> bytes) const {
  const Adjacency& partition = *partitions_[read.partition];
  RHIZOME_RETURN_IF_ERROR(partition.file().blocks()->Check(read.blocks, bytes));
  for (const Miss& miss : misses.subspan(read.begin, read.end - read.begin)) {
    const auto from = bytes.subspan(miss.offset_bytes - read.blocks.offset_bytes, miss.size_bytes);
    for (std::size_t i = miss.begin; i < miss.end; ++i) {
      const auto local =
          partition.DecodeAt(entries[i].local, direction_, from, entries[i].position);
      if (!local) {
        return Status::Corruption(fmt::format("{}: offset {}: entry {} cannot be decoded",
                                              partition.file().path().string(), miss.offset_bytes,
                                              entries[i].position));
      }
      rows[i] = partition.RowOf(*local);
    }
  }
  return Status::Ok();
}

class DirectNeighbors::Impl {
 public:
  Impl(const GraphSnapshot& graph, Direction direction, std::shared_ptr<const NeighborCache> cache,
       const DirectNeighborsOptions& options)
      : direction_(direction), options_(options), cache_(std::move(cache)), parts_(graph.parts()) {
    for (const Adjacency& partition : parts_->partitions) partitions_.push_back(&partition);
  }

  Status Init() {
    RHIZOME_ASSIGN_OR_RETURN(auto first, Take());
    GiveBack(std::move(first));
    return Status::Ok();
  }

  void SetCache(std::shared_ptr<const NeighborCache> cache) { cache_ = std::move(cache); }
  Direction direction() const { return direction_; }

  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) {
    ListReads seen;
    std::vector<Miss> misses;
    RHIZOME_RETURN_IF_ERROR(FromCache(entries, rows, misses, seen));
    SortMisses(partitions_.size(), misses);
    {
      MutexLock lock(mutex_);
      ListReads::Each([](const char*, auto& sum, auto figure) { sum += figure; }, stats_, seen);
    }
    if (misses.empty()) return Status::Ok();
    RHIZOME_ASSIGN_OR_RETURN(auto reader, Take());
    Status status = reader->Serve(entries, rows, misses);
    GiveBack(std::move(reader));
    return status;
  }

  ListReads stats() {
    MutexLock lock(mutex_);
    ListReads sum = stats_;
    for (const auto& reader : free_) {
      const IoStats io = reader->stats();
      sum.mean_depth += io.mean_depth * static_cast<double>(io.reads);
      sum.reads += io.reads;
      sum.bytes_read += io.read_bytes;
      sum.maker = reader->maker();
    }
    if (sum.reads > 0) sum.mean_depth /= static_cast<double>(sum.reads);
    sum.direct = !partitions_.empty() && partitions_.front()->file().blocks()->direct();
    return sum;
  }

 private:
  Status FromCache(std::span<const EntryRef> entries, std::span<Row> rows,
                   std::vector<Miss>& misses, ListReads& seen) const;

  Result<std::unique_ptr<DirectReader>> Take() RHIZOME_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (!free_.empty()) {
        auto reader = std::move(free_.back());
        free_.pop_back();
        return reader;
      }
    }
    auto reader = std::make_unique<DirectReader>(partitions_, direction_, options_);
    RHIZOME_RETURN_IF_ERROR(reader->Init());
    return reader;
  }

  // A broken queue may still have reads in flight. It is destroyed, which waits for them.
  void GiveBack(std::unique_ptr<DirectReader> reader) RHIZOME_EXCLUDES(mutex_) {
    if (reader->broken()) return;
    MutexLock lock(mutex_);
    free_.push_back(std::move(reader));
  }

  const Direction direction_;
  const DirectNeighborsOptions options_;
  std::shared_ptr<const NeighborCache> cache_;
  const std::shared_ptr<const GraphParts> parts_;
  std::vector<const Adjacency*> partitions_;
  ForkMutex mutex_;
  std::vector<std::unique_ptr<DirectReader>> free_ RHIZOME_GUARDED_BY(mutex_);
  ListReads stats_ RHIZOME_GUARDED_BY(mutex_);
};

// Serves the entries whose lists are cached, and adds a miss for each byte range that the other
// entries need.
Status DirectNeighbors::Impl::FromCache(std::span<const EntryRef> entries, std::span<Row> rows,
                                        std::vector<Miss>& misses, ListReads& seen) const {
  seen.entries = entries.size();
  for (std::size_t begin = 0; begin < entries.size();) {
    std::size_t end = begin + 1;
    while (end < entries.size() && SameList(entries[end], entries[begin])) ++end;
    const EntryRef& first = entries[begin];
    const Adjacency& partition = *partitions_[first.partition];
    const std::byte* const cached =
        cache_ == nullptr ? nullptr : cache_->Find(first.partition, first.local);
    ++seen.lists;
    if (cached != nullptr) {
      ++seen.hits;
      seen.cached_entries += end - begin;
      const Adjacency::Range list = partition.Entries(first.local, direction_);
      const std::span bytes(cached, partition.ExtentOf(first.local, direction_).size_bytes);
      for (std::size_t i = begin; i < end; ++i) {
        const auto local =
            partition.DecodeEntry(first.local, direction_, bytes, entries[i].position - list.first);
        if (!local) return Status::Corruption("a list in the neighbour cache cannot be decoded");
        rows[i] = partition.RowOf(*local);
      }
    } else if (partition.codec() == TopologyCodec::kNone) {
      for (std::size_t i = begin; i < end; ++i) {
        const auto extent = partition.ExtentOfEntry(entries[i].position, direction_);
        misses.push_back({extent.offset_bytes, extent.size_bytes, first.partition,
                          static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i + 1)});
      }
    } else {
      const auto extent = partition.ExtentOf(first.local, direction_);
      misses.push_back({extent.offset_bytes, extent.size_bytes, first.partition,
                        static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    }
    begin = end;
  }
  return Status::Ok();
}

DirectNeighbors::DirectNeighbors(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DirectNeighbors::~DirectNeighbors() = default;

Result<std::shared_ptr<DirectNeighbors>> DirectNeighbors::Open(
    const GraphSnapshot& graph, Direction direction, std::shared_ptr<const NeighborCache> cache,
    const DirectNeighborsOptions& options) {
  const auto refuse = [](const std::string& what) {
    return Fail(Status::InvalidArgument("direct topology: " + what));
  };
  if (direction == Direction::kBoth) return refuse("follow either in-lists or out-lists, not both");
  RHIZOME_RETURN_IF_ERROR(graph.parts()->CheckWhole("a reader of all lists"));
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    if (graph.partition(p).resident()) return refuse("the lists are in memory already");
    if (!graph.partition(p).has(direction)) return refuse("the store lacks this direction");
  }
  if (cache != nullptr && cache->direction() != direction)
    return refuse("the neighbour cache belongs to the other direction");
  if (options.staging_bytes < options.max_read_bytes + options.gap_bytes ||
      options.max_read_bytes < kSectionBlockBytes || options.staging_bytes > std::uint64_t{1} << 40)
    return refuse(fmt::format("{} bytes of staging memory are too few for reads of up to {} bytes",
                              options.staging_bytes, options.max_read_bytes));
  auto impl = std::make_unique<Impl>(graph, direction, std::move(cache), options);
  RHIZOME_RETURN_IF_ERROR(impl->Init());
  return std::shared_ptr<DirectNeighbors>(new DirectNeighbors(std::move(impl)));
}

Status DirectNeighbors::LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const {
  RHIZOME_CHECK(entries.size() == rows.size());
  // A Miss numbers entries in 32 bits, so longer calls are split.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  for (std::size_t begin = 0; begin < entries.size(); begin += kMost) {
    const std::size_t count = std::min(kMost, entries.size() - begin);
    RHIZOME_RETURN_IF_ERROR(
        impl_->LookUp(entries.subspan(begin, count), rows.subspan(begin, count)));
  }
  return Status::Ok();
}

Status DirectNeighbors::SetCache(std::shared_ptr<const NeighborCache> cache) {
  if (cache != nullptr && cache->direction() != impl_->direction())
    return Status::InvalidArgument("the neighbour cache belongs to the other direction");
  impl_->SetCache(std::move(cache));
  return Status::Ok();
}

ListReads DirectNeighbors::stats() const { return impl_->stats(); }

}  // namespace rhizome
