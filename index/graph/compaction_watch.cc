#include "index/graph/compaction_watch.h"

#include <algorithm>
#include <thread>

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::chrono::milliseconds kCancelDelay{20};

Status Wait(std::chrono::milliseconds time, const JobControl& control) {
  for (std::chrono::milliseconds waited{0}; waited < time; waited += kCancelDelay) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    std::this_thread::sleep_for(std::min(kCancelDelay, time - waited));
  }
  return control.CheckCancelled();
}

bool MayPass(StatusCode code) {
  return code == StatusCode::kBusy || code == StatusCode::kOutOfSpace ||
         code == StatusCode::kOutOfMemory;
}

}  // namespace

Status WatchCompaction(Graph& graph, const CompactOptions& options,
                       std::chrono::milliseconds period, const JobControl& control,
                       const std::function<void(const CompactResult&)>& compacted) {
  while (true) {
    const auto result = graph.Compact(options, control);
    if (!result && !MayPass(result.error().code())) return result.error();
    if (result && result->compacted) compacted(*result);
    RHIZOME_RETURN_IF_ERROR(Wait(period, control));
  }
}

}  // namespace internal
}  // namespace rhizome
