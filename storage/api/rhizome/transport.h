#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

/// A service that a rank offers to the others.
enum class Service : std::uint8_t {
  kRows = 0,  ///< returns rows of an array
  kEcho = 1,  ///< returns the request's own bytes
};
inline constexpr std::size_t kServices = 2;

/// Size of the header of a message, and max size of its payload.
inline constexpr std::uint64_t kMessageHeaderBytes = 64;
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 30;

/// Returns "rows" or "echo".
std::string_view ServiceName(Service service);

/// Traffic of a rank since its transport was opened. Bytes include the headers of messages.
/// Messages of a rank to itself, and messages by which ranks monitor each other, are not counted.
struct MessageStats {
  std::uint64_t messages_out = 0, messages_in = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;
  double wait_seconds = 0;  ///< time during which the caller waited

  MessageStats& operator+=(const MessageStats& more);
};

struct TransportStats {
  std::array<MessageStats, kServices> asked;   ///< by service: own requests and their replies
  std::array<MessageStats, kServices> served;  ///< by service: requests of others, and replies
  MessageStats exchanged;
  double serve_seconds = 0;  ///< processor time of handlers

  /// Returns the sum of all services and exchanges.
  MessageStats Total() const;
};

/// Ranks that exchange bytes: the processes of a job on one or several machines, or threads of one
/// process (LocalRanks, local_transport.h). It knows nothing of graphs. Messages between two ranks
/// that belong to the same call arrive complete, in order and verified (CRC-32C), or not at all.
///
/// Any rank may be lost at any time. When a rank is lost, is silent for longer than the configured
/// timeout, or announces its departure by Leave, every waiting call of the other ranks ends with an
/// error that names the rank and its host, and so does every later call. A rank that computes is
/// not silent: its transport sends heartbeats.
///
/// Errors of all calls: kIoError, a rank is lost or silent; kCorruption, a message with a wrong
/// checksum or an unexpected size; the code of a rank that has left; kInvalidArgument, no such
/// rank, or more than kMaxMessageBytes in a message.
/// Threads: any, but Exchange with one peer by one thread at a time.
/// Ownership: must outlive all its users. All ranks destroy it once all are done; a rank that is
/// not done calls Leave before.
class Transport {
 public:
  /// Identifies a pending request.
  using Ticket = std::uint64_t;

  /// Answers a request of `peer` by appending to `reply`, which is initially empty. An error is
  /// sent to the peer, whose Wait returns it with the name of this rank.
  using Handler = std::function<Status(std::uint32_t peer, std::span<const std::byte> request,
                                       std::vector<std::byte>& reply)>;

  virtual ~Transport() = default;
  virtual std::uint32_t rank() const = 0;  ///< in [0, ranks())
  virtual std::uint32_t ranks() const = 0;

  /// Returns the name of the machine of a rank, for messages.
  virtual std::string HostOf(std::uint32_t rank) const = 0;

  /// Sends a request to a service of a peer, which may be this rank. The reply must have the size
  /// of `reply`, and is written there; that memory must remain valid until Wait returns, and
  /// `request` until this returns.
  virtual Result<Ticket> Ask(std::uint32_t peer, Service service,
                             std::span<const std::byte> request, std::span<std::byte> reply) = 0;

  /// Waits for the reply to a request. Each ticket must be waited for exactly once.
  virtual Status Wait(Ticket ticket) = 0;

  /// Answers requests with `handler`, one at a time, on a thread of the transport. Requests that
  /// arrived earlier were waiting for it. An empty handler stops this, and waits for a request that
  /// is being answered; later requests wait again. Must not be called by the handler itself.
  virtual Status Serve(Service service, Handler handler) = 0;

  /// Sends `out` to a peer, and receives `in` from it. Either may be empty; then nothing is sent or
  /// received in that direction. The peer must make the matching call.
  virtual Status Exchange(std::uint32_t peer, std::span<const std::byte> out,
                          std::span<std::byte> in) = 0;

  /// Notifies all others that this rank leaves, and why; their calls end with that code and text.
  virtual void Leave(const Status& why) = 0;

  virtual TransportStats stats() const = 0;
};

}  // namespace rhizome
