#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Counters since the store was opened; they never decrease. MetricsText has their names and help.
enum class Counter : std::uint8_t {
  kWrites,              ///< batches that were written
  kWriteOperations,     ///< operations in them
  kWriteBytes,          ///< bytes of their records and rows, as written to the catalogue's log
  kGroupCommits,        ///< writes to the catalogue, each of one or more batches
  kNeighborLookups,     ///< calls of LookUpNeighbors
  kNeighborVertices,    ///< vertices in them
  kRowLookups,          ///< calls of RowLookup::Read
  kRowVertices,         ///< vertices in them
  kRowCacheHits,        ///< rows found in memory
  kRowCacheMisses,      ///< rows that were read from disk
  kRowCacheEvictions,   ///< blocks of rows that were evicted
  kListCacheHits,       ///< blocks of neighbour lists found in memory
  kListCacheMisses,     ///< blocks of neighbour lists that were read from disk
  kListCacheEvictions,  ///< blocks of neighbour lists that were evicted
  kFileReads,           ///< reads of the store's files, without the catalogue
  kFileReadBytes,       ///< bytes that those reads returned
  kFileWriteBytes,      ///< bytes written to the store's files, without the catalogue
  kCompactions,         ///< compactions that created a generation
  kCompactedCommits,    ///< commits that compactions merged into a generation
  kRefreshes,           ///< moves of a reader to a newer commit
  kCount_,
};

/// Current values, which rise and fall.
enum class Gauge : std::uint8_t {
  kGeneration,         ///< number of the current generation
  kSequence,           ///< number of the latest visible commit
  kVertices,           ///< vertices that are not deleted
  kEdges,              ///< directed edges of the generation
  kDeltaEntries,       ///< edges, vertices and rows written since the generation was created
  kDeltaCommits,       ///< commits since the generation was created
  kPinnedGenerations,  ///< generations that handles and snapshots of this store keep on disk
  kCacheBytes,         ///< memory in use by the caches of rows and neighbour lists
  kCount_,
};

/// Timed operations. Only about one look-up in kSampledCalls is timed, so that most look-ups do not
/// read the clock; the other operations are always timed.
enum class Timer : std::uint8_t {
  kWrite,           ///< Graph::Write, including the wait for other threads' commits
  kNeighborLookup,  ///< LookUpNeighbors
  kRowLookup,       ///< RowLookup::Read
  kCompaction,      ///< a compaction
  kCount_,
};

inline constexpr std::size_t kCounters = static_cast<std::size_t>(Counter::kCount_);
inline constexpr std::size_t kGauges = static_cast<std::size_t>(Gauge::kCount_);
inline constexpr std::size_t kTimers = static_cast<std::size_t>(Timer::kCount_);
inline constexpr std::size_t kStatusCodes = static_cast<std::size_t>(StatusCode::kInterrupted) + 1;

/// A histogram of durations. The upper bound of bucket i is 256 ns * 2^i; the last bucket has none.
struct LatencyHistogram {
  static constexpr std::size_t kBuckets = 27;  // the last but one ends at 8.6 s
  static constexpr std::uint64_t kFirstNanoseconds = 256;

  std::array<std::uint64_t, kBuckets> counts{};
  std::uint64_t sum_nanoseconds = 0;

  static std::size_t BucketOf(std::uint64_t nanoseconds) {
    if (nanoseconds <= kFirstNanoseconds) return 0;
    const auto bucket =
        static_cast<std::size_t>(std::bit_width((nanoseconds - 1) / kFirstNanoseconds));
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  static double UpperSeconds(std::size_t bucket) {
    return static_cast<double>(kFirstNanoseconds << bucket) * 1e-9;
  }
  std::uint64_t count() const;

  /// Returns the upper bound, in seconds, of the bucket that holds the given quantile (0.5: the
  /// median); 0 for an empty histogram.
  double Quantile(double share) const;
};

/// All metrics of a store at one moment. Updates by other threads during the snapshot may be
/// included in part.
struct MetricsSnapshot {
  std::array<std::uint64_t, kCounters> counters{};
  std::array<std::int64_t, kGauges> gauges{};
  std::array<LatencyHistogram, kTimers> timers{};
  std::array<std::uint64_t, kStatusCodes> errors{};  ///< by status code

  std::uint64_t of(Counter counter) const { return counters[static_cast<std::size_t>(counter)]; }
  std::int64_t of(Gauge gauge) const { return gauges[static_cast<std::size_t>(gauge)]; }
  const LatencyHistogram& of(Timer timer) const { return timers[static_cast<std::size_t>(timer)]; }
  std::uint64_t of(StatusCode code) const { return errors[static_cast<std::size_t>(code)]; }
};

using MetricsCallback = std::function<void(const MetricsSnapshot&)>;
using MetricsLabels = std::span<const std::pair<std::string, std::string>>;

/// Formats a snapshot in Prometheus' text exposition format 0.0.4: HELP and TYPE of every metric,
/// names that begin with "rhizome_", seconds and bytes as units. Every sample carries `labels`; a
/// label whose name is not [a-zA-Z_][a-zA-Z0-9_]* is omitted, values may be any text.
std::string MetricsText(const MetricsSnapshot& snapshot, MetricsLabels labels = {});

/// The metrics of a store. Counting takes no lock. Threads: any.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Adds to a counter and returns the previous count of this thread's shard. Callers use the
  /// returned count to decide which calls to time.
  std::uint64_t Add(Counter counter, std::uint64_t count = 1);
  void Observe(Timer timer, std::chrono::nanoseconds time);
  void CountError(StatusCode code);
  void Set(Gauge gauge, std::int64_t value);
  void Change(Gauge gauge, std::int64_t by);

  MetricsSnapshot Snapshot() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Calls a callback with a snapshot every `period`, and once more on destruction, from its own
/// thread. Exceptions of the callback are dropped. A forked child reports nothing. Ownership:
/// shares `metrics`.
class MetricsReporter {
 public:
  MetricsReporter(std::shared_ptr<const Metrics> metrics, MetricsCallback callback,
                  std::chrono::milliseconds period);
  ~MetricsReporter();

  /// Returns kOutOfMemory if the system granted no thread, in which case nothing is reported; else
  /// OK.
  Status status() const;

  MetricsReporter(const MetricsReporter&) = delete;
  MetricsReporter& operator=(const MetricsReporter&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
