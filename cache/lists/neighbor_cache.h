#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace internal {
class ByteSink;
class SectionFile;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

struct NeighborCacheOptions {
  /// Direction of the cached lists: kIn or kOut.
  Direction direction = Direction::kIn;

  /// Total memory of the cache in bytes, including its address table (4 bytes per local vertex).
  std::uint64_t budget_bytes = std::uint64_t{256} << 20;
};

/// Caches neighbour lists in memory for a graph whose lists are on disk. The lists are chosen once
/// and never evicted.
///
/// A list is accessed as often as its vertex appears in other lists, and occupies memory in
/// proportion to its length. Lists are therefore chosen by descending ratio of these two degrees.
/// If all ratios are equal (an undirected graph), they are chosen by degree, because sampling a hub
/// reads many blocks. A lookup indexes a table by partition and local id, without hashing. Lists
/// are stored in the format of the file, compressed or not.
/// Source: the neighbour cache of Ginex (VLDB 2022), section 3.2.
///
/// Threads: immutable after Build and Load.
/// Ownership: the graph need not outlive the cache.
class NeighborCache {
 public:
  /// Chooses the lists and reads them in large pieces. If only one direction is stored, it first
  /// reads every list once more to count the degrees of the other direction.
  /// Errors: kInvalidArgument, the store lacks the direction, the lists are in memory already, or
  /// the table alone exceeds the budget; kCorruption; kIoError; kOutOfMemory; kInterrupted.
  static Result<std::shared_ptr<const NeighborCache>> Build(const GraphSnapshot& graph,
                                                            const NeighborCacheOptions& options,
                                                            const JobControl& control);

  /// Writes the cache to `sink` in the format that Load reads (storage/FORMAT.md, "Neighbour
  /// cache"). Dumps are stored in a job's scratch folder.
  Status Dump(ByteSink& sink, const GraphSnapshot& graph) const;

  /// Loads and verifies a dump at the disk's throughput. The lists are used in the buffer that they
  /// were read into, without a copy. Errors: kCorruption; kInvalidArgument, the dump is of another
  /// store, generation or direction; kIoError.
  static Result<std::shared_ptr<const NeighborCache>> Load(FileSystem& fs, const Path& path,
                                                           const GraphSnapshot& graph,
                                                           Direction direction);

  /// Returns the bytes of a list as stored at Adjacency::ExtentOf, or null if it is not cached. The
  /// caller knows its length.
  const std::byte* Find(std::uint32_t partition, std::uint32_t local) const {
    const std::uint32_t unit = units_[partition][local];
    return unit == kAbsent ? nullptr : lists_.data() + std::uint64_t{unit} * kUnitBytes;
  }

  /// Bytes that a cache of the lists of `direction` needs, computed from the offsets alone.
  struct Needs {
    std::uint64_t table_bytes = 0;  ///< minimum budget; a smaller one is rejected
    std::uint64_t full_bytes = 0;   ///< table and all lists; a larger budget is useless
    std::uint64_t build_bytes = 0;  ///< temporary memory during Build
  };
  static Needs NeedsOf(const GraphSnapshot& graph, Direction direction);

  Direction direction() const { return direction_; }
  std::uint64_t list_count() const { return list_count_; }
  std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kAbsent = UINT32_MAX;
  static constexpr std::uint64_t kUnitBytes = 4;

  struct Chosen {
    std::vector<std::vector<std::uint32_t>> locals;  // by partition, ascending
    std::uint64_t units = 0;
  };

  NeighborCache() = default;
  static Result<Chosen> Choose(const GraphSnapshot& graph, const NeighborCacheOptions& options,
                               const JobControl& control);
  void Place(const GraphSnapshot& graph, const Chosen& chosen);
  Status ReadLists(const GraphSnapshot& graph, const Chosen& chosen, const JobControl& control);

  Direction direction_ = Direction::kIn;
  std::uint64_t list_count_ = 0;
  std::vector<std::vector<std::uint32_t>>
      units_;                         // by partition and local id; kAbsent if not cached
  std::span<const std::byte> lists_;  // points into built_ or loaded_
  AlignedBuffer built_;
  std::shared_ptr<const SectionFile> loaded_;
};

}  // namespace rhizome
