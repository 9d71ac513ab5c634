#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "index/base/workers.h"
#include "index/partition/partition_input.h"
#include "rhizome/status.h"
#include "storage/base/check.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace internal {

/// An array on huge pages if the system has them. On small pages, random accesses to gigabytes
/// spend most of their time on page table walks. The memory is not zeroed.
template <typename T>
class HugeArray {
 public:
  HugeArray() = default;

  /// Errors: kOutOfMemory.
  static Result<HugeArray> Allocate(std::uint64_t size) {
    HugeArray array;
    RHIZOME_ASSIGN_OR_RETURN(array.memory_, AlignedBuffer::Allocate(size * sizeof(T)));
    return array;
  }

  T& operator[](std::uint64_t i) const {
    RHIZOME_DCHECK(i < memory_.bytes().size() / sizeof(T));
    return reinterpret_cast<T*>(memory_.bytes().data())[i];
  }
  void Free() { memory_ = {}; }

 private:
  AlignedBuffer memory_;
};

/// The edges of every vertex in both directions, with the partition of each edge: a CSR over both
/// ends of each input edge. An edge has two half-edges that refer to each other (`twin`), so that
/// the edges of a vertex are read in sequence. A self-loop has one half-edge, which is its own
/// twin. The half-edges of a list are in input order.
///
/// Memory: kBytesPerEdge and kBytesPerVertex; with 32-bit numbers and up to 254 partitions that is
/// 18 bytes an edge. The input is scanned and not kept. Index numbers half-edges, so 32 bits
/// suffice below 2^31 edges.
/// Threads: `part` and `set_part` are relaxed atomics; the rest is constant.
template <typename Index, typename Part>
class HalfEdges {
 public:
  /// The partition of an unassigned edge.
  static constexpr Part kFree = std::numeric_limits<Part>::max();

  static constexpr std::uint32_t kMaxBlocks = 4;
  static constexpr std::uint64_t kBytesPerEdge = 2 * (2 * sizeof(Index) + sizeof(Part));
  static constexpr std::uint64_t kBytesPerVertex = sizeof(std::uint64_t);

  static bool Fits(std::uint64_t vertices, std::uint64_t edges, std::uint32_t partitions) {
    constexpr std::uint64_t kLimit = std::numeric_limits<Index>::max();
    return partitions < kFree && vertices < kLimit && edges < kLimit / 2;
  }

  /// Edges in memory are read by several threads, which takes 4 bytes more a vertex and thread, for
  /// at most kMaxBlocks threads; the result does not depend on their number.
  /// Errors: kOutOfMemory; any error of scanning the edges.
  static Result<HalfEdges> Create(const PartitionInput& input, Workers& workers) {
    HalfEdges edges(input.vertex_count());
    const std::uint32_t blocks = std::min(workers.threads(), kMaxBlocks);
    if (blocks > 1 && input.columns()) {
      RHIZOME_RETURN_IF_ERROR(edges.FillBlocks(input, blocks, workers));
    } else {
      RHIZOME_RETURN_IF_ERROR(edges.CountDegrees(input));
      RHIZOME_RETURN_IF_ERROR(edges.AllocateEnds());
      RHIZOME_RETURN_IF_ERROR(edges.Fill(input));
    }
    RHIZOME_ASSIGN_OR_RETURN(edges.part_, HugeArray<Part>::Allocate(edges.size()));
    for (std::uint64_t half = 0; half < edges.size(); ++half) edges.part_[half] = kFree;
    return edges;
  }

  std::uint64_t vertex_count() const { return offsets_.size() - 1; }
  std::uint64_t size() const { return offsets_.back(); }
  std::uint64_t begin(std::uint64_t vertex) const { return offsets_[vertex]; }
  std::uint64_t end(std::uint64_t vertex) const { return offsets_[vertex + 1]; }
  std::uint64_t degree(std::uint64_t vertex) const {
    return offsets_[vertex + 1] - offsets_[vertex];
  }

  Index other(std::uint64_t half) const { return other_[half]; }
  Index twin(std::uint64_t half) const { return twin_[half]; }
  Part part(std::uint64_t half) const {
    return std::atomic_ref(part_[half]).load(std::memory_order_relaxed);
  }
  /// Sets the partition of an edge, that is, of both its half-edges.
  void set_part(std::uint64_t half, Part part) {
    set_half(half, part);
    set_half(twin(half), part);
  }
  /// Sets the partition of one half-edge; the caller sets its twin, too.
  void set_half(std::uint64_t half, Part part) {
    RHIZOME_DCHECK(part != kFree && twin_[twin_[half]] == half);
    std::atomic_ref(part_[half]).store(part, std::memory_order_relaxed);
  }

  /// Returns the partition of each input edge and frees everything else; afterwards only size() is
  /// valid.
  /// Errors: any error of scanning the edges.
  Result<std::vector<PartitionId>> Collect(const PartitionInput& input) {
    other_.Free();
    twin_.Free();
    std::vector<PartitionId> result(static_cast<std::size_t>(input.edge_count()));
    // Repeats the scan of Fill with the offsets as cursors, which visits the half-edges of each
    // edge in the same order.
    RHIZOME_RETURN_IF_ERROR(
        input.ForEach([&](std::uint64_t e, std::uint64_t src, std::uint64_t dst) {
          result[e] = part_[offsets_[src]++];
          RHIZOME_DCHECK(result[e] != kFree);
          if (dst != src) ++offsets_[dst];
        }));
    return result;
  }

