#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "rhizome/graph_types.h"
#include "rhizome/loader.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Numbers vertices in order of first use, as the distinct seeds of a minibatch of links.
/// Ownership: appends to `seeds`, which must outlive it.
class SeedNumbers {
 public:
  explicit SeedNumbers(std::vector<VertexId>& seeds) : seeds_(seeds) {}

  std::uint32_t Of(VertexId vertex) {
    const auto [at, is_new] =
        numbers_.try_emplace(vertex, static_cast<std::uint32_t>(seeds_.size()));
    if (is_new) seeds_.push_back(vertex);
    return at->second;
  }

  std::vector<std::uint32_t> Of(std::span<const VertexId> vertices) {
    std::vector<std::uint32_t> numbers;
    numbers.reserve(vertices.size());
    for (const VertexId vertex : vertices) numbers.push_back(Of(vertex));
    return numbers;
  }

  MinibatchPair Of(const VertexPair& pair) {
    const std::uint32_t src = Of(pair.src);
    return {.src = src, .dst = Of(pair.dst), .type = pair.type};
  }

 private:
  std::vector<VertexId>& seeds_;
  std::unordered_map<VertexId, std::uint32_t> numbers_;
};

}  // namespace internal
}  // namespace rhizome
