#pragma once

#include <span>
#include <utility>
#include <vector>

#include "index/homes/home_array.h"
#include "index/partition/partition_input.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// Chooses the homes of a graph's vertices while its generation is built, one home for each
/// partition. If homes are wanted, call Divide before the edges are partitioned, and Finish
/// afterwards.
/// Memory: 2 bytes a vertex, 8 a training vertex, and the memory of DivideRows during Divide.
/// Ownership: the constructor's arguments must outlive it.
class HomeChoice {
 public:
  /// `memory_bytes` bounds the memory of Divide; 0: no bound.
  HomeChoice(HomeRule rule, const PartitionOptions& partition, std::uint64_t memory_bytes,
             const JobControl& control)
      : rule_(rule), partition_(partition), memory_bytes_(memory_bytes), control_(control) {}

  bool wanted() const { return rule_ != HomeRule::kNone; }

  /// Chooses homes by an edge cut if that is the rule. If the rule is a file, `given` has the homes
  /// by vertex.
  /// Errors: any error of `edges` and of DivideRows; kOutOfMemory, DivideRows would not fit.
  Status Divide(const Result<PartitionInput>& edges, std::vector<VertexId> seeds,
                std::vector<PartitionId> given);

  /// Uses `owners`, by vertex, as homes if that is the rule, and measures the homes.
  Status Finish(const Result<PartitionInput>& edges, std::span<const PartitionId> owners);

  const StoredHomes& facts() const { return facts_; }
  std::vector<PartitionId> Take() { return std::move(homes_); }

 private:
  Status CheckMemory(const PartitionInput& edges) const;

  const HomeRule rule_;
  const PartitionOptions& partition_;
  const std::uint64_t memory_bytes_;
  const JobControl& control_;
  std::vector<VertexId> seeds_;
  std::vector<PartitionId> homes_;
  StoredHomes facts_;
};

}  // namespace internal
}  // namespace rhizome
