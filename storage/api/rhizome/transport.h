#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"

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
/// process (LocalRanks, transport.h). It knows nothing of graphs. Messages between two ranks
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

/// A fault between ranks that are threads of one process.
struct LocalFault {
  enum class Kind : std::uint8_t {
    kDie,      ///< the rank ends like a killed process: the others notice at once
    kSilence,  ///< no message leaves or reaches the rank any more; the others notice by timeout
    kCut,      ///< as kSilence, for the link between the rank and `peer` only
    kDrop,     ///< the message is lost
    kFlip,     ///< a bit of the message is flipped
  };

  Kind kind = Kind::kDie;
  std::uint32_t rank = 0;

  /// Number (from 0) of the rank's message that the fault affects; for kDie, kSilence and kCut, the
  /// fault occurs instead of this message and persists. Messages of a rank to itself, and those by
  /// which ranks monitor each other, are neither counted nor affected.
  std::uint64_t at_message = 0;
  std::uint32_t peer = 0;  ///< for kCut
};

/// Returns how many ranks in one process are useful on this machine: the number of its processors,
/// but at least 64. Create refuses only far larger numbers.
std::uint32_t MaxLocalRanks();

struct LocalRanksOptions {
  double latency_seconds = 0;  ///< one way
  double bits_per_second = 0;  ///< of each pair of ranks, in each direction; 0: no limit
  double peer_timeout_seconds = 30;
  std::vector<std::string> hosts = {};  ///< names of the machines, by rank; empty: "thread 0", …
  std::vector<LocalFault> faults = {};
  std::uint64_t seed = 1;  ///< determines which bit is flipped
};

/// Ranks that are threads of one process, with a network that delays, loses and corrupts messages
/// on request. They behave like other ranks: the same bytes are sent, checked and counted. Only the
/// thread that carries messages knows that they are local.
/// Threads: any.
class LocalRanks {
 public:
  /// Errors: kInvalidArgument, no ranks, or an option out of range; kOutOfMemory, no thread.
  static Result<std::unique_ptr<LocalRanks>> Create(std::uint32_t ranks,
                                                    const LocalRanksOptions& options = {});
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  std::uint32_t ranks() const;

  /// The transport of a rank, valid until End is called or this object is destroyed.
  Transport& operator[](std::uint32_t rank);

  /// Destroys the transport of a rank that is done, before the other transports. Requests to it,
  /// and exchanges with it, fail from then on.
  void End(std::uint32_t rank);

  /// Injects a fault now (kDie, kSilence, kCut), or into the next message (kDrop, kFlip).
  void Fault(const LocalFault& fault);

  /// Returns the number of messages that a rank has sent to others, as counted for LocalFault.
  std::uint64_t MessagesOf(std::uint32_t rank) const;

  /// Calls `work` for each rank, each on its own thread; a rank whose work fails leaves with that
  /// error. Returns the error of the rank that failed first.
  Status Run(const std::function<Status(Transport& transport)>& work);

 private:
  class Impl;
  explicit LocalRanks(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
