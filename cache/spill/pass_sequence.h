#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

// The passes of an epoch over all vertices, as data: which arrays each pass reads and writes. What
// stays in memory between them is planned from this alone (full_graph_plan.h).

/// A tier of memory: what it holds, and how fast it moves bytes. The fast tier has a capacity, the
/// slow one has rates; no more is known of either, so that memory and a disk are planned as a
/// device and its host.
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
  bool stored = false;  ///< lies in the slow tier from the beginning, and is written by no pass

  std::uint64_t bytes() const { return rows * row_bytes; }
  std::uint32_t chunks() const {
    return static_cast<std::uint32_t>((rows + chunk_rows - 1) / chunk_rows);
  }

  /// Returns the bytes of the first `count` chunks.
  std::uint64_t BytesOfFirst(std::uint64_t count) const {
    return std::min(count * chunk_rows, rows) * row_bytes;
  }
  std::uint64_t BytesOfChunk(std::uint64_t chunk) const {
    return BytesOfFirst(chunk + 1) - BytesOfFirst(chunk);
  }

  /// Returns the number of chunks that are the first `part` of `parts` equal parts.
  std::uint32_t ChunksOfPart(std::uint32_t part, std::uint32_t parts) const {
    return static_cast<std::uint32_t>(std::uint64_t{chunks()} * part / parts);
  }
};

/// How a pass reads an array: in order, each chunk once, however many blocks it has; or by a gather
/// over neighbour lists, each block the chunks that it needs.
struct PassRead {
  static constexpr std::int32_t kInOrder = -1;
  ArrayId array = 0;
  std::int32_t gather =
      kInOrder;  ///< or the number by which `PassSequence::gather` knows the lists
};

/// A number of blocks that a pass may be cut into, and the memory that its sums then take.
struct BlockChoice {
  std::uint32_t blocks = 1;
  std::uint64_t memory_bytes = 0;
};

/// A way to compute a pass. Its memory falls with the number of blocks, its gathers rise.
struct PassWay {
  std::vector<PassRead> reads = {};
  std::vector<BlockChoice> choices = {{}};
};

/// One pass. It reads, and computes rows in order, block by block: first what a block gathers, then
/// what it reads in order, while it writes its part of every array that it writes.
struct SpillPass {
  std::string name;
  PassWay way = {};
  std::vector<ArrayId> writes = {};

  /// Sums that an earlier pass may write for `way` of this one, and for no other: where they are
  /// not stored, this pass computes them again and goes by `recompute`.
  std::optional<ArrayId> sums = {};
  PassWay recompute = {};
};

/// The chunks that a gather asks for, block by block, in the order in which it does. A chunk that
/// stands there twice is read twice, unless memory holds it.
struct GatherReads {
  std::vector<std::uint32_t> chunks;
  std::vector<std::uint64_t> block_ends;  ///< [blocks], into `chunks`
};

/// Counts what a gather reads when its pass has so many blocks. Of a graph: CountGather
/// (gather_reads.h). Called once for each pair.
using GatherCounter =
    std::function<Result<GatherReads>(std::uint32_t gather, std::uint32_t blocks)>;

/// The passes of an epoch, in order. A pass reads what is `stored` or was written by a pass before
/// it; every array is written once, and read in order at most once by a pass.
struct PassSequence {
  std::vector<SpillArray> arrays;
  std::vector<SpillPass> passes;
  GatherCounter gather;
};

/// Is the sequence one that can be run? Errors: kInvalidArgument, naming the pass and the array.
Status CheckSequence(const PassSequence& sequence);

}  // namespace rhizome::inline internal
