#include "rhizome/feature_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "cache/pool/buffer_pool.h"
#include "cache/pool/prefill_piece.h"
#include "cache/pool/row_fetcher.h"
#include "index/graph/delta_rows.h"
#include "storage/array/array_files.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/read_cost.h"
#include "storage/array/row_sums.h"
#include "storage/base/exceptions.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
namespace {

// Number of rows to prefetch while copying: enough of them in flight to hide a miss in all CPU
// caches.
constexpr std::size_t kCopiedAhead = 6;
constexpr std::size_t kLineBytes = 64;

// Bytes per ReadAhead call: large compared to the cost of starting a sweep, small compared to a
// step.
constexpr std::size_t kReadAheadBytes = std::size_t{4} << 20;

void Prefetch(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kLineBytes) __builtin_prefetch(&bytes[at]);
}

/// Reads rows that are all on the local disk.
class DiskRows final : public RowFetcher {
 public:
  explicit DiskRows(std::unique_ptr<RowReader> reader) : reader_(std::move(reader)) {}
  Status Read(std::span<RowTarget> targets) override { return reader_->Read(targets); }
  RowReaderStats stats() const override { return reader_->stats(); }

 private:
  const std::unique_ptr<RowReader> reader_;
};

/// Returns the number of frames that fit into `capacity_bytes`, up to one per row, as more would
/// remain empty.
std::uint32_t FramesFor(std::size_t capacity_bytes, std::size_t row_bytes, std::uint64_t rows) {
  if (row_bytes == 0) return 0;
  const std::uint64_t wanted = std::min<std::uint64_t>(capacity_bytes / row_bytes, rows);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(wanted, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

/// Implementation. A step has these stages: (1) the pool plans it (hits, misses, inserts); (2) the
/// misses are read, from the delta if it holds the row, else from the array; (3) Hold leaves rows
/// in their slots, whereas Gather copies hits out before inserts overwrite their frames.
///
/// Invariant: while `started_`, every frame holds the row that the policy expects in it. A failed
/// read breaks the invariant, because a row that was assigned to a frame did not arrive. Only Start
/// restores it.
class FeatureCache::Impl {
 public:
  Impl(ArrayEntry array, const FeatureCacheOptions& options, const ReadCost& read_cost,
       std::shared_ptr<const DeltaRows> delta, std::unique_ptr<RowFetcher> fetcher, BufferPool pool)
      : array_(std::move(array)),
        read_cost_(read_cost),
        delta_(std::move(delta)),
        row_count_(delta_ == nullptr ? array_.rows : delta_->rows()),
        row_bytes_(pool.frame_bytes()),
        on_arrival_(options.on_arrival),
        fetcher_(std::move(fetcher)),
        pool_(std::move(pool)) {}

  /// `graph` is the snapshot whose delta overlays the rows, or null.
  static Result<std::unique_ptr<Impl>> Open(const Store& store,
                                            std::shared_ptr<const GraphSnapshot> graph,
                                            std::string_view array,
                                            const FeatureCacheOptions& options);

  Status Start(std::unique_ptr<Policy> policy);
  Result<bool> ReadAhead();
  Status Hold(std::span<const Row> rows, std::vector<SlotId>& slots);
  Status Gather(std::span<const Row> rows, std::span<std::byte> out);
  GatherStats stats() const;

  void Discard() {
    started_ = false;
    pool_.Discard();
  }

  BufferPool& pool() { return pool_; }
  const ArrayEntry& array() const { return array_; }
  const ReadCost& read_cost() const { return read_cost_; }
  std::uint64_t row_count() const { return row_count_; }
  const RowFetcher& fetcher() const { return *fetcher_; }

 private:
  Status CheckRows(std::span<const Row> rows) const;
  Status CheckOutput(std::span<const Row> rows, std::span<std::byte> out) const;
  /// Guards a change of the pool: unless Done is called, the cache must be started again.
  class Change {
   public:
    explicit Change(Impl& cache) : cache_(cache) { cache_.started_ = false; }
    Status Done() {
      cache_.started_ = true;
      return Status::Ok();
    }

   private:
    Impl& cache_;
  };
  Status ReadTargets();
  Status ReadDelta();
  std::byte* RowAt(std::span<std::byte> out, std::size_t request) const {
    return out.data() + request * row_bytes_;
  }

  const ArrayEntry array_;
  const ReadCost read_cost_;
  const std::shared_ptr<const DeltaRows> delta_;  // null: all rows are in the array
  const std::uint64_t row_count_;
  const std::size_t row_bytes_;  // size of a row in the cache
  const std::function<void(std::span<std::byte>)> on_arrival_;
  const std::unique_ptr<RowFetcher> fetcher_;
  BufferPool pool_;
  std::vector<RowTarget> targets_;
  std::vector<std::byte*> arrived_;
  StepPlan plan_;
  double update_seconds_ = 0;
  bool started_ = true;  // a pool without a policy is a valid start: it caches no row
};

Status FeatureCache::Impl::ReadTargets() {
  arrived_.clear();
  if (on_arrival_) {  // a reader may reorder its targets and drop some
    for (const RowTarget& target : targets_) arrived_.push_back(target.out);
  }
  if (delta_ != nullptr) RHIZOME_RETURN_IF_ERROR(ReadDelta());
  RHIZOME_RETURN_IF_ERROR(fetcher_->Read(targets_));
  for (std::byte* const row : arrived_) on_arrival_({row, row_bytes_});
  return Status::Ok();
}

// Reads the targets that the delta holds and leaves the others in `targets_`.
Status FeatureCache::Impl::ReadDelta() {
  std::size_t others = 0;
  for (const RowTarget& target : targets_) {
    if (delta_->Holds(target.row)) {
      RHIZOME_RETURN_IF_ERROR(delta_->Read(target.row, {target.out, array_.row_bytes()}));
    } else {
      targets_[others++] = target;
    }
  }
  targets_.resize(others);
  return Status::Ok();
}

Status FeatureCache::Impl::Start(std::unique_ptr<Policy> policy) {
  if (!started_) pool_.Forget();
  Change change(*this);
  RHIZOME_RETURN_IF_ERROR(pool_.SetPolicy(std::move(policy)));
  const std::vector<PrefillEntry> prefill = pool_.Prefill();
  for (std::size_t done = 0; done < prefill.size();) {
    // Steps of the previous superbatch may still hold slots that the prefill needs.
    std::size_t least = 1, wanted = prefill.size() - done;
    if (pool_.knows_reads()) least = wanted = std::min(wanted, PrefillPiece(row_bytes_));
    const Result<std::size_t> room = pool_.WaitForSpace(least, wanted);
    if (!room) return room.error();
    targets_.clear();
    for (const std::size_t end = done + *room; done < end; ++done) {
      const auto& [row, frame] = prefill[done];
      targets_.push_back({row, pool_.Fill(row, frame).data()});
    }
    RHIZOME_RETURN_IF_ERROR(ReadTargets());
  }
  return change.Done();
}

Result<bool> FeatureCache::Impl::ReadAhead() {
  if (!started_) return false;
  Change change(*this);
  const std::size_t most = PrefillPiece(row_bytes_);
  targets_.clear();
  for (const auto& [row, slot] : pool_.TakeAhead(most, most))
    targets_.push_back({row, pool_.slot(slot).data()});
  const bool any = !targets_.empty();  // ReadTargets removes targets that the delta holds
  if (any) RHIZOME_RETURN_IF_ERROR(ReadTargets());
  RHIZOME_RETURN_IF_ERROR(change.Done());
  return any;
}

Status FeatureCache::Impl::CheckRows(std::span<const Row> rows) const {
  for (const Row row : rows) {
    if (row < 0 || static_cast<std::uint64_t>(row) >= row_count_) {
      return Status::InvalidArgument(fmt::format("gather from array '{}': row {} is not in [0, {})",
                                                 ShownName(array_.name), row, row_count_));
    }
  }
  if (!started_) {
    return Status::InvalidArgument(
        fmt::format("gather from array '{}': an earlier read failed, so the pool is incomplete; "
                    "start the cache again",
                    ShownName(array_.name)));
  }
  return Status::Ok();
}

Status FeatureCache::Impl::CheckOutput(std::span<const Row> rows, std::span<std::byte> out) const {
  std::size_t wanted_bytes = 0;
  if (__builtin_mul_overflow(rows.size(), row_bytes_, &wanted_bytes) ||
      out.size() != wanted_bytes) {
    return Status::InvalidArgument(fmt::format(
        "gather from array '{}': {} rows of {} bytes do not match the {} bytes of output",
        ShownName(array_.name), rows.size(), row_bytes_, out.size()));
  }
  if (pool_.is_held()) {
    return Status::InvalidArgument(fmt::format(
        "gather from array '{}': rows are held; release them, or hold these rows as well",
        ShownName(array_.name)));
  }
  return Status::Ok();
}

Status FeatureCache::Impl::Hold(std::span<const Row> rows, std::vector<SlotId>& slots) {
  RHIZOME_RETURN_IF_ERROR(CheckRows(rows));
  const Stopwatch watch;
  Change change(*this);
  RHIZOME_RETURN_IF_ERROR(pool_.Plan(rows, plan_));
  const Status held = pool_.Hold(rows, plan_, slots);
  update_seconds_ += watch.seconds();
  if (!held.ok()) return held.WithContext(fmt::format("array '{}'", ShownName(array_.name)));
  targets_.clear();
  for (const std::uint32_t miss : plan_.misses)
    targets_.push_back({rows[miss], pool_.slot(slots[miss]).data()});
  const Status status = Guarded([this] { return ReadTargets(); });
  if (!status.ok()) {
    pool_.Release(slots);
    return status;
  }
  return change.Done();
}

Status FeatureCache::Impl::Gather(std::span<const Row> rows, std::span<std::byte> out) {
  RHIZOME_RETURN_IF_ERROR(CheckOutput(rows, out));
  RHIZOME_RETURN_IF_ERROR(CheckRows(rows));
  Change change(*this);
  RHIZOME_RETURN_IF_ERROR(pool_.Plan(rows, plan_));
  targets_.clear();
  for (const std::uint32_t miss : plan_.misses) targets_.push_back({rows[miss], RowAt(out, miss)});
  RHIZOME_RETURN_IF_ERROR(ReadTargets());
  const std::vector<StepPlan::Place>& hits = plan_.hits;
  for (std::size_t i = 0; i < hits.size(); ++i) {
    // Frames are in no order, so the processor cannot predict which comes next.
    if (i + kCopiedAhead < hits.size()) Prefetch(pool_.frame(hits[i + kCopiedAhead].frame));
    std::memcpy(RowAt(out, hits[i].request), pool_.frame(hits[i].frame).data(), row_bytes_);
  }
  // All hits have been copied, so inserts may overwrite their frames.
  for (const StepPlan::Place& insert : plan_.inserts) {
    std::memcpy(pool_.Fill(rows[insert.request], insert.frame).data(), RowAt(out, insert.request),
                row_bytes_);
  }
  return change.Done();
}

GatherStats FeatureCache::Impl::stats() const {
  const PoolCounters& pool = pool_.counters();
  const RowReaderStats reader = fetcher_->stats();
  return {{.rows_requested = pool.requests,
           .pool_hits = pool.hits,
           .rows_kept = pool.kept,
           .rows_read = pool.reads() - pool.kept,
           .bytes_read = reader.read_bytes,
           .reads_issued = reader.reads},
          update_seconds_};
}

namespace {

Result<std::unique_ptr<RowReader>> OpenReaderOfSome(const ChunkArray& rows,
                                                    std::unique_ptr<ChunkArray> sidecar,
                                                    const RowReaderOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(auto sums, RowSums::Open(rows.entry(), std::move(sidecar)));
  return RowReader::Open(rows, std::move(sums), std::make_shared<ArrayFiles>(rows, options.direct),
                         options);
}

}  // namespace

Result<std::unique_ptr<FeatureCache::Impl>> FeatureCache::Impl::Open(
    const Store& store, std::shared_ptr<const GraphSnapshot> graph, std::string_view array,
    const FeatureCacheOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ChunkArray> rows, store.OpenArray(array));
  if (rows->entry().layout != ArrayLayout::kRow) {
    return Fail(Status::InvalidArgument(
        fmt::format("array '{}' has layout '{}', which cannot be read row by row; store it with "
                    "layout 'row'",
                    array, ArrayLayoutName(rows->entry().layout))));
  }
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<ChunkArray> sidecar,
                           store.OpenArray(SidecarName(array)));
  const bool mapped = options.reader.io.maker == IoMaker::kMapped;
  ReadCost cost = options.read_cost.value_or(ReadCost());
  if (mapped) {
    cost.fixed_gap_bytes = 0;  // pages between rows would be faulted in
  } else if (!options.read_cost) {
    RHIZOME_ASSIGN_OR_RETURN(cost, MeasureReadCost(*rows, options.reader.io));
  }
  RowReaderOptions reading = options.reader;
  reading.gap_bytes = cost.gap_bytes();
  reading.direct = reading.direct && !mapped;
  // A fetcher reads only some of the rows from the local disk, so their checksums are loaded on
  // demand.
  RHIZOME_ASSIGN_OR_RETURN(auto reader, options.fetcher
                                            ? OpenReaderOfSome(*rows, std::move(sidecar), reading)
                                            : RowReader::Open(*rows, *sidecar, reading));
  const ArrayEntry& entry = rows->entry();
  std::unique_ptr<RowFetcher> fetcher;
  if (options.fetcher) {
    RHIZOME_ASSIGN_OR_RETURN(fetcher, options.fetcher(std::move(reader), entry));
  } else {
    fetcher = std::make_unique<DiskRows>(std::move(reader));
  }
  auto delta = graph == nullptr ? nullptr : DeltaRows::Of(std::move(graph), entry);
  const std::uint64_t row_count = delta == nullptr ? entry.rows : delta->rows();
  const std::size_t kept_bytes = std::max<std::size_t>(options.kept_row_bytes, entry.row_bytes());
  RHIZOME_ASSIGN_OR_RETURN(
      BufferPool pool,
      BufferPool::Create(kept_bytes, FramesFor(options.capacity_bytes, kept_bytes, row_count),
                         options.held));
  return std::make_unique<Impl>(entry, options, cost, std::move(delta), std::move(fetcher),
                                std::move(pool));
}

