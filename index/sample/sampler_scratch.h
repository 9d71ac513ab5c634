#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/index/sampler_draw.h"
#include "rhizome/index/sampler_numbering.h"
#include "rhizome/storage/process.h"

namespace rhizome::inline internal {

/// The entries of a look-up that stand in the delta.
struct LookUpScratch {
  struct Added {
    std::size_t index = 0;  ///< among all
    EntryRef entry;
  };
  std::vector<Added> added;
};

/// What is drawn for a few frontier vertices, between the draw and the numbering.
struct SampleChunk {
  EntryPicker picker;
  std::vector<EntryRef> entries;
  std::vector<std::uint64_t> counts;  ///< by vertex
  std::vector<Row> rows;              ///< parallel to entries, as the three below
  std::vector<TypeId> types;          ///< or empty
  std::vector<float> weights;         ///< or empty
  std::vector<EdgeId> edges;          ///< or empty
  std::vector<LocalEdge> edge_ids;    ///< within their partitions, on the way to the weights
  LookUpScratch look_up;
  Status status;  ///< of the look-up
};

/// Memory of one call of Sample, so that nothing is allocated for a single vertex or hop.
struct SampleScratch {
  SampleScratch(std::uint64_t rows, bool disjoint) : numbering(rows, disjoint) {}

  Numbering numbering;
  std::vector<SampleChunk> chunks;
  std::vector<Row> frontier;             ///< of the hop; the sample's own rows grow meanwhile
  std::vector<std::uint32_t> subgraphs;  ///< parallel to frontier, if disjoint
  std::vector<EntryRef> hop_entries;     ///< of sources that want whole hops
  std::vector<Row> hop_rows;             ///< parallel to hop_entries
  LookUpScratch look_up;                 ///< of a whole hop
};

/// Lends a SampleScratch to each concurrent call; it comes back clean.
/// Threads: any.
class SampleScratchPool {
 public:
  SampleScratchPool(std::uint64_t rows, bool disjoint) : rows_(rows), disjoint_(disjoint) {}

  std::unique_ptr<SampleScratch> Take() RHIZOME_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<SampleScratch> scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    return std::make_unique<SampleScratch>(rows_, disjoint_);
  }

  /// `numbered`: all rows that have a number.
  void GiveBack(std::unique_ptr<SampleScratch> scratch, std::span<const Row> numbered)
      RHIZOME_EXCLUDES(mutex_) {
    scratch->numbering.Forget(numbered);
    MutexLock lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  const std::uint64_t rows_;
  const bool disjoint_;
  ForkMutex mutex_;
  std::vector<std::unique_ptr<SampleScratch>> free_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace rhizome::inline internal
