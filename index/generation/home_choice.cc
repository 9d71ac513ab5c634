#include "index/generation/home_choice.h"

#include <fmt/format.h>

#include "index/homes/home_partitioner.h"

namespace rhizome {
inline namespace internal {

Status HomeChoice::CheckMemory(const PartitionInput& edges) const {
  if (memory_bytes_ == 0) return Status::Ok();
  const std::uint64_t needed =
      DivideRowsBytes(edges.vertex_count(), edges.edge_count(), partition_.partitions);
  if (needed <= memory_bytes_) return Status::Ok();
  return Status::OutOfMemory(fmt::format(
      "homes by an edge cut need about {} MiB of memory for {} edges and {} vertices, but {} MiB "
      "of the limit are left; nothing was written; raise the memory limit, or choose homes by "
      "owner, or from a file",
      (needed >> 20) + 1, edges.edge_count(), edges.vertex_count(), memory_bytes_ >> 20));
}

Status HomeChoice::Divide(const Result<PartitionInput>& edges, std::vector<VertexId> seeds,
                          std::vector<PartitionId> given) {
  if (!edges) return edges.error();
  seeds_ = std::move(seeds);
  homes_ = std::move(given);
  if (rule_ != HomeRule::kEdgeCut) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(CheckMemory(*edges));
  const HomeOptions options{.homes = partition_.partitions, .seed = partition_.seed};
  RHIZOME_ASSIGN_OR_RETURN(homes_, DivideRows(*edges, seeds_, options, control_));
  return Status::Ok();
}

Status HomeChoice::Finish(const Result<PartitionInput>& edges,
                          std::span<const PartitionId> owners) {
  if (!edges) return edges.error();
  if (rule_ == HomeRule::kOwner) homes_.assign(owners.begin(), owners.end());
  facts_.homes = partition_.partitions;
  facts_.rule = rule_;
  facts_.seeds = seeds_.size();
  RHIZOME_ASSIGN_OR_RETURN(facts_.metrics, MeasureHomes(*edges, seeds_, homes_, facts_.homes));
  std::vector<VertexId>().swap(seeds_);
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
