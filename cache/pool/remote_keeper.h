#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "rhizome/cache/policy.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Decides which rows of other ranks stay in a part of a rank's pool, superbatch after superbatch.
/// What it decides depends on the superbatches alone.
/// Threads: one at a time.
class RemoteKeeper {
 public:
  /// Bytes that a keeper takes for each row of the graph, at most.
  static constexpr std::uint64_t kBytesPerKey = 40;

  virtual ~RemoteKeeper() = default;

  /// The frames of the pool that are its own.
  virtual std::uint32_t frame_count() const = 0;

  /// Makes the policy of the next superbatch, given what that asks of other ranks: a step for each
  /// minibatch, also where it asks nothing. The policy numbers its frames from 0 on, begins with
  /// what the one before left in them, and says what it reads (Policy::PrefillReads). Errors: those
  /// of RankByUse.
  virtual Result<std::unique_ptr<Policy>> Make(const Trace& remote) = 0;
};

/// Makes a keeper for a pool of so many frames.
using RemoteKeeperMaker = std::function<std::unique_ptr<RemoteKeeper>(std::uint32_t pool_frames)>;

}  // namespace internal
}  // namespace rhizome
