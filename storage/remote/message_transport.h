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

#include "rhizome/status.h"
#include "rhizome/transport.h"
#include "storage/base/mutex.h"
#include "storage/remote/message_bytes.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

class RequestServer;
struct MessageHeader;

/// A Transport over anything that carries messages in order: it matches answers to requests,
/// verifies messages, and monitors peers for silence. Threads, sockets and MPI belong to its user,
/// the carrier.
///
/// Invariants, under mutex_:
///   (1) failed_ is set once, before any rank is notified; from then on no call succeeds;
///   (2) a peer that has ended sends nothing more, and counts as neither silent nor lost;
///   (3) the n-th accepted message of a peer has the sequence number n: no message is lost,
///       duplicated or reordered.
class MessageTransport final : public Transport {
 public:
  /// Carries a message to a peer. Returns without waiting for the transfer, and without calling the
  /// MessageTransport of any rank. Messages to one peer arrive in the order of the calls.
  using Send = std::function<void(std::uint32_t peer, MessageBytes message)>;

  /// Notified when a call begins to wait for an unsolicited message of a peer. Like Send, it
  /// returns at once.
  using Wake = std::function<void()>;

  /// `hosts` are the hosts of the ranks, by rank. Peers count as silent after `peer_timeout`.
  /// `wake` may be empty.
  MessageTransport(std::uint32_t rank, std::vector<std::string> hosts,
                   std::chrono::nanoseconds peer_timeout, Send send, Wake wake = {});

  /// The carrier must not call this object any more. Waits for requests that are being answered.
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

  /// Processes a message of a peer. Threads: one at a time for each peer.
  void Receive(std::uint32_t peer, MessageBytes message);

  /// Notes that a peer is alive: one of its messages is in transit, and may take long.
  void HearFrom(std::uint32_t peer);

  /// Returns whether a call of this rank waits, or will wait, for a message. If not, a carrier may
  /// poll for messages less often.
  bool Awaits() const;

  /// Returns the names of at most eight peers, those heard least recently first.
  std::string LeastHeard() const;

  /// Notes that nothing more comes from a peer. `how` follows "rank 2 (host) is lost: ".
  void LosePeer(std::uint32_t peer, const std::string& how);

  /// Ends all calls with `why`, and notifies the other ranks.
  void FailJob(const Status& why);

  /// Ends all calls of this rank with an error, and notifies no rank: as if its process had died.
  void Die(const Status& why);

  /// Sends heartbeats, and checks for silent peers. Must be called every tick(), by one thread.
  void Tick();
  std::chrono::nanoseconds tick() const { return tick_; }

  /// Notifies all others that this rank is done. Nothing can be sent afterwards.
  void End();

  /// Waits until all others have ended too, or the job has failed; returns whether all have ended.
  bool AwaitEnds();

  /// Returns why the job has failed, or OK.
  Status failure() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    std::uint64_t received = 0;          // messages
    std::deque<MessageBytes> exchanged;  // received, and not yet consumed by Exchange
    Clock::time_point heard;
    bool ended = false;
    bool lost = false;
    bool knows = false;  // it has confirmed that it knows of the job's failure
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
