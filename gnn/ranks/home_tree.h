#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rhizome/cache/row_homes.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace rhizome::inline internal {

/// The sums over the minibatches of a step.
struct StepSum {
  std::vector<float> numbers;  ///< empty, or as many as in all others
  double loss_sum = 0;
  double weight = 0;
  std::uint64_t seeds = 0;
  std::uint64_t minibatches = 0;
  std::uint64_t stops = 0;  ///< ranks that were asked to stop

  /// Adds another. Where one has no numbers, those of the other stay.
  StepSum& operator+=(const StepSum& other);
};

/// Adds up what homes have in a step, over all ranks, in a binary tree over the homes that does not
/// depend on the ranks: a node covers 2^k homes from a multiple of 2^k on. A sum has therefore the
/// same bits for any number of ranks. A rank adds what its homes have, up to the largest nodes that
/// it has alone; a node of several ranks is added by the rank of its first home; the sum goes the
/// same way back.
/// Threads: one at a time. Ownership: `transport` must outlive it.
class HomeTree {
 public:
  /// `transport`: null, for one rank. There are at least as many homes as ranks.
  HomeTree(Transport* transport, std::uint32_t homes);

  /// The homes of this rank.
  HomeRange own() const { return HomesOfRank(rank_, homes_, ranks_); }

  /// Adds what the next of this rank's homes has.
  void Add(StepSum of_home);

  /// Returns the sum over all homes, once this rank's have been added; the next step begins.
  /// `numbers`: the length of the sum's. Errors: those of Transport::Exchange.
  Result<StepSum> Finish(std::size_t numbers);

 private:
  /// A node of the tree: 2^level homes from index * 2^level on, as far as there are homes.
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
  std::uint32_t added_ = 0;    // homes of this rank
  std::vector<Value> values_;  // of nodes from left to right
  std::vector<std::byte> message_;
};

}  // namespace rhizome::inline internal
