#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/result.h"
#include "rhizome/transport.h"

namespace RHIZOME_API rhizome {

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
