#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rhizome {
inline namespace internal {

/// Targets [first, first + count) of a block; at most kDenseRows of them are multiplied at once.
struct TargetRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// The rows of a window as they were read, [n, raw], and as they are reduced, [n, width]: the same
/// unless the layer prepares rows.
struct WindowRows {
  const float* raw = nullptr;
  const float* reduced = nullptr;
  std::size_t reduced_stride = 0;  ///< floats from a reduced row to the next
  std::span<const float> scale;    ///< see StagedRows::scale
};

/// The lists of some targets in the form that kernels expect. Neighbours are slots of a window.
struct TileLists {
  const std::uint32_t* begins = nullptr;  ///< [targets]
  const std::uint32_t* ends = nullptr;    ///< [targets]
  const std::uint32_t* slots = nullptr;
  std::uint32_t slots_end = 0;     ///< see SumArgs::index_end
  const float* weights = nullptr;  ///< edge weights, parallel to slots, or null

  /// Sets the lists in a kernel's arguments.
  template <typename Args>
  void WalkedBy(Args& args) const {
    args.begins = begins;
    args.ends = ends;
    args.index = slots;
    args.index_end = slots_end;
  }
};

}  // namespace internal
}  // namespace rhizome
