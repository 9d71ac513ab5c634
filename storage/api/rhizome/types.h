#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// The permanent id of a vertex: dense, 0-based, never reused. Signed like libtorch's index type,
/// so that spans become tensors without a copy.
using VertexId = std::int64_t;

/// The position of a vertex in one generation's order. It changes with every compaction.
using Row = std::int64_t;

/// A vertex type or an edge type: an index into the schema's names.
using TypeId = std::uint16_t;

/// The number of a partition, a part of the edge set.
using PartitionId = std::uint16_t;

/// The index of a vertex within one partition: owned vertices first (in row order), then mirrors
/// (by row).
using LocalId = std::uint32_t;

/// Selects neighbour lists of a vertex: kOut, its outgoing edges; kIn, its incoming edges.
enum class Direction : std::uint8_t { kOut = 1, kIn = 2, kBoth = 3 };

/// Limits that readers check before they trust a size (storage/FORMAT.md, "Limits").
inline constexpr std::size_t kMaxPartitions = 1024;
inline constexpr std::size_t kMaxTypes = 4096;
inline constexpr std::size_t kMaxNameBytes = 128;
inline constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMaxZarrJsonBytes = std::uint64_t{1} << 20;

}  // namespace rhizome
