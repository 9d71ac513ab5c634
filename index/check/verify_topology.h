#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "index/topology/adjacency.h"
#include "rhizome/manifest.h"

namespace rhizome {
inline namespace internal {

/// Checks the claims of a generation's partitions about each other against their contents, without
/// holding all partitions in memory: each is added and may then be freed. Two multisets (the edges
/// of two directions; claims and facts) are compared by the sum of a mix of each element (the
/// finaliser of splitmix64); unequal multisets pass with probability 2^-64.
/// Memory: 8 bytes a vertex for each stored direction, and the partition sets.
/// Threads: Add may be called from many at once; the rest after the last Add.
class TopologyVerifier {
 public:
  explicit TopologyVerifier(const GenerationInfo& info);

  /// Adds a parsed partition; each at most once.
  void Add(std::uint32_t partition, const Adjacency& adjacency);

  /// Returns the number of edges of an added partition.
  std::optional<std::uint64_t> edges_of(std::uint32_t partition) const { return edges_[partition]; }

  /// Returns whether the in-lists of that partition have the edges of its out-lists; if symmetric,
  /// whether each edge exists in both directions.
  bool SidesAgree(std::uint32_t partition) const { return sides_agree_[partition] != 0; }

  /// Returns whether all claims about boundary vertices hold. Call it after all partitions are
  /// added.
  bool ClaimsHold() const;

  /// Returns the first wrong claim of a partition; empty if all claims hold.
  std::string WrongClaim(const Adjacency& adjacency) const;

 private:
  /// The claims of one partition about a vertex, or the facts over all partitions.
  struct Facts {
    std::span<const std::uint8_t> set;
    std::uint64_t out_degree = 0;
    std::uint64_t in_degree = 0;
  };
  static std::uint64_t MixFacts(std::uint64_t row, const Facts& facts);
  Facts Claimed(const Adjacency& adjacency, LocalId local,
                std::span<const std::uint8_t> here) const;
  Facts Real(std::size_t row) const;
  bool CompareSides(const Adjacency& adjacency) const;
  std::uint64_t AddRange(const Adjacency& adjacency, std::span<const std::uint8_t> here,
                         std::uint64_t begin, std::uint64_t end);

  // Constant after construction.
  const GenerationInfo& info_;
  const bool keeps_out_;
  const bool keeps_in_;  // in-lists stored separately from the out-lists
  const std::size_t set_bytes_;

  // By partition, each written by the thread that adds it.
  std::vector<std::optional<std::uint64_t>> edges_;
  std::vector<std::uint8_t> sides_agree_;

  // By row, updated atomically.
  std::vector<std::uint64_t> out_degree_;
  std::vector<std::uint64_t> in_degree_;
  std::vector<std::uint8_t> sets_;  // set_bytes_ each
  std::atomic<std::uint64_t> claims_{0};
};

}  // namespace internal
}  // namespace rhizome
