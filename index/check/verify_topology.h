#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/index/adjacency.h"
#include "rhizome/storage/manifest.h"

namespace rhizome::inline internal {

/// Holds what the partitions of a generation say of each other against what they hold, without all
/// of them in memory at once: each is added, and may go. Memory: 8 bytes a vertex for each
/// direction that is kept, and the partition sets. Two multisets (the edges of two directions; what
/// is claimed and what is) are compared by the sum of a mix of each element (the finaliser of
/// splitmix64), which differs but for a chance of 2^-64. Threads: Add from many at once; the rest
/// after the last of them.
class TopologyVerifier {
 public:
  explicit TopologyVerifier(const GenerationInfo& info);

  /// A partition that parsed; each at most once.
  void Add(std::uint32_t partition, const Adjacency& adjacency);

  /// Edges of a partition that was added.
  std::optional<std::uint64_t> edges_of(std::uint32_t partition) const { return edges_[partition]; }

  /// Are the in-lists of that partition the edges of its out-lists; symmetric, each edge both ways?
  bool SidesAgree(std::uint32_t partition) const { return sides_agree_[partition] != 0; }

  /// After all partitions: is all that they say of boundary vertices so?
  bool ClaimsHold() const;

  /// What is wrong with the first claim of a partition that is not so; nothing if all are.
  std::string WrongClaim(const Adjacency& adjacency) const;

 private:
  /// What a partition says of a vertex, or what all of them hold of it.
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
  const bool keeps_in_;  // and apart from the out-lists
  const std::size_t set_bytes_;

  // By partition, each written by whoever adds it.
  std::vector<std::optional<std::uint64_t>> edges_;
  std::vector<std::uint8_t> sides_agree_;

  // By row, added to atomically.
  std::vector<std::uint64_t> out_degree_;
  std::vector<std::uint64_t> in_degree_;
  std::vector<std::uint8_t> sets_;  // set_bytes_ each
  std::atomic<std::uint64_t> claims_{0};
};

}  // namespace rhizome::inline internal
