#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "index/sample/left_out_edges.h"
#include "index/sample/sampler_draw.h"
#include "index/sample/sampler_numbering.h"
#include "rhizome/graph.h"
#include "rhizome/sampler.h"
#include "storage/base/process.h"

namespace rhizome {
inline namespace internal {

/// The entries of a look-up that belong to the delta.
struct LookUpScratch {
  struct Added {
    std::size_t index = 0;  ///< among all entries
    EntryRef entry;
  };
  std::vector<Added> added;
};

/// The draws for a few frontier vertices, between drawing and numbering.
struct SampleChunk {
  EntryPicker picker;
  std::vector<EntryRef> entries;
  std::vector<std::uint64_t> counts;  ///< by vertex
  std::vector<Row> rows;              ///< parallel to entries, as are types, weights and edges
  std::vector<TypeId> types;          ///< may be empty
  std::vector<float> weights;         ///< may be empty
  std::vector<EdgeId> edges;          ///< may be empty
  std::vector<LocalEdge> edge_ids;    ///< within their partitions; used to find the weights
  LookUpScratch look_up;
  Status status;  ///< status of the look-up
};

/// The memory of one call of Sample, so that single vertices and hops need no allocation.
struct SampleScratch {
  SampleScratch(std::uint64_t rows, bool disjoint) : numbering(rows, disjoint) {}

  Numbering numbering;
  std::vector<SampleChunk> chunks;
  std::vector<Row> frontier;             ///< copy of the hop's vertices; the sample's rows grow
  std::vector<std::uint32_t> subgraphs;  ///< parallel to frontier, if disjoint
  std::vector<EntryRef> hop_entries;     ///< for sources that want whole hops
  std::vector<Row> hop_rows;             ///< parallel to hop_entries
  LookUpScratch look_up;                 ///< for a whole hop
  LeftOutEdges left_out;
};

/// Lends a SampleScratch to each concurrent call, and resets it when it is returned.
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

  /// `numbered` must be all rows that have a number.
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

}  // namespace internal
}  // namespace rhizome
