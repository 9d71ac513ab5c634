#include "storage/base/threads.h"

#include <memory>
#include <vector>

#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {

Status Thread::Start(std::function<Status()> work) {
  Status started = Guarded([&] {
    thread_ = std::thread([this, work = std::move(work)] { status_ = Guarded(work); });
    return Status::Ok();
  });
  if (RHIZOME_MUTANT("a thread that does not start is done")) return Status::Ok();
  return started;
}

Status Thread::Join() noexcept {
  if (thread_.joinable()) thread_.join();
  return std::exchange(status_, Status());
}

Status RunOnThreads(std::size_t threads, const std::function<Status()>& work) noexcept {
  std::vector<std::unique_ptr<Thread>> helpers;
  static_cast<void>(Guarded([&]() -> Status {
    for (std::size_t i = 1; i < threads; ++i) {
      helpers.push_back(std::make_unique<Thread>());
      RHIZOME_RETURN_IF_ERROR(helpers.back()->Start(work));
    }
    return Status::Ok();
  }));
  Status first = Guarded(work);
  for (const auto& helper : helpers) {
    Status status = helper->Join();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

}  // namespace internal
}  // namespace rhizome
