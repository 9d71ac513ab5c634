#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/layout/pass_lists.h"
#include "cache/pool/remote_cache_policy.h"
#include "cache/pool/row_ranks.h"
#include "cache/ranks/home_epochs.h"
#include "cache/ranks/row_homes.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Inputs from which the remote cache policy of one rank is created.
struct RemotePolicyInputs {
  std::uint64_t key_count = 0;    ///< number of rows in the graph
  std::uint64_t row_bytes = 1;    ///< size of a frame
  std::uint64_t minibatches = 1;  ///< per superbatch, for Prefetch::kScored

  /// Rows of other ranks in the order of preference for caching: Prefetch::kStatic, kVip. For
  /// kScored: the halo, by descending degree.
  std::shared_ptr<const std::vector<Row>> ranking = nullptr;
};

/// Returns a factory of remote cache policies for the given options; empty for Prefetch::kBelady.
RemoteCachePolicyFactory RemotePolicyFactoryFor(const PrefetchOptions& options,
                                                RemotePolicyInputs facts);

/// Computes what the remote cache policies of a job's ranks need to know in advance.
/// Threads: one at a time. Ownership: the graph must outlive it. Memory: for policies with
/// NeedsLists, all neighbour lists (4 bytes per edge and 40 per row) until it is destroyed.
class PrefetchLookahead {
 public:
  /// Prepares for `options`. `sampler` are the sampling options of training. Errors: as
  /// CheckPrefetch; kInvalidArgument, vertex-inclusion probabilities with neighbours drawn by type;
  /// as DrawPassLists.
  static Result<PrefetchLookahead> Create(const PrefetchOptions& options,
                                          const GraphSnapshot& graph, const SamplerOptions& sampler,
                                          const JobControl& control);

  /// Returns the factory of a rank's remote cache policy. `own`: its homes; `superbatch`: in steps,
  /// as in HomeSeeds; `row_bytes`: size of a frame. Errors: as GraphSnapshot::RowOf.
  Result<RemoteCachePolicyFactory> RemotePolicyFactoryOfRank(const RowRanks& ranks, HomeRange own,
                                                             const HomeEpochs& epochs,
                                                             std::uint64_t superbatch,
                                                             std::uint64_t row_bytes) const;

 private:
  PrefetchLookahead(const PrefetchOptions& options, const GraphSnapshot& graph)
      : options_(options), graph_(&graph) {}
  Result<std::vector<Row>> ByChance(const RowRanks& ranks, HomeRange own,
                                    const HomeEpochs& epochs) const;

  PrefetchOptions options_;
  const GraphSnapshot* graph_;
  std::vector<std::int64_t> fanouts_;
  PassLists lists_;
};

/// Returns the steps of a superbatch in the format of HomeSeeds: `superbatch`, or 0 for an epoch.
inline std::uint64_t SuperbatchSteps(const PrefetchOptions& options, std::uint64_t superbatch) {
  return options.policy == Prefetch::kEpoch ? 0 : superbatch;
}

}  // namespace internal
}  // namespace rhizome
