#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rhizome::simulator {

/// When a thread did something: the block barriers and warp synchronisations that it had passed.
struct Stamp {
  static constexpr std::uint32_t kDeletedVertex = 0xFFFFFFFFU;
  std::uint32_t thread = kDeletedVertex;  ///< index in the grid
  std::uint32_t phase = 0;
  std::uint32_t clock = 0;
  bool atomic = false;
};

/// State of one element of a region since the launch began: the last write and two unordered reads.
/// This suffices to detect a race with any later write (as in FastTrack, Flanagan and Freund, PLDI
/// 2009, except for reads beyond the second).
struct Cell {
  std::uint32_t launch = 0;
  bool initialized = false;
  Stamp write;
  Stamp read[2];
};

/// Memory of the device or of a block, with a cell for each element. Ownership: owns both.
struct Region {
  Region(std::string called, std::size_t size, std::size_t element_bytes, bool filled)
      : name(std::move(called)),
        bytes(size),
        cell_bytes(element_bytes),
        cells(size / element_bytes) {
    // Like memory from cudaMalloc: aligned, with arbitrary contents.
    storage = std::make_unique<unsigned char[]>(size + 256);
    void* at = storage.get();
    std::size_t space = size + 256;
    data = static_cast<unsigned char*>(std::align(256, size, at, space));
    std::memset(data, 0xA5, size);
    for (Cell& cell : cells) cell.initialized = filled;
  }

  std::string name;
  std::size_t bytes;
  std::size_t cell_bytes;
  std::unique_ptr<unsigned char[]> storage;
  unsigned char* data = nullptr;
  std::vector<Cell> cells;
};

}  // namespace rhizome::simulator
