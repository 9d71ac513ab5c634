#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {
class ByteSink;
class SectionFile;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

struct NeighborCacheOptions {
  /// kIn or kOut: the lists that are walked.
  Direction direction = Direction::kIn;

  /// All memory of the cache, its table of addresses (4 bytes a local vertex) included.
  std::uint64_t budget_bytes = std::uint64_t{256} << 20;
};

/// Neighbour lists in memory for a graph whose lists are on disk: chosen once, never evicted.
///
/// A list is asked for as often as its vertex stands in other lists, and takes memory by its own
/// length: so lists are taken by the ratio of the two degrees, the largest first; by degree where
/// all ratios tie (an undirected graph), because of a hub a sample reads many blocks. Lists are
/// found by direct addressing: a table by partition and local id, no hashing. They stay as they are
/// in the file, compressed or not.
/// Source: the neighbour cache of Ginex (VLDB 2022), section 3.2.
///
/// Threads: const after Build and Load. Ownership: the graph may go before the cache.
class NeighborCache {
 public:
  /// Chooses the lists and reads them, in large pieces. Reads every list once more where only one
  /// direction is stored: then the other degrees are counted.
  /// Errors: kInvalidArgument, a direction the store lacks, or a budget that its table alone
  /// exceeds; kCorruption; kIoError; kInterrupted.
  static Result<std::shared_ptr<const NeighborCache>> Build(const GraphSnapshot& graph,
                                                            const NeighborCacheOptions& options,
                                                            const JobControl& control);

  /// Writes what Load reads (storage/FORMAT.md, "Neighbour cache"), to a job's scratch folder.
  Status Dump(ByteSink& sink, const GraphSnapshot& graph) const;

  /// Loads a dump, verified, at the disk's rate: the lists are used where they are read to. Errors:
  /// kCorruption; kInvalidArgument, it was made of another store, generation or direction;
  /// kIoError.
  static Result<std::shared_ptr<const NeighborCache>> Load(FileSystem& fs, const Path& path,
                                                           const GraphSnapshot& graph,
                                                           Direction direction);

  /// The bytes of a list, as they stand at Adjacency::ExtentOf; nothing if it is not cached. The
  /// caller knows its length.
  const std::byte* Find(std::uint32_t partition, std::uint32_t local) const {
    const std::uint32_t unit = units_[partition][local];
    return unit == kAbsent ? nullptr : lists_.data() + std::uint64_t{unit} * kUnitBytes;
  }

  /// What a cache of lists of `direction` takes, in bytes: known from the offsets alone.
  struct Needs {
    std::uint64_t table_bytes = 0;  ///< with a smaller budget it cannot be built
    std::uint64_t full_bytes = 0;   ///< with all lists and the table: more is of no use
    std::uint64_t build_bytes = 0;  ///< taken beside it while it is built
  };
  static Needs NeedsOf(const GraphSnapshot& graph, Direction direction);

  Direction direction() const { return direction_; }
  std::uint64_t list_count() const { return list_count_; }
  std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kAbsent = UINT32_MAX;
  static constexpr std::uint64_t kUnitBytes = 4;

  struct Chosen {
    std::vector<std::vector<std::uint32_t>> locals;  // ascending, of each partition
    std::uint64_t units = 0;
  };

  NeighborCache() = default;
  static Result<Chosen> Choose(const GraphSnapshot& graph, const NeighborCacheOptions& options,
                               const JobControl& control);
  void Place(const GraphSnapshot& graph, const Chosen& chosen);
  Status ReadLists(const GraphSnapshot& graph, const Chosen& chosen, const JobControl& control);

  Direction direction_ = Direction::kIn;
  std::uint64_t list_count_ = 0;
  std::vector<std::vector<std::uint32_t>> units_;  // of each partition: by local id, or kAbsent
  std::span<const std::byte> lists_;               // in one of these
  AlignedBuffer built_;
  std::shared_ptr<const SectionFile> loaded_;
};

}  // namespace rhizome