std::size_t PrefillPiece(std::size_t kept_row_bytes) {
  return std::max<std::size_t>(kReadAheadBytes / std::max<std::size_t>(kept_row_bytes, 1), 1);
}

HeldRows::HeldRows(HeldRows&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      table_(other.table_),
      slots_(std::move(other.slots_)) {}

HeldRows& HeldRows::operator=(HeldRows&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(table_, other.table_);
  std::swap(slots_, other.slots_);
  return *this;
}

std::size_t HeldRows::row_bytes() const { return pool_ == nullptr ? 0 : pool_->frame_bytes(); }

HeldRows::~HeldRows() {
  if (pool_ != nullptr) pool_->Release(slots_);
}

Result<std::unique_ptr<FeatureCache>> FeatureCache::Open(const Store& store, std::string_view array,
                                                         const FeatureCacheOptions& options) try {
  RHIZOME_ASSIGN_OR_RETURN(auto impl, Impl::Open(store, nullptr, array, options));
  return std::unique_ptr<FeatureCache>(new FeatureCache(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::unique_ptr<FeatureCache>> FeatureCache::Open(const GraphSnapshot& graph,
                                                         std::string_view array,
                                                         const FeatureCacheOptions& options) try {
  const std::shared_ptr<const GraphSnapshot> fixed = graph.Snapshot();
  RHIZOME_ASSIGN_OR_RETURN(auto impl, Impl::Open(fixed->store(), fixed, array, options));
  return std::unique_ptr<FeatureCache>(new FeatureCache(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

FeatureCache::FeatureCache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FeatureCache::~FeatureCache() = default;

std::uint32_t FeatureCache::frame_count() const { return impl_->pool().frame_count(); }
const ArrayEntry& FeatureCache::array() const { return impl_->array(); }
const ReadCost& FeatureCache::read_cost() const { return impl_->read_cost(); }
std::uint64_t FeatureCache::row_count() const { return impl_->row_count(); }
Status FeatureCache::Start(std::unique_ptr<Policy> policy) try {
  return impl_->Start(std::move(policy));
} catch (...) {
  return StatusOfException();
}
void FeatureCache::Announce(const Policy& next) { impl_->pool().Announce(next); }
bool FeatureCache::announced() const { return impl_->pool().announced(); }
Result<bool> FeatureCache::ReadAhead() {
  return Guarded([&] { return impl_->ReadAhead(); });
}
Status FeatureCache::Hold(std::span<const Row> rows, HeldRows& held) try {
  held = HeldRows();
  RHIZOME_RETURN_IF_ERROR(impl_->Hold(rows, held.slots_));
  held.pool_ = &impl_->pool();
  held.table_ = impl_->pool().table();
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}
Status FeatureCache::Gather(std::span<const Row> rows, std::span<std::byte> out) try {
  return impl_->Gather(rows, out);
} catch (...) {
  return StatusOfException();
}
void FeatureCache::SetStarved(bool starved) { impl_->pool().SetStarved(starved); }
void FeatureCache::Discard() { impl_->Discard(); }
void FeatureCache::Cancel() { impl_->pool().Cancel(); }
std::size_t FeatureCache::kept_row_bytes() const { return impl_->pool().frame_bytes(); }
GatherStats FeatureCache::stats() const { return impl_->stats(); }
RowReaderStats FeatureCache::reader_stats() const { return impl_->fetcher().stats(); }

}  // namespace rhizome
