#include "storage/remote/request_server.h"

namespace rhizome {
inline namespace internal {

Status RequestServer::SetHandler(Transport::Handler handler) {
  {
    const MutexLock lock(mutex_);
    if (answers_ && runs_on_ == std::this_thread::get_id())
      return Status::InvalidArgument("a handler of requests cannot be changed by itself");
  }
  const MutexLock alone(serving_);
  if (handler != nullptr && !thread_.started())
    RHIZOME_RETURN_IF_ERROR(thread_.Start([this] { return Run(); }));
  const MutexLock lock(mutex_);
  // Empty in the meantime, so that no further request begins.
  handler_ = nullptr;
  while (answers_) changed_.Wait(mutex_);
  handler_ = std::move(handler);
  changed_.NotifyAll();
  return Status::Ok();
}

void RequestServer::Add(Request request) {
  const MutexLock lock(mutex_);
  if (dropped_) return;
  waiting_.push_back(std::move(request));
  changed_.NotifyAll();
}

void RequestServer::Drop() {
  const MutexLock lock(mutex_);
  dropped_ = true;
  waiting_.clear();
}

void RequestServer::Stop() {
  Drop();
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  static_cast<void>(thread_.Join());
}

Status RequestServer::Run() {
  mutex_.Lock();
  runs_on_ = std::this_thread::get_id();
  while (true) {
    while (!stopped_ && (handler_ == nullptr || waiting_.empty())) changed_.Wait(mutex_);
    if (stopped_) break;
    const Request request = std::move(waiting_.front());
    waiting_.pop_front();
    // SetHandler waits for answers_ before it changes what this copy shares.
    Transport::Handler handler = handler_;
    answers_ = true;
    mutex_.Unlock();
    answer_(handler, request);
    handler = nullptr;
    mutex_.Lock();
    answers_ = false;
    changed_.NotifyAll();
  }
  mutex_.Unlock();
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
