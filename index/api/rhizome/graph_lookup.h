#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

/// Limits of a batched look-up.
struct LookupOptions {
  /// Checked between vertices, or between batches of rows. A call past it fails with kInterrupted.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const JobControl* control = nullptr;  ///< if cancelled, calls fail with kInterrupted
};

/// The adjacency lists of n vertices in CSR form. A caller that keeps the object between calls
/// reuses its memory.
struct NeighborLists {
  std::vector<std::uint64_t> offsets;  ///< [n + 1]: list i is [offsets[i], offsets[i + 1])
  std::vector<VertexId> vertices;
  std::vector<TypeId> types;   ///< empty if the graph has one edge type
  std::vector<float> weights;  ///< empty if the graph has no weights
};

/// Looks up the neighbours of many vertices in one call, all at one commit (for a live graph, the
/// commit when the call begins). The order within a list is unspecified; otherwise the lists equal
/// those that Graph::Neighbors returns. After an error `lists` is unspecified.
/// Errors: as Graph::Neighbors; kInterrupted.
/// Threads: any number at once, each with its own `lists`.
Status LookUpNeighbors(const Graph& graph, std::span<const VertexId> vertices, Direction direction,
                       NeighborLists& lists, const LookupOptions& options = {});

/// Reads adjacency lists that are on disk (TopologyPlace::kDirect) into the graph's cache
/// (GraphOptions::list_cache_bytes): all of them, or, if they do not fit, the lists of the highest
/// degrees until the cache is full. Look-ups may run concurrently. Loaded lists remain in the cache
/// even after an error. kBoth loads the directions that the store keeps. Reports progress to
/// `options.control`, in bytes.
/// Errors: kInterrupted, cancelled or past the deadline; kCorruption; kIoError.
Status WarmNeighbors(const Graph& graph, Direction direction, const LookupOptions& options = {});

/// Looks up rows of one vertex array, for services. Rows are verified when they are read, and
/// cached in blocks of about 4 KiB within a memory budget. With a live graph, a call reads at the
/// commit at which it begins, of the version that the name then refers to.
/// Threads: Read may be called from any number at once.
/// Ownership: `graph` must outlive it.
class RowLookup {
 public:
  /// Options of Open.
  struct Options {
    /// Bytes of the whole cache, including its tables; allocated as it fills. In addition, a thread
    /// that misses rows needs a queue and about 2 MiB (FileRows).
    std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  };

  /// Errors: kNotFound, no such array; kInvalidArgument, not a vertex array; kCorruption.
  static Result<std::unique_ptr<RowLookup>> Open(const Graph& graph, std::string_view array,
                                                 const Options& options);
  static Result<std::unique_ptr<RowLookup>> Open(const Graph& graph, std::string_view array) {
    return Open(graph, array, Options{});
  }
  ~RowLookup();

  /// Returns the row size of the array that is open now.
  std::uint64_t row_bytes() const;

  /// Reads rows into the cache until the budget is used up, beginning with the vertices of the
  /// highest degrees; otherwise as WarmNeighbors. Rows of the delta are in the catalogue and are
  /// not read.
  Status Warm(const LookupOptions& options = {}) const;

  /// Copies the rows of `vertices` to `out`, shape [vertices.size(), row_bytes()], with the values
  /// that Graph::ReadRows returns. After an error `out` is unspecified.
  /// Errors: kInvalidArgument, an id out of range, a wrong size; kInterrupted; kCorruption;
  /// kIoError.
  Status Read(std::span<const VertexId> vertices, std::span<std::byte> out,
              const LookupOptions& options = {}) const;

 private:
  class Impl;
  explicit RowLookup(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
