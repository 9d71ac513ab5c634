#pragma once

#include <mpi.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mpi_entry.h"
#include "rhizome/storage/message_transport.h"

namespace rhizome::inline internal {

/// Carries messages by MPI. One thread makes all calls of MPI, from its start to its end; none of
/// them blocks by its contract, and between them it naps, for longer the longer nothing happens.
/// But Open MPI 4.1 may lock itself out when a peer's socket breaks while it sends, so another
/// thread watches that this one comes by, and ends the calls of this rank where it does not.
/// Threads: Send and Wake, any; the others, one.
class MpiCarrier {
 public:
  struct Opened {
    std::uint32_t rank = 0;
    std::vector<std::string> hosts;
    MpiFacts facts;
  };

  explicit MpiCarrier(std::chrono::nanoseconds peer_timeout) : peer_timeout_(peer_timeout) {}

  /// Starts MPI. `self` is the carrier: its thread keeps it, and may outlive the caller.
  /// Errors: those of MPI; kIoError, not all ranks have come within the peer timeout (30 s where
  /// that is shorter): MPI must then be left as it is.
  static Result<Opened> Open(const std::shared_ptr<MpiCarrier>& self);

  /// Begins to hand over what arrives, and to tick. Errors: kOutOfMemory, no thread to watch.
  Status Begin(MessageTransport& transport);

  void Send(std::uint32_t peer, MessageBytes message);

  /// Has the thread look for messages now.
  void Wake();

  /// Ends the thread; nothing is handed over afterwards. If all ranks have ended (`orderly`) it
  /// ends MPI too. Returns whether that is done: if not, MPI must be left as it is.
  bool Close(bool orderly);

 private:
  using Clock = std::chrono::steady_clock;

  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    MessageBytes message;
  };
  using Transfers = std::vector<std::deque<Transfer>>;  // by peer, in the order of its messages

  void Run();
  Status Start(Opened& opened);
  Status AwaitStart(std::unique_lock<std::mutex>& lock);
  Status AwaitRequest(MPI_Request& request, const std::string& what);
  bool StartsWith(const std::string& what);
  void Serve();
  void Watch();
  void Finish();

  std::chrono::microseconds LongestNap() const;
  bool Progress();
  bool TakeOrders();
  std::optional<MessageBytes> TakeFirst(std::uint32_t peer, Transfers& transfers);
  bool TestSends();
  bool Probe();
  bool TestReceives();
  void BeginReceive(const MPI_Status& found);
  void Lose(std::uint32_t peer, int error);

  const std::chrono::nanoseconds peer_timeout_;

  // Used by the thread alone.
  MPI_Comm comm_ = MPI_COMM_NULL;
  Transfers sends_, receives_;
  std::vector<bool> unreachable_;          // by peer
  MessageTransport* transport_ = nullptr;  // set before Begin wakes the thread

  // A condition that ends with time needs the standard library's own kind of mutex.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::uint32_t, MessageBytes>> orders_;
  bool woken_ = false;
  std::string starting_ = "MPI_Init";  // what the start does
  Status started_;
  Opened opened_;
  enum class State {
    kStarting,
    kOpened,
    kServing,
    kClosing,
    kAborting,
    kEnded
  } state_ = State::kStarting;
  bool finalized_ = false;
  std::uint64_t rounds_ = 0;  // of Serve
  std::thread thread_;
  std::thread watch_;
};

}  // namespace rhizome::inline internal
