#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "rhizome/transport.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"
#include "storage/remote/message_bytes.h"
#include "storage/remote/message_header.h"

namespace rhizome {
inline namespace internal {

/// Answers the requests to one service, in order of arrival, one at a time, on its own thread;
/// requests wait while there is no handler. Threads: any.
class RequestServer {
 public:
  struct Request {
    MessageHeader header;
    MessageBytes message;
  };
  using Answer = std::function<void(const Transport::Handler& handler, const Request& request)>;

  /// `answer` is called on that thread.
  explicit RequestServer(Answer answer) : answer_(std::move(answer)) {}
  ~RequestServer() { Stop(); }
  RequestServer(const RequestServer&) = delete;
  RequestServer& operator=(const RequestServer&) = delete;

  /// See Transport::Serve. Errors: kInvalidArgument, called by the handler; errors of
  /// Thread::Start.
  Status SetHandler(Transport::Handler handler);

  void Add(Request request);

  /// Discards all waiting and all future requests.
  void Drop();

  /// Does the same, and ends the thread after the request that is being answered.
  void Stop();

 private:
  Status Run();

  const Answer answer_;
  Mutex mutex_;
  CondVar changed_;
  Transport::Handler handler_ RHIZOME_GUARDED_BY(mutex_);
  std::deque<Request> waiting_ RHIZOME_GUARDED_BY(mutex_);
  std::thread::id runs_on_ RHIZOME_GUARDED_BY(mutex_);  // the thread of Run
  bool answers_ RHIZOME_GUARDED_BY(mutex_) = false;     // handler_ is in use
  bool dropped_ RHIZOME_GUARDED_BY(mutex_) = false;
  bool stopped_ RHIZOME_GUARDED_BY(mutex_) = false;
  Thread thread_;  // started and joined without mutex_: by SetHandler, under serving_, and by Stop
  Mutex serving_;  // held by SetHandler, before mutex_
};

}  // namespace internal
}  // namespace rhizome
