#pragma once

#include <cstdint>
#include <vector>

#include "tools/device/on_device.h"

namespace rhizome {

/// Random neighbour lists of fewer than `longest` sources, and their transpose.
struct RandomLists {
  RandomLists(Random& random, std::size_t max_sources, std::size_t longest)
      : sources(1 + random() % max_sources) {
    for (std::size_t t = 0; t < 1 + sources / 2; ++t) {
      const std::size_t degree = random() % 20 == 0 ? random() % longest : random() % 12;
      for (std::size_t i = 0; i < degree; ++i)
        index.push_back(static_cast<std::uint32_t>(random() % sources));
      offsets.push_back(static_cast<std::uint32_t>(index.size()));
    }
    transposed_offsets.resize(sources + 1);
    for (const std::uint32_t j : index) ++transposed_offsets[j + 1];
    for (std::size_t j = 0; j < sources; ++j) transposed_offsets[j + 1] += transposed_offsets[j];
    std::vector<std::uint32_t> next(transposed_offsets.begin(), transposed_offsets.end() - 1);
    target.resize(index.size());
    edge.resize(index.size());
    for (std::uint32_t t = 0; t < targets(); ++t) {
      for (std::uint32_t e = offsets[t]; e < offsets[t + 1]; ++e) {
        const std::uint32_t k = next[index[e]]++;
        target[k] = t;
        edge[k] = e;
      }
    }
  }
  std::size_t targets() const { return offsets.size() - 1; }
  std::size_t sources;
  std::vector<std::uint32_t> offsets = {0};
  std::vector<std::uint32_t> index;
  std::vector<std::uint32_t> transposed_offsets, target, edge;
};

inline OnDevice<float> Zeros(std::size_t count) {
  return OnDevice<float>(std::vector<float>(count));
}

}  // namespace rhizome
