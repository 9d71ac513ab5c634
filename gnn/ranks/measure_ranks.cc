#include "gnn/ranks/measure_ranks.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "gnn/ranks/rank_layers.h"
#include "gnn/train/train_feed.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Returns why the job of the ranks has failed, or OK. Exchanges no data.
Status FailureOf(Transport& transport) { return transport.Exchange(transport.rank(), {}, {}); }

/// Cancels a job when its caller cancels it, or when another rank is lost or has failed. It polls
/// on a thread, because a layer can take long, without communication between ranks.
class RankWatch {
 public:
  RankWatch(const JobControl& asked, Transport& transport, JobControl& job)
      : asked_(asked), transport_(transport), job_(job) {}
  ~RankWatch() { ended_ = true; }
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  Status Start() {
    return thread_.Start([this] {
      while (!ended_) {
        if (asked_.cancelled() || !FailureOf(transport_).ok()) job_.Cancel();
        std::this_thread::sleep_for(kNap);
      }
      return Status::Ok();
    });
  }

 private:
  static constexpr std::chrono::milliseconds kNap{20};
  const JobControl& asked_;
  Transport& transport_;
  JobControl& job_;
  std::atomic<bool> ended_ = false;
  Thread thread_;  // joined first
};

}  // namespace

Status EvaluateOverRanks(const OneTraining& one, std::uint64_t cache_bytes, Transport& transport) {
  if (transport.ranks() == 1) return EvaluateBestWeights(one, cache_bytes, one.control);
  JobControl* self = nullptr;
  JobControl job([&](const JobControl::Progress& progress) {
    // A short layer may end before the watch polls again.
    if (!one.control.Report(progress).ok()) self->Cancel();
  });
  self = &job;
  RankLayers layers(transport);
  Status measured;
  {
    RankWatch watch(one.control, transport, job);
    RHIZOME_RETURN_IF_ERROR(watch.Start());
    measured = EvaluateBestWeights(one, cache_bytes, job, &layers);
  }
  // The failure of another rank is the cause, the cancellation of this one only its effect.
  if (measured.code() == StatusCode::kInterrupted && !one.control.cancelled()) {
    const Status failure = FailureOf(transport);
    if (!failure.ok()) measured = failure;
  }
  if (measured.code() != StatusCode::kIoError) return measured;
  return {measured.code(), fmt::format("{} (while the final weights were measured, after training)",
                                       measured.message())};
}

}  // namespace internal
}  // namespace rhizome
