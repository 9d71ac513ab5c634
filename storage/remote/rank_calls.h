#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/transport.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

// Collective calls: all ranks of a job make them in the same order, each from one thread. They use
// Transport::Exchange, which therefore must not be used concurrently. Errors of all: see Exchange.

/// A fact that must be equal on all ranks of a job.
struct RankFact {
  std::string name;  ///< as used in an error after "has": "generation", "`epochs`"
  std::string value;
};

/// Compares facts across ranks: each rank passes its facts, and rank 0 compares them with its own,
/// in their order. All ranks return the same.
/// Errors: kInvalidArgument, naming the first rank and fact that differ, and both values: "rank 3
/// (hostb) has generation 17, rank 0 (hosta) has generation 16: …".
Status Agree(Transport& transport, std::span<const RankFact> facts);

/// Compares the store state on which the ranks work: the numbers in `point`, up to its last commit,
/// then `state`, since copies that have diverged have equal numbers. Errors: as for Agree.
Status AgreeOnState(Transport& transport, const StorePoint& point, const StateId& state);

/// Max number of bytes that a rank passes to one of the calls below: a corrupt length, or the
/// length in a mismatched call, is refused before memory is allocated for it.
inline constexpr std::uint64_t kMaxRankBytes = std::uint64_t{256} << 20;

/// Returns the bytes of rank 0, on every rank; the bytes of other ranks are ignored.
/// Errors: kInvalidArgument, more than kMaxRankBytes; kCorruption, rank 0 announces more.
Result<std::vector<std::byte>> Broadcast(Transport& transport, std::span<const std::byte> bytes);

/// Returns on rank 0 the bytes of all ranks, by rank; on other ranks nothing. Errors: as for
/// Broadcast.
Result<std::vector<std::vector<std::byte>>> GatherAtFirst(Transport& transport,
                                                          std::span<const std::byte> bytes);

/// Returns once all ranks have called it.
Status Barrier(Transport& transport);

}  // namespace rhizome
