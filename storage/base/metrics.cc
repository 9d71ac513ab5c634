#include "rhizome/metrics.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <mutex>
#include <numeric>

#include "storage/base/process.h"
#include "storage/base/threads.h"

namespace rhizome {
namespace {

struct Description {
  std::string_view name;
  std::string_view help;
};

constexpr std::array<Description, kCounters> kCounterTexts = {{
    {"writes", "Batches written"},
    {"write_operations", "Operations in written batches"},
    {"write_bytes", "Bytes of records and rows written"},
    {"group_commits", "Writes to the catalogue, each of one or more batches"},
    {"neighbor_lookups", "Calls that look up neighbours"},
    {"neighbor_lookup_vertices", "Vertices whose neighbours were looked up"},
    {"row_lookups", "Calls that look up rows"},
    {"row_lookup_vertices", "Vertices whose rows were looked up"},
    {"row_cache_hits", "Rows found in memory"},
    {"row_cache_misses", "Rows read from disk"},
    {"row_cache_evictions", "Blocks of rows evicted from the cache"},
    {"list_cache_hits", "Blocks of neighbour lists found in memory"},
    {"list_cache_misses", "Blocks of neighbour lists read from disk"},
    {"list_cache_evictions", "Blocks of neighbour lists evicted from the cache"},
    {"file_reads", "Reads from the store's files, without the catalogue's files"},
    {"file_read_bytes", "Bytes read from the store's files, without the catalogue's files"},
    {"file_write_bytes", "Bytes written to the store's files, without the catalogue's files"},
    {"compactions", "Compactions that created a generation"},
    {"compacted_commits", "Commits merged by compactions"},
    {"refreshes", "Times that a reader refreshed to newer commits"},
}};

constexpr std::array<Description, kGauges> kGaugeTexts = {{
    {"generation", "Number of the current generation"},
    {"sequence", "Last visible commit"},
    {"vertices", "Vertices that are not deleted"},
    {"generation_edges", "Directed edges of the generation"},
    {"delta_entries", "Edges, vertices and rows written since the generation was created"},
    {"delta_commits", "Commits since the generation was created"},
    {"pinned_generations", "Generations that handles of this store keep on disk"},
    {"cache_bytes", "Memory in use by the caches of rows and neighbour lists"},
}};

constexpr std::array<Description, kTimers> kTimerTexts = {{
    {"write_seconds", "Duration of a write"},
    {"neighbor_lookup_seconds",
     "Duration of a call that looks up neighbours, measured for one call in 16"},
    {"row_lookup_seconds", "Duration of a call that looks up rows, measured for one call in 16"},
    {"compaction_seconds", "Duration of a compaction"},
}};

bool IsLabelName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (name.empty() || !letter(name.front())) return false;
  for (const char c : name)
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  return true;
}

std::string Escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

/// Writes metrics one after another, each with its HELP and TYPE lines.
class TextWriter {
 public:
  explicit TextWriter(MetricsLabels labels) {
    for (const auto& [name, value] : labels)
      if (IsLabelName(name)) Append(labels_, name, value);
  }

  void Begin(std::string_view name, std::string_view help, std::string_view type) {
    name_ = fmt::format("rhizome_{}", name);
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}.\n# TYPE {} {}\n", name_, help, name_,
                   type);
  }

  template <typename T>
  void Sample(std::string_view suffix, T value, std::string_view label = {},
              std::string_view label_value = {}) {
    std::string labels = labels_;
    if (!label.empty()) Append(labels, label, label_value);
    fmt::format_to(std::back_inserter(text_), "{}{}{} {}\n", name_, suffix,
                   labels.empty() ? "" : "{" + labels + "}", value);
  }

  std::string Take() { return std::move(text_); }

 private:
  static void Append(std::string& labels, std::string_view name, std::string_view value) {
    if (!labels.empty()) labels += ',';
    labels += fmt::format("{}=\"{}\"", name, Escaped(value));
  }

  std::string labels_;
  std::string name_;
  std::string text_;
};

void WriteHistogram(const LatencyHistogram& histogram, TextWriter& out) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i + 1 < LatencyHistogram::kBuckets; ++i) {
    below += histogram.counts[i];
    out.Sample("_bucket", below, "le", fmt::format("{}", LatencyHistogram::UpperSeconds(i)));
  }
  out.Sample("_bucket", histogram.count(), "le", "+Inf");
  out.Sample("_sum", static_cast<double>(histogram.sum_nanoseconds) * 1e-9);
  out.Sample("_count", histogram.count());
}

}  // namespace

std::uint64_t LatencyHistogram::count() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

double LatencyHistogram::Quantile(double share) const {
  const std::uint64_t all = count();
  if (all == 0) return 0;
  const double wanted = share * static_cast<double>(all);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    below += counts[i];
    if (below > 0 && static_cast<double>(below) >= wanted) return UpperSeconds(i);
  }
  return UpperSeconds(kBuckets - 1);
}

