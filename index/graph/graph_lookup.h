#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// How long a batched look-up may take, and who may stop it.
struct LookupOptions {
  /// Looked at between vertices, or some hundreds of rows; passed: kInterrupted.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const JobControl* control = nullptr;  ///< cancelled: kInterrupted
};

/// Neighbour lists of n vertices, flat. Kept by the caller between calls, its memory is used again.
struct NeighborLists {
  std::vector<std::uint64_t> offsets;  ///< n + 1: list i is [offsets[i], offsets[i + 1])
  std::vector<VertexId> vertices;
  std::vector<TypeId> types;   ///< empty in a graph of one edge type
  std::vector<float> weights;  ///< empty in a graph without weights
};

/// Neighbours of many vertices in one call, all at one commit: that of a live graph when the call
/// begins. The order within a list is not specified; otherwise lists are those of Graph::Neighbors.
/// Errors: those of Graph::Neighbors, kInterrupted; then `lists` is unspecified.
/// Threads: any number at once, each with its own `lists`.
Status LookUpNeighbors(const Graph& graph, std::span<const VertexId> vertices, Direction direction,
                       NeighborLists& lists, const LookupOptions& options = {});

/// Reads neighbour lists that are on disk (TopologyPlace::kDirect) into the graph's cache
/// (GraphOptions::list_cache_bytes): all of them, or where it cannot hold them those of the highest
/// degrees, until it is full. Look-ups may go on meanwhile. What was loaded stays, whatever the
/// outcome. kBoth: of the directions that the store keeps. Reports progress to `options.control`,
/// in bytes. Errors: kInterrupted, cancelled or late; kCorruption; kIoError.
Status WarmNeighbors(const Graph& graph, Direction direction, const LookupOptions& options = {});

/// Rows of one array of vertices, for services: opened once, kept in memory in blocks of about
/// 4 KiB, verified when they are read, as many as a budget holds; then blocks that are asked for
/// seldom make room (CLOCK). Rows of an array in layout kRow are read by block, all that a call
/// misses in deep batches of direct reads; of any other the chunk is decoded that they are in.
/// Rows of a live graph are those of its commit when the call begins; after a compaction, or when
/// the name means another version, the array is opened anew.
/// Threads: Read from any number at once. Ownership: `graph` must outlive it.
class RowLookup {
 public:
  struct Options {
    /// All of the cache, its tables included; taken from the system as it fills. Beside it, a
    /// thread that misses rows takes a queue and 2 MiB or so (FileRows).
    std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  };

  /// Errors: kNotFound, no such array; kInvalidArgument, not an array of vertices; kCorruption.
  static Result<std::unique_ptr<RowLookup>> Open(const Graph& graph, std::string_view array,
                                                 const Options& options);
  static Result<std::unique_ptr<RowLookup>> Open(const Graph& graph, std::string_view array) {
    return Open(graph, array, Options{});
  }
  ~RowLookup();

  /// Of the array that is open now.
  std::uint64_t row_bytes() const;

  /// Reads rows into memory until the budget is used up, those of vertices of the highest degrees
  /// first; otherwise as WarmNeighbors. Rows of the delta are in the catalogue and are not read.
  Status Warm(const LookupOptions& options = {}) const;

  /// Copies the rows of `vertices` to `out`, of vertices.size() * row_bytes(): what was put last,
  /// the generation's, or what Graph::ReadRows says of a new one. Errors: kInvalidArgument, an id
  /// out of range, a wrong size; kInterrupted; kCorruption; kIoError. Then `out` is unspecified.
  Status Read(std::span<const VertexId> vertices, std::span<std::byte> out,
              const LookupOptions& options = {}) const;

 private:
  class Impl;
  explicit RowLookup(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
