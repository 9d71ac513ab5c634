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

#include "storage/remote/message_transport.h"
#include "tools/cli/mpi_entry.h"

namespace rhizome {
inline namespace internal {

/// Carries messages by MPI. One thread makes all calls of MPI, from its initialisation to its
/// finalisation. It uses only calls that do not block by contract, and sleeps between them, for
/// longer the longer no message arrives. Because Open MPI 4.1 may deadlock if the socket of a peer
/// breaks while it sends, a second thread watches that the first one makes progress, and fails the
/// requests of this rank if it does not.
/// Threads: Send and Wake, any; the other functions, one.
class MpiCarrier {
 public:
  struct Opened {
    std::uint32_t rank = 0;
    std::vector<std::string> hosts;
    MpiFacts facts;
  };

  explicit MpiCarrier(std::chrono::nanoseconds peer_timeout) : peer_timeout_(peer_timeout) {}

  /// Starts MPI. `self` is the carrier; its thread shares ownership and may outlive the caller.
  /// Errors: as MPI; kIoError, not all ranks have arrived within the peer timeout (at least 30 s).
  /// After kIoError MPI may not be called any more.
  static Result<Opened> Open(const std::shared_ptr<MpiCarrier>& self);

  /// Starts to deliver incoming messages to `transport` and to call its Tick. Errors: kOutOfMemory,
  /// the watching thread cannot be created.
  Status Begin(MessageTransport& transport);

  void Send(std::uint32_t peer, MessageBytes message);

  /// Makes the thread check for messages now.
  void Wake();

  /// Ends the thread; no message is delivered afterwards. If all ranks have ended (`orderly`), also
  /// finalises MPI. Returns whether MPI is finalised: if not, it may not be called any more.
  bool Close(bool orderly);

 private:
  using Clock = std::chrono::steady_clock;

  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    MessageBytes message;
  };
  using Transfers = std::vector<std::deque<Transfer>>;  // by peer, in message order

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

  // Used only by the thread.
  MPI_Comm comm_ = MPI_COMM_NULL;
  Transfers sends_, receives_;
  std::vector<bool> unreachable_;          // by peer
  MessageTransport* transport_ = nullptr;  // set before Begin wakes the thread

  // std::condition_variable, needed for timed waits, requires a std::mutex.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::uint32_t, MessageBytes>> orders_;
  bool woken_ = false;
  std::string starting_ = "MPI_Init";  // current step of the start, for errors
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
  std::uint64_t rounds_ = 0;  // iterations of Serve, which Watch observes
  std::thread thread_;
  std::thread watch_;
};

}  // namespace internal
}  // namespace rhizome
