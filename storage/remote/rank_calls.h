#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store_point.h"
#include "rhizome/storage/transport.h"

namespace RHIZOME_API rhizome {

// Calls that all ranks of a job make together, in the same order, each by one thread. They go
// through Transport::Exchange, and so exclude others meanwhile. Errors of all: those of Exchange.

/// Something that all ranks of a job must have alike.
struct RankFact {
  std::string name;  ///< as an error says it after "has": "generation", "--batch-size"
  std::string value;
};

/// Compares what the ranks have: each gives its facts, and rank 0 compares them with its own, in
/// their order. All ranks return the same.
/// Errors: kInvalidArgument, naming the first rank and fact that differ, and both values: "rank 3
/// (hostb) has generation 17, rank 0 (hosta) has generation 16: …".
Status Agree(Transport& transport, std::span<const RankFact> facts);

/// Compares which state of which store the ranks work on: the numbers of `point`, up to its last
/// commit, then `state`, since copies that have diverged have equal numbers. Errors: as those of
/// Agree.
Status AgreeOnState(Transport& transport, const StorePoint& point, const StateId& state);

/// The most bytes that a rank gives in one of the calls below: a length that is garbled, or of
/// ranks that do not make the same calls, is refused before memory is taken for it.
inline constexpr std::uint64_t kMaxRankBytes = std::uint64_t{256} << 20;

/// Returns what rank 0 gives, on every rank; what others give is ignored.
/// Errors: kInvalidArgument, more than kMaxRankBytes; kCorruption, rank 0 says so.
Result<std::vector<std::byte>> Broadcast(Transport& transport, std::span<const std::byte> bytes);

/// Returns what the ranks give, by rank, on rank 0; elsewhere nothing. Errors as those of
/// Broadcast.
Result<std::vector<std::vector<std::byte>>> GatherAtFirst(Transport& transport,
                                                          std::span<const std::byte> bytes);

/// Returns once all ranks have called it.
Status Barrier(Transport& transport);

}  // namespace rhizome
