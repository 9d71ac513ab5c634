#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/ranks/row_homes.h"
#include "rhizome/status.h"
#include "rhizome/transport.h"

namespace rhizome {
inline namespace internal {

/// Sums over the minibatches of a step.
struct StepSum {
  /// MinibatchGradient::numbers; empty, or of the same length in all sums.
  std::vector<float> numbers;
  double loss_sum = 0;
  double weight = 0;
  std::uint64_t seeds = 0;
  std::uint64_t minibatches = 0;
  std::uint64_t stops = 0;  ///< ranks that were asked to stop

  /// Adds another sum. If only one of them has numbers, the result has these.
  StepSum& operator+=(const StepSum& other);
};

/// Adds up the values of all homes in a step, over all ranks. A home is a fixed part of the graph's
/// rows (RowHomes). The sum follows a binary tree over the homes that does not depend on the ranks:
/// a node covers 2^k homes, starting at a multiple of 2^k. Therefore a sum has the same bits for
/// any number of ranks. A rank adds the values of its homes, up to the largest nodes that it has
/// alone. A node of several ranks is added by the rank of its first home. The total is sent back
/// down the same tree.
/// Threads: one at a time. Ownership: `transport` must outlive it.
class HomeTree {
 public:
  /// `transport`: null for a single rank. There must be at least as many homes as ranks.
  HomeTree(Transport* transport, std::uint32_t homes);

  /// Returns the homes of this rank.
  HomeRange own() const { return HomesOfRank(rank_, homes_, ranks_); }

  /// Adds the value of this rank's next home.
  void Add(StepSum of_home);

  /// Returns the sum over all homes, and begins the next step. Call it after Add was called for
  /// every home of this rank. `numbers`: the length of StepSum::numbers. Errors: errors of
  /// Transport::Exchange.
  Result<StepSum> Finish(std::size_t numbers);

 private:
  /// A node of the tree: homes [index * 2^level, (index + 1) * 2^level), as far as they exist.
  struct Node {
    std::uint32_t level = 0;
    std::uint32_t index = 0;
  };
  struct Value {
    Node node;
    StepSum sum;
  };

  std::uint32_t RankOf(std::uint32_t home) const { return RankOfHome(home, homes_, ranks_); }
  std::uint32_t FirstOf(const Node& node) const { return node.index << node.level; }
  std::uint32_t EndOf(const Node& node) const;
  bool IsOfOneRank(const Node& node) const;
  bool TakesPart(const Node& node) const;
  std::vector<Value>::iterator At(const Node& node);
  void Fold();
  void Collapse(const Node& node);
  Status Combine(const Node& node, std::size_t numbers);
  Status HandOut(const Node& node, std::size_t numbers, StepSum& sum);
  Status Send(std::uint32_t peer, const StepSum& sum, std::size_t numbers);
  Result<StepSum> Receive(std::uint32_t peer, std::size_t numbers);

  Transport* const transport_;
  const std::uint32_t homes_;
  const std::uint32_t rank_;
  const std::uint32_t ranks_;
  std::uint32_t added_ = 0;    // number of homes added in this step
  std::vector<Value> values_;  // values of nodes, from left to right
  std::vector<std::byte> message_;
};

}  // namespace internal
}  // namespace rhizome
