#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/home_epochs.h"
#include "rhizome/cache/pass_lists.h"
#include "rhizome/cache/prefetch.h"
#include "rhizome/cache/remote_keeper.h"
#include "rhizome/cache/row_homes.h"
#include "rhizome/cache/row_ranks.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The facts that the keeper of one rank is made from.
struct KeeperFacts {
  std::uint64_t key_count = 0;    ///< rows of the graph
  std::uint64_t row_bytes = 1;    ///< of a frame
  std::uint64_t minibatches = 1;  ///< of a superbatch, for Prefetch::kScored

  /// Rows of other ranks, those first that stay: Prefetch::kStatic, kVip. For kScored: the halo, by
  /// descending degree.
  std::shared_ptr<const std::vector<Row>> ranking = nullptr;
};

/// Makes keepers as PrefetchOptions says; for Prefetch::kBelady there is none.
RemoteKeeperMaker KeeperOf(const PrefetchOptions& options, KeeperFacts facts);

/// Finds what the policies of the ranks of a job know beforehand.
/// Threads: one at a time. Ownership: the graph must outlive it. Memory: those policies that
/// NeedsLists says have all lists, 4 bytes an edge and 40 a row, until it is destroyed.
class PrefetchOutlook {
 public:
  /// `sampler`: of the training. Errors: those of CheckPrefetch; kInvalidArgument, vertex-inclusion
  /// probabilities where neighbours are drawn by type; those of DrawPassLists.
  static Result<PrefetchOutlook> Create(const PrefetchOptions& options, const GraphSnapshot& graph,
                                        const SamplerOptions& sampler, const JobControl& control);

  /// Returns the keepers of a rank. `own`: its homes; `superbatch`: steps, as HomeSeeds has them;
  /// `row_bytes`: of a frame. Errors: those of GraphSnapshot::RowOf.
  Result<RemoteKeeperMaker> KeeperOfRank(const RowRanks& ranks, HomeRange own,
                                         const HomeEpochs& epochs, std::uint64_t superbatch,
                                         std::uint64_t row_bytes) const;

 private:
  PrefetchOutlook(const PrefetchOptions& options, const GraphSnapshot& graph)
      : options_(options), graph_(&graph) {}
  Result<std::vector<Row>> ByChance(const RowRanks& ranks, HomeRange own,
                                    const HomeEpochs& epochs) const;

  PrefetchOptions options_;
  const GraphSnapshot* graph_;
  std::vector<std::int64_t> fanouts_;
  PassLists lists_;
};

/// The steps of a superbatch, as HomeSeeds takes them: `superbatch`, or 0, an epoch.
inline std::uint64_t SuperbatchSteps(const PrefetchOptions& options, std::uint64_t superbatch) {
  return options.policy == Prefetch::kEpoch ? 0 : superbatch;
}

}  // namespace internal
}  // namespace rhizome
