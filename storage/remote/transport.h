#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// A thing that a rank does for others when they ask.
enum class Service : std::uint8_t {
  kRows = 0,  ///< gives rows of an array
  kEcho = 1,  ///< gives the request's own bytes back
};
inline constexpr std::size_t kServices = 2;

/// Bytes of a message before those that it carries, and how many it carries at most.
inline constexpr std::uint64_t kMessageHeaderBytes = 64;
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 30;

/// Returns "rows" or "echo".
std::string_view ServiceName(Service service);

/// Traffic of a rank since its transport was opened. Bytes are those of messages, with their
/// headers; messages of a rank to itself, and those by which ranks watch each other, do not count.
struct MessageStats {
  std::uint64_t messages_out = 0, messages_in = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;
  double wait_seconds = 0;  ///< in which the caller waited

  MessageStats& operator+=(const MessageStats& more);
};

struct TransportStats {
  std::array<MessageStats, kServices> asked;   ///< by service: requests of this rank, their replies
  std::array<MessageStats, kServices> served;  ///< by service: requests of others, replies to them
  MessageStats exchanged;
  double serve_seconds = 0;  ///< processor time of handlers

  /// Everything together.
  MessageStats Total() const;
};

/// Ranks that exchange bytes: the processes of a job on one machine or several, or threads of one
/// process (LocalTransport). It knows nothing of graphs. Messages between two ranks that are meant
/// for each other by the same call arrive whole, in order and checked (CRC-32C), or not at all.
///
/// Any rank may be lost at any time. Then, or when a rank is silent for longer than the time that
/// the transport was opened with, or says by Leave why it goes, every call of the others that waits
/// ends with an error that names the rank and its host; so does every later one. A rank that
/// computes is not silent: the transport speaks for it.
///
/// Errors of all calls: kIoError, a rank is lost or silent; kCorruption, a message whose checksum
/// is wrong, or that is not of the size that is wanted; the code of a rank that has left;
/// kInvalidArgument, no such rank, or more than kMaxMessageBytes in a message.
/// Threads: any, but Exchange with one peer by one thread at a time.
/// Ownership: outlives everything that uses it. It is destroyed by all ranks once all are done;
/// whoever is not done calls Leave before.
class Transport {
 public:
  /// Numbers a request that is under way.
  using Ticket = std::uint64_t;

  /// Answers a request of `peer`: appends to `reply`, which is empty. An error goes to the peer,
  /// whose Wait returns it with the name of this rank.
  using Handler = std::function<Status(std::uint32_t peer, std::span<const std::byte> request,
                                       std::vector<std::byte>& reply)>;

  virtual ~Transport() = default;
  virtual std::uint32_t rank() const = 0;  ///< in [0, ranks())
  virtual std::uint32_t ranks() const = 0;

  /// Returns the name of the machine that a rank is on, for messages.
  virtual std::string HostOf(std::uint32_t rank) const = 0;

  /// Sends a request to a service of a peer, which may be this rank. The reply is as long as
  /// `reply`, and is written there; that memory stays until Wait has returned, and `request` until
  /// this returns.
  virtual Result<Ticket> Ask(std::uint32_t peer, Service service,
                             std::span<const std::byte> request, std::span<std::byte> reply) = 0;

  /// Waits for the reply to a request. Each ticket is waited for once.
  virtual Status Wait(Ticket ticket) = 0;

  /// Answers requests with `handler`, one at a time, on a thread of the transport. Requests that
  /// came before wait for it. An empty handler ends that, and waits for a request that is being
  /// answered; later ones wait again. Not to be called by the handler itself.
  virtual Status Serve(Service service, Handler handler) = 0;

  /// Sends `out` to a peer, and receives `in` from it; either may be empty, and nothing is sent or
  /// waited for then. The peer makes the call that fits.
  virtual Status Exchange(std::uint32_t peer, std::span<const std::byte> out,
                          std::span<std::byte> in) = 0;

  /// Tells all others that this rank goes, and why; their calls end with that code and text.
  virtual void Leave(const Status& why) = 0;

  virtual TransportStats stats() const = 0;
};

}  // namespace rhizome
