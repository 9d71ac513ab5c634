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
  std::uint64_t unit_bytes = 1;  ///< chunks take whole units of so many bytes

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

  /// Returns the number of chunks that are the first `part` of `parts` equal parts.
  std::uint32_t ChunksOfPart(std::uint32_t part, std::uint32_t parts) const {
    return static_cast<std::uint32_t>(std::uint64_t{chunks()} * part / parts);
  }

 private:
  std::uint64_t InUnits(std::uint64_t bytes) const {
    return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
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
  std::uint64_t beside_bytes = 0;  ///< read beside the sequence's arrays, whatever stays in memory
};

/// A way to compute a pass. Its memory falls with the number of blocks, its gathers rise.
struct PassWay {
  std::vector<PassRead> reads = {};
  std::vector<BlockChoice> choices = {{}};
};

/// One pass. It reads, and computes rows in order, block by block: what a block gathers it reads
/// when it comes to the block's first row. Of what it reads in order it reads a chunk when it comes
/// to the chunk's first row, and writes a chunk behind its last.
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

  /// [blocks] where each begins, of `places` equal places into which all rows are divided. Empty:
  /// blocks are equal parts of the rows.
  std::vector<std::uint64_t> block_begins;
  std::uint64_t places = 0;
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

/// An access of a pass to a chunk.
struct ChunkAccess {
  ArrayId array = 0;
  std::uint32_t chunk = 0;
  std::uint32_t read = 0;   ///< index into PassWay::reads, of a read
  std::uint32_t block = 0;  ///< of a gather
  bool write = false;
  friend bool operator==(const ChunkAccess&, const ChunkAccess&) = default;
};

/// Is the sequence one that can be run? Errors: kInvalidArgument, naming the pass and the array.
Status CheckSequence(const PassSequence& sequence);

}  // namespace rhizome::inline internal
