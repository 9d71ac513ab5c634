#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/loader.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Corrects the degrees of minibatches that leave out the edges between the ends of their pairs. It
/// reads the lists of these ends; of two ends only the shorter list, if it has the edges of both.
/// Memory: 4 bytes a vertex of the graph, and 12 for each entry of about 2^18 at a time, or of the
/// longest list.
/// Threads: one at a time.
class LeftOutDegrees {
 public:
  /// `sampling` are the options of the minibatches, and `neighbors` is the source of their lists
  /// (null: in memory). Errors: as Sampler::Create.
  static Result<std::unique_ptr<LeftOutDegrees>> Create(
      const GraphSnapshot& graph, const SamplerOptions& sampling,
      std::shared_ptr<const NeighborSource> neighbors);

  /// Subtracts the edges between the ends of the minibatch's pairs from `degrees`, and replaces
  /// `weighted_degrees` of the ends by sums without these edges, if they are filled. Errors: any
  /// error of reading lists.
  Status Correct(Minibatch& minibatch) const;

 private:
  /// Local numbers: entries of the list of `first` that lead to `second`.
  using Query = std::pair<std::uint32_t, std::uint32_t>;

  LeftOutDegrees(const GraphSnapshot& graph, std::unique_ptr<Sampler> lists, bool symmetric,
                 Direction direction)
      : graph_(&graph), lists_(std::move(lists)), symmetric_(symmetric), direction_(direction) {}
  Result<std::uint64_t> DegreeOf(const Minibatch& minibatch, std::uint32_t local) const;
  Result<std::vector<Query>> QueriesOf(const Minibatch& minibatch, bool halved) const;
  Status CorrectGroup(std::span<const Query> queries, bool halved, Minibatch& minibatch) const;

  const GraphSnapshot* graph_;
  std::unique_ptr<Sampler> lists_;  // whole lists
  bool symmetric_;                  // b is in the list of a as often as a is in the list of b
  Direction direction_;
};

}  // namespace internal
}  // namespace rhizome