std::string MetricsText(const MetricsSnapshot& snapshot, MetricsLabels labels) {
  TextWriter out(labels);
  for (std::size_t i = 0; i < kCounters; ++i) {
    const auto& [name, help] = kCounterTexts[i];
    out.Begin(fmt::format("{}_total", name), help, "counter");
    out.Sample("", snapshot.counters[i]);
  }
  out.Begin("errors_total", "Failed operations, by status code", "counter");
  for (std::size_t code = 1; code < kStatusCodes; ++code)
    out.Sample("", snapshot.errors[code], "code", StatusCodeName(static_cast<StatusCode>(code)));
  for (std::size_t i = 0; i < kGauges; ++i) {
    out.Begin(kGaugeTexts[i].name, kGaugeTexts[i].help, "gauge");
    out.Sample("", snapshot.gauges[i]);
  }
  for (std::size_t i = 0; i < kTimers; ++i) {
    out.Begin(kTimerTexts[i].name, kTimerTexts[i].help, "histogram");
    WriteHistogram(snapshot.timers[i], out);
  }
  return out.Take();
}

// Counters are sharded: the first kShards threads share no cache line. Snapshot sums the shards.
class Metrics::Impl {
 public:
  static constexpr std::size_t kShards = 16;
  template <std::size_t n>
  using Counts = std::array<std::atomic<std::uint64_t>, n>;
  struct alignas(64) Shard {
    Counts<kCounters> counters{};
    std::array<Counts<LatencyHistogram::kBuckets>, kTimers> buckets{};
    Counts<kTimers> nanoseconds{};
    Counts<kStatusCodes> errors{};
  };

  // Shards are assigned to threads round-robin.
  Shard& Own() {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t shard = next.fetch_add(1, std::memory_order_relaxed) % kShards;
    return shards[shard];
  }

  std::array<Shard, kShards> shards;
  std::array<std::atomic<std::int64_t>, kGauges> gauges{};
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

std::uint64_t Metrics::Add(Counter counter, std::uint64_t count) {
  return impl_->Own().counters[static_cast<std::size_t>(counter)].fetch_add(
      count, std::memory_order_relaxed);
}

void Metrics::Set(Gauge gauge, std::int64_t value) {
  impl_->gauges[static_cast<std::size_t>(gauge)].store(value, std::memory_order_relaxed);
}

void Metrics::Change(Gauge gauge, std::int64_t by) {
  impl_->gauges[static_cast<std::size_t>(gauge)].fetch_add(by, std::memory_order_relaxed);
}

void Metrics::Observe(Timer timer, std::chrono::nanoseconds time) {
  const auto nanoseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
  const auto which = static_cast<std::size_t>(timer);
  Impl::Shard& shard = impl_->Own();
  shard.buckets[which][LatencyHistogram::BucketOf(nanoseconds)].fetch_add(
      1, std::memory_order_relaxed);
  shard.nanoseconds[which].fetch_add(nanoseconds, std::memory_order_relaxed);
}

void Metrics::CountError(StatusCode code) {
  impl_->Own().errors[static_cast<std::size_t>(code)].fetch_add(1, std::memory_order_relaxed);
}

/// Collects the counts. Add, Observe and CountError count in the shard of the calling thread; this
/// function sums the shards and copies the gauges, which are not sharded. MetricsText formats the
/// result.
MetricsSnapshot Metrics::Snapshot() const {
  MetricsSnapshot all;
  const auto add = [](auto& to, const auto& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i].load(std::memory_order_relaxed);
  };
  for (const Impl::Shard& shard : impl_->shards) {
    add(all.counters, shard.counters);
    add(all.errors, shard.errors);
    for (std::size_t t = 0; t < kTimers; ++t) {
      add(all.timers[t].counts, shard.buckets[t]);
      all.timers[t].sum_nanoseconds += shard.nanoseconds[t].load(std::memory_order_relaxed);
    }
  }
  add(all.gauges, impl_->gauges);
  return all;
}

class MetricsReporter::Impl {
 public:
  Impl(std::shared_ptr<const Metrics> metrics, MetricsCallback callback,
       std::chrono::milliseconds period)
      : metrics_(std::move(metrics)), callback_(std::move(callback)), period_(period) {
    started_ = worker_.Start([this] {
      Run();
      return Status::Ok();
    });
  }

  const Status& started() const { return started_; }

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stop_.notify_one();
    static_cast<void>(worker_.Join());
  }

  bool of_this_process() const { return process_.here(); }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      const bool last = stop_.wait_for(lock, period_, [this] { return stopping_; });
      lock.unlock();
      try {
        callback_(metrics_->Snapshot());
      } catch (...) {  // thrown by user code
      }
      if (last) return;
      lock.lock();
    }
  }

  const OwnerProcess process_;
  const std::shared_ptr<const Metrics> metrics_;  // shared: it may outlive the store
  const MetricsCallback callback_;
  const std::chrono::milliseconds period_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  Status started_;
  Thread worker_;  // last: it uses all other members
};

MetricsReporter::MetricsReporter(std::shared_ptr<const Metrics> metrics, MetricsCallback callback,
                                 std::chrono::milliseconds period)
    : impl_(std::make_unique<Impl>(std::move(metrics), std::move(callback), period)) {}

Status MetricsReporter::status() const { return impl_->started(); }

MetricsReporter::~MetricsReporter() {
  if (!impl_->of_this_process()) {
    static_cast<void>(impl_.release());  // the worker thread does not exist in a forked child
    return;
  }
  impl_->Stop();
}

}  // namespace rhizome
