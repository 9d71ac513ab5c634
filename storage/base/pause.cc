#include "storage/base/pause.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace rhizome {
inline namespace internal {
namespace {

std::atomic<bool> no_more = false;

}  // namespace

void PauseForWriter() {
  if (!no_more) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

void PauseNoMore() { no_more = true; }

}  // namespace internal
}  // namespace rhizome
