#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "rhizome/export.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Remote cache policy: decides which rows of other ranks are cached in a part of a rank's pool,
/// superbatch by superbatch. Its decisions depend only on the superbatches.
/// Threads: one at a time.
class RemoteCachePolicy {
 public:
  /// Max bytes of memory per row of the graph.
  static constexpr std::uint64_t kBytesPerKey = 40;

  virtual ~RemoteCachePolicy() = default;

  /// Number of pool frames reserved for it.
  virtual std::uint32_t frame_count() const = 0;

  /// Makes the policy of the next superbatch, given the rows that the superbatch requests from
  /// other ranks, with one (possibly empty) step per minibatch. The policy numbers its frames from
  /// 0, starts with what its predecessor left in them, and lists what it reads
  /// (Policy::PrefillReads). Errors: as RankByUse.
  virtual Result<std::unique_ptr<Policy>> Make(const Trace& remote) = 0;
};

/// Creates a remote cache policy for a pool of `pool_frames` frames.
using RemoteCachePolicyFactory =
    std::function<std::unique_ptr<RemoteCachePolicy>(std::uint32_t pool_frames)>;

}  // namespace internal
}  // namespace rhizome
