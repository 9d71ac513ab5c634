#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

// Describes the passes of an epoch over all vertices: which arrays each pass reads and writes.
// full_graph_plan.h plans from this data alone which chunks remain in memory between passes.

/// A tier of memory: its capacity and transfer rates. The fast tier has a capacity, the slow one
/// has rates. Nothing else is known about them, so that memory and a disk are planned in the same
/// way as a device and its host.
struct Tier {
  std::uint64_t capacity_bytes = 0;
  double read_bytes_per_second = 1e9;
  double write_bytes_per_second = 1e9;
};

/// The index of an array in PassSequence::arrays.
using ArrayId = std::uint32_t;

/// An array of rows, in chunks of consecutive rows.
struct SpillArray {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t chunk_rows = 1;
  bool stored = false;           ///< is in the slow tier from the start; no pass writes it
  std::uint64_t unit_bytes = 1;  ///< chunks are padded to a multiple of this

  std::uint64_t bytes() const { return BytesOfFirst(chunks()); }
  std::uint32_t chunks() const {
    return static_cast<std::uint32_t>((rows + chunk_rows - 1) / chunk_rows);
  }

  /// Returns the bytes of the first `count` chunks.
  std::uint64_t BytesOfFirst(std::uint64_t count) const {
    const std::uint64_t whole = rows / chunk_rows;
    const std::uint64_t all = std::min(count, whole) * InUnits(chunk_rows * row_bytes);
    return count > whole ? all + InUnits((rows - whole * chunk_rows) * row_bytes) : all;
  }
  std::uint64_t BytesOfChunk(std::uint64_t chunk) const {
    return BytesOfFirst(chunk + 1) - BytesOfFirst(chunk);
  }

  /// Returns the number of chunks in the first `part` of `parts` equal parts.
  std::uint32_t ChunksOfPart(std::uint32_t part, std::uint32_t parts) const {
    return static_cast<std::uint32_t>(std::uint64_t{chunks()} * part / parts);
  }

 private:
  std::uint64_t InUnits(std::uint64_t bytes) const {
    return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
  }
};

/// How a pass reads an array: in order, each chunk once for any number of blocks; or by a gather
/// over neighbour lists, where each block reads the chunks that it needs.
struct PassRead {
  static constexpr std::int32_t kInOrder = -1;
  ArrayId array = 0;
  std::int32_t gather = kInOrder;  ///< or the id of the lists in PassSequence::gather
};

/// A number of blocks that a pass may be divided into, and the resulting memory for its sums.
struct BlockChoice {
  std::uint32_t blocks = 1;
  std::uint64_t memory_bytes = 0;
  std::uint64_t beside_bytes = 0;  ///< read in addition to the arrays, independent of the memory
};

/// One way to compute a pass. With more blocks it needs less memory for sums, but gathers more.
struct PassMethod {
  std::vector<PassRead> reads = {};
  std::vector<BlockChoice> choices = {{}};
};

/// One pass. It computes rows in order, block by block. A block's gather is read when the block's
/// first row is reached. In-order reads load a chunk when its first row is reached, and a written
/// chunk is written after its last row.
struct SpillPass {
  std::string name;
  PassMethod way = {};
  std::vector<ArrayId> writes = {};

  /// Sums that an earlier pass may write for use by `way` of this pass only. If they are not
  /// stored, this pass recomputes them, as described by `recompute`.
  std::optional<ArrayId> sums = {};
  PassMethod recompute = {};
};

/// The chunks that a gather requests, block by block, in request order. A chunk that is listed
/// twice is read twice, unless it is in memory.
struct GatherReads {
  std::vector<std::uint32_t> chunks;
  std::vector<std::uint64_t> block_ends;  ///< [blocks], into `chunks`

  /// [blocks] start of each block, in units of 1/`places` of all rows. If empty, blocks are equal
  /// parts of the rows.
  std::vector<std::uint64_t> block_begins;
  std::uint64_t places = 0;
};

/// Counts the reads of a gather for a given number of blocks. CountGather (gather_reads.h)
/// implements it for a graph. It is called once for each pair.
using GatherCounter =
    std::function<Result<GatherReads>(std::uint32_t gather, std::uint32_t blocks)>;

/// The passes of an epoch, in order. A pass reads arrays that are `stored` or were written by an
/// earlier pass. Every array is written once, and read in order at most once per pass.
struct PassSequence {
  std::vector<SpillArray> arrays;
  std::vector<SpillPass> passes;
  GatherCounter gather;
};

/// An access of a pass to a chunk.
struct ChunkAccess {
  ArrayId array = 0;
  std::uint32_t chunk = 0;
  std::uint32_t read = 0;   ///< for reads: index into PassMethod::reads
  std::uint32_t block = 0;  ///< for gathers
  bool write = false;
  friend bool operator==(const ChunkAccess&, const ChunkAccess&) = default;
};

/// Checks that the sequence can be run. Errors: kInvalidArgument, naming the pass and the array.
Status CheckSequence(const PassSequence& sequence);

}  // namespace internal
}  // namespace rhizome
