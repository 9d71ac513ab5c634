#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace RHIZOME_API rhizome {

/// A thing that goes wrong between ranks that are threads of one process.
struct LocalFault {
  enum class Kind : std::uint8_t {
    kDie,      ///< the rank ends as a killed process does: the others notice at once
    kSilence,  ///< nothing comes from the rank or gets there any more; the others notice in time
    kCut,      ///< the same of the link between the rank and `peer` alone
    kDrop,     ///< that message is lost
    kFlip,     ///< a bit of that message is flipped
  };

  Kind kind = Kind::kDie;
  std::uint32_t rank = 0;

  /// Number of the message of that rank, from 0, instead of which (kDie, kSilence, kCut: from which
  /// on) this happens. Messages of a rank to itself, and those by which ranks watch each other, are
  /// not counted and not chosen.
  std::uint64_t at_message = 0;
  std::uint32_t peer = 0;  ///< of kCut
};

/// Returns how many ranks of one process are of use on this machine: as many as it has processors,
/// and at least 64. Create refuses far larger numbers only.
std::uint32_t MaxLocalRanks();

struct LocalRanksOptions {
  double latency_seconds = 0;  ///< one way
  double bits_per_second = 0;  ///< of each pair of ranks, each way; 0: no limit
  double peer_timeout_seconds = 30;
  std::vector<std::string> hosts = {};  ///< names of machines, by rank; empty: "thread 0", …
  std::vector<LocalFault> faults = {};
  std::uint64_t seed = 1;  ///< which bit is flipped
};

/// Ranks that are threads of one process, with a network that delays, loses and garbles messages on
/// command. They are as real as others: the same bytes are sent, checked and counted, and only one
/// thread in the middle, which carries them, knows that they stay here.
/// Threads: any.
class LocalRanks {
 public:
  /// Errors: kInvalidArgument, no rank, or an option out of range; kOutOfMemory, no thread.
  static Result<std::unique_ptr<LocalRanks>> Create(std::uint32_t ranks,
                                                    const LocalRanksOptions& options = {});
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  std::uint32_t ranks() const;

  /// The transport of a rank, until this goes, or End.
  Transport& operator[](std::uint32_t rank);

  /// Destroys the transport of a rank that is done, before the others are. Requests to it, and
  /// exchanges with it, fail from then on.
  void End(std::uint32_t rank);

  /// Lets something go wrong now (kDie, kSilence, kCut), or with the next message (kDrop, kFlip).
  void Fault(const LocalFault& fault);

  /// Returns how many messages a rank has sent to others, as LocalFault counts them.
  std::uint64_t MessagesOf(std::uint32_t rank) const;

  /// Calls `work` for each rank, each on a thread of its own; a rank whose work ends with an error
  /// leaves with it. Returns the error of the rank that ended with one first.
  Status Run(const std::function<Status(Transport& transport)>& work);

 private:
  class Impl;
  explicit LocalRanks(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
