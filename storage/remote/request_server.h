#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "rhizome/storage/message_bytes.h"
#include "rhizome/storage/message_header.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/threads.h"
#include "rhizome/storage/transport.h"

namespace rhizome::inline internal {

/// Has the requests to one service answered, in the order in which they came, one at a time, on a
/// thread of its own; they wait while there is no handler. Threads: any.
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

  /// See Transport::Serve. Errors: kInvalidArgument, called by the handler; those of Thread::Start.
  Status SetHandler(Transport::Handler handler);

  void Add(Request request);

  /// Forgets what waits, and everything that comes later.
  void Drop();

  /// Does that, and ends the thread once the request that is being answered is.
  void Stop();

 private:
  Status Run();

  const Answer answer_;
  Mutex mutex_;
  CondVar changed_;
  Transport::Handler handler_ RHIZOME_GUARDED_BY(mutex_);
  std::deque<Request> waiting_ RHIZOME_GUARDED_BY(mutex_);
  std::thread::id runs_on_ RHIZOME_GUARDED_BY(mutex_);  // of Run
  bool answers_ RHIZOME_GUARDED_BY(mutex_) = false;     // handler_ is in use
  bool dropped_ RHIZOME_GUARDED_BY(mutex_) = false;
  bool stopped_ RHIZOME_GUARDED_BY(mutex_) = false;
  Thread thread_;  // started and joined under no lock: by SetHandler, under serving_, and Stop
  Mutex serving_;  // held by SetHandler, before mutex_
};

}  // namespace rhizome::inline internal
