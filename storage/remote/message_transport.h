#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rhizome/storage/message_bytes.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

class RequestServer;
struct MessageHeader;

/// A Transport over anything that carries messages in order: it knows which message answers which,
/// checks them, and watches who is silent. Threads, sockets and MPI are its user's, the carrier's.
///
/// Invariants, under mutex_:
///   (1) failed_ is set once, before anybody is told of it; from then on no call succeeds;
///   (2) a peer that has ended sends nothing more, and is neither silent nor lost;
///   (3) the n-th message of a peer that is taken has the sequence n: nothing is lost, twice or out
///       of turn.
class MessageTransport final : public Transport {
 public:
  /// Carries a message to a peer: returns without waiting for it, and without calling the
  /// MessageTransport of any rank. Messages to one peer arrive in the order of the calls.
  using Send = std::function<void(std::uint32_t peer, MessageBytes message)>;

  /// Hears that a call begins to wait for what a peer sends unasked. As Send, it returns at once.
  using Wake = std::function<void()>;

  /// `hosts`: of each rank, by rank. Peers count as silent after `peer_timeout`. `wake` may be
  /// empty.
  MessageTransport(std::uint32_t rank, std::vector<std::string> hosts,
                   std::chrono::nanoseconds peer_timeout, Send send, Wake wake = {});

  /// The carrier must call no more; requests that are being answered are waited for.
  ~MessageTransport() override;

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(hosts_.size()); }
  std::string HostOf(std::uint32_t rank) const override;
  Result<Ticket> Ask(std::uint32_t peer, Service service, std::span<const std::byte> request,
                     std::span<std::byte> reply) override;
  Status Wait(Ticket ticket) override;
  Status Serve(Service service, Handler handler) override;
  Status Exchange(std::uint32_t peer, std::span<const std::byte> out,
                  std::span<std::byte> in) override;
  void Leave(const Status& why) override;
  TransportStats stats() const override;

  // --- For the carrier.

  /// Takes a message of a peer. Threads: for one peer, one at a time.
  void Receive(std::uint32_t peer, MessageBytes message);

  /// Knows that a peer is alive: a message of it is on its way, and may take long.
  void HearFrom(std::uint32_t peer);

  /// Returns whether a call of this rank waits for a message, or will. A carrier that looks for
  /// messages may learn of others somewhat later.
  bool Awaits() const;

  /// Names peers, those that were heard least recently first, at most eight.
  std::string LeastHeard() const;

  /// Knows that nothing comes from a peer any more. `how` follows "rank 2 (host) is lost: ".
  void LosePeer(std::uint32_t peer, const std::string& how);

  /// Ends all calls with `why`, and tells the others.
  void FailJob(const Status& why);

  /// Ends all calls of this rank with an error, and tells nobody: as if its process had died.
  void Die(const Status& why);

  /// Sends heartbeats, and looks who is silent. To be called each tick(), by one thread.
  void Tick();
  std::chrono::nanoseconds tick() const { return tick_; }

  /// Tells all others that this rank is done. Nothing can be sent afterwards.
  void End();

  /// Waits until all others have ended too, or the job has failed: returns whether all have ended.
  bool AwaitEnds();

  /// Returns why the job has failed, or OK.
  Status failure() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    std::uint64_t received = 0;          // messages
    std::deque<MessageBytes> exchanged;  // that no Exchange has taken
    Clock::time_point heard;
    bool ended = false;
    bool lost = false;
    bool knows = false;  // that the job has failed: it has said so
  };

  struct Pending {
    std::uint32_t peer = 0;
    Service service = Service::kRows;
    std::span<std::byte> reply;
    bool waited_for = false;
    bool answered = false;
    MessageBytes answer;
  };

  /// Counts the messages to a peer, and keeps them in order.
  struct Outlet {
    Mutex mutex;
    std::uint64_t sent RHIZOME_GUARDED_BY(mutex) = 0;
    bool closed RHIZOME_GUARDED_BY(mutex) = false;
  };

  std::string NameOf(std::uint32_t rank) const;
  Status CheckPeer(std::uint32_t peer, std::size_t bytes) const;
  Status CheckOpen(std::uint32_t peer) const RHIZOME_REQUIRES(mutex_);
  void Post(std::uint32_t peer, MessageHeader header, std::span<const std::byte> payload);

  Status Accept(std::uint32_t peer, const MessageHeader& header);
  Status Take(std::uint32_t peer, const MessageHeader& header, MessageBytes message);
  Status TakeAnswer(std::uint32_t peer, const MessageHeader& header, MessageBytes message)
      RHIZOME_REQUIRES(mutex_);
  Status TakeFailure(std::uint32_t peer, const MessageHeader& header, const MessageBytes& message);
  Status TakeReply(const Pending& pending);
  Status TakeExchanged(std::uint32_t peer, const MessageBytes& message, std::span<std::byte> in);
  void AnswerRequest(const Handler& handler, const MessageHeader& header,
                     const MessageBytes& message);

  bool SetFailed(const Status& why);
  void AwaitThatAllKnow();
  bool AllKnow();
  std::optional<std::uint32_t> SilentPeer() RHIZOME_REQUIRES(mutex_);

  // Constant after construction.
  const std::uint32_t rank_;
  const std::vector<std::string> hosts_;
  const std::chrono::nanoseconds peer_timeout_;
  const std::chrono::nanoseconds tick_;
  const Send send_;
  const Wake wake_;
  std::vector<std::unique_ptr<Outlet>> outlets_;                   // by peer
  std::array<std::unique_ptr<RequestServer>, kServices> servers_;  // by service

  mutable Mutex mutex_;
  CondVar changed_;
  Status failed_ RHIZOME_GUARDED_BY(mutex_);
  std::vector<Peer> peers_ RHIZOME_GUARDED_BY(mutex_);
  std::unordered_map<Ticket, Pending> pending_ RHIZOME_GUARDED_BY(mutex_);
  Ticket next_ticket_ RHIZOME_GUARDED_BY(mutex_) = 1;
  std::uint32_t exchanging_ RHIZOME_GUARDED_BY(mutex_) = 0;  // calls that wait for a peer's part
  TransportStats stats_ RHIZOME_GUARDED_BY(mutex_);
  Clock::time_point ticked_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace internal
}  // namespace rhizome
