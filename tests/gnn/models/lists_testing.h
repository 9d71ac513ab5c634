#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "cache/kernels/aggregate.h"

namespace rhizome::testing {

/// Returns random lists with repeated neighbours, empty lists and self-loops.
inline Csr RandomLists(std::size_t targets, std::size_t sources, std::mt19937_64& random) {
  Csr csr;
  for (std::size_t t = 0; t < targets; ++t) {
    const std::size_t degree = random() % 4 == 0 ? 0 : random() % 9;
    for (std::size_t i = 0; i < degree; ++i) {
      csr.neighbors.push_back(static_cast<std::uint32_t>(random() % sources));
    }
    csr.offsets.push_back(static_cast<std::uint32_t>(csr.neighbors.size()));
  }
  return csr;
}

/// The target and the source of every edge, in the form that index_add and scatter accept.
struct EdgeTensors {
  torch::Tensor to;
  torch::Tensor from;
};
inline EdgeTensors EdgesOf(const Csr& csr) {
  std::vector<std::int64_t> to, from;
  for (std::size_t t = 0; t + 1 < csr.offsets.size(); ++t) {
    for (std::uint32_t e = csr.offsets[t]; e < csr.offsets[t + 1]; ++e) {
      to.push_back(static_cast<std::int64_t>(t));
      from.push_back(csr.neighbors[e]);
    }
  }
  return {torch::tensor(to, torch::kInt64), torch::tensor(from, torch::kInt64)};
}

inline bool SameBits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() &&
         std::memcmp(a.data_ptr(), b.data_ptr(), static_cast<std::size_t>(a.nbytes())) == 0;
}

}  // namespace rhizome::testing