 private:
  explicit HalfEdges(std::uint64_t vertices) : offsets_(static_cast<std::size_t>(vertices) + 1) {}

  Status CountDegrees(const PartitionInput& input) {
    RHIZOME_RETURN_IF_ERROR(input.ForEach([&](std::uint64_t, std::uint64_t src, std::uint64_t dst) {
      ++offsets_[src + 1];
      if (dst != src) ++offsets_[dst + 1];
    }));
    for (std::size_t v = 1; v < offsets_.size(); ++v) offsets_[v] += offsets_[v - 1];
    return Status::Ok();
  }

  Status AllocateEnds() {
    RHIZOME_ASSIGN_OR_RETURN(other_, HugeArray<Index>::Allocate(size()));
    RHIZOME_ASSIGN_OR_RETURN(twin_, HugeArray<Index>::Allocate(size()));
    return Status::Ok();
  }

  void SetEnds(std::uint64_t at_src, std::uint64_t at_dst, std::uint64_t src, std::uint64_t dst) {
    other_[at_src] = static_cast<Index>(dst);
    other_[at_dst] = static_cast<Index>(src);
    twin_[at_src] = static_cast<Index>(at_dst);
    twin_[at_dst] = static_cast<Index>(at_src);
  }

  // A part of the input, which one thread reads.
  struct Block {
    std::size_t begin = 0;
    std::size_t end = 0;
    Status checked;
    // [vertices] half-edges of the block; then the position of the next one.
    std::vector<Index> next;
  };

  // Counts the half-edges of each block, derives where each block's part of a list begins, and
  // fills the lists.
  Status FillBlocks(const PartitionInput& input, std::size_t count, Workers& workers) {
    std::vector<Block> blocks(count);
    workers.ForEach(count, input.edge_count(), [&](std::size_t i) {
      blocks[i].begin = input.edge_count() * i / count;
      blocks[i].end = input.edge_count() * (i + 1) / count;
      blocks[i].next.resize(vertex_count());
      CountBlock(input, blocks[i]);
    });
    for (Block& block : blocks) RHIZOME_RETURN_IF_ERROR(std::move(block.checked));
    std::uint64_t at = 0;
    for (std::uint64_t v = 0; v < vertex_count(); ++v) {
      offsets_[v] = at;
      for (Block& block : blocks) at += std::exchange(block.next[v], static_cast<Index>(at));
    }
    offsets_.back() = at;
    RHIZOME_RETURN_IF_ERROR(AllocateEnds());
    workers.ForEach(count, input.edge_count(),
                    [&](std::size_t i) { FillBlock(*input.columns(), blocks[i]); });
    return Status::Ok();
  }

  static void CountBlock(const PartitionInput& input, Block& block) {
    constexpr std::size_t kEdgesAtOnce = std::size_t{1} << 15;  // they stay in the cache
    for (std::size_t begin = block.begin; begin < block.end; begin += kEdgesAtOnce) {
      const auto edges = input.columns()->Sub(begin, std::min(block.end, begin + kEdgesAtOnce));
      block.checked = input.Check(begin, edges);
      if (!block.checked.ok()) return;
      for (std::size_t e = 0; e < edges.src.size(); ++e) {
        ++block.next[static_cast<std::size_t>(edges.src[e])];
        if (edges.dst[e] != edges.src[e]) ++block.next[static_cast<std::size_t>(edges.dst[e])];
      }
    }
  }

  void FillBlock(const PartitionInput::Columns& edges, Block& block) {
    for (std::size_t e = block.begin; e < block.end; ++e) {
      const auto src = static_cast<std::uint64_t>(edges.src[e]);
      const auto dst = static_cast<std::uint64_t>(edges.dst[e]);
      const std::uint64_t at_src = block.next[src]++;
      SetEnds(at_src, src == dst ? at_src : block.next[dst]++, src, dst);
    }
  }

  // Uses the offsets as cursors. Each ends at the end of its list, so all are shifted back at the
  // end.
  Status Fill(const PartitionInput& input) {
    RHIZOME_RETURN_IF_ERROR(input.ForEach([&](std::uint64_t, std::uint64_t src, std::uint64_t dst) {
      const std::uint64_t at_src = offsets_[src]++;
      SetEnds(at_src, src == dst ? at_src : offsets_[dst]++, src, dst);
    }));
    for (std::size_t v = offsets_.size() - 1; v > 0; --v) offsets_[v] = offsets_[v - 1];
    offsets_[0] = 0;
    return Status::Ok();
  }

  std::vector<std::uint64_t> offsets_;  // [vertices + 1]
  HugeArray<Index> other_;              // [half-edges]
  HugeArray<Index> twin_;               // [half-edges]
  HugeArray<Part> part_;                // [half-edges]
};

}  // namespace internal
}  // namespace rhizome
