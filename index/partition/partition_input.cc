#include "index/partition/partition_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/base/exceptions.h"

namespace rhizome {

namespace {

// Edges in a block: few enough that the block is still in the processor's cache when it is visited
// after its check.
constexpr std::size_t kBlockEdges = std::size_t{1} << 15;

}  // namespace

PartitionInput::PartitionInput(std::uint64_t vertex_count, std::span<const VertexId> src,
                               std::span<const VertexId> dst)
    : PartitionInput(vertex_count, std::max(src.size(), dst.size()), [=](const Visit& visit) {
        for (std::size_t first = 0; first < std::max(src.size(), dst.size());
             first += kBlockEdges) {
          const auto block = [first](std::span<const VertexId> column) {
            const std::size_t begin = std::min(first, column.size());
            return column.subspan(begin, std::min(kBlockEdges, column.size() - begin));
          };
          Status visited = visit(block(src), block(dst));
          if (!visited.ok()) return visited;
        }
        return Status::Ok();
      }) {
  if (src.size() == dst.size()) columns_ = Columns{src, dst};
}

PartitionInput::PartitionInput(std::uint64_t vertex_count, std::uint64_t edge_count, Scan scan)
    : vertex_count_(vertex_count), edge_count_(edge_count), scan_(std::move(scan)) {}

Status PartitionInput::CheckColumn(std::uint64_t values) const try {
  if (values == edge_count_) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{} values were given for {} edges; give one for each", values, edge_count_));
} catch (...) {
  return StatusOfException();
}

Status PartitionInput::CheckPartitions(std::span<const PartitionId> partition_of_edge,
                                       std::uint32_t partitions) const try {
  RHIZOME_RETURN_IF_ERROR(CheckColumn(partition_of_edge.size()));
  if (partitions == 0 || partitions > kMaxPartitions)
    return Status::InvalidArgument(
        fmt::format("{} partitions; there must be 1 to {}", partitions, kMaxPartitions));
  for (const PartitionId partition : partition_of_edge) {
    if (partition >= partitions)
      return Status::InvalidArgument(fmt::format(
          "partition {} does not exist: there are {} partitions", partition, partitions));
  }
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Status PartitionInput::CheckBlock(std::uint64_t first, std::span<const VertexId> src,
                                  std::span<const VertexId> dst) const try {
  if (src.size() != dst.size()) {
    return Status::InvalidArgument(fmt::format(
        "from edge {} on there are {} sources but {} targets", first, src.size(), dst.size()));
  }
  if (src.size() > edge_count_ - first) return CheckCount(first + src.size());
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < src.size(); ++i) {
    // A negative id becomes a huge unsigned number.
    most = std::max({most, static_cast<std::uint64_t>(src[i]), static_cast<std::uint64_t>(dst[i])});
  }
  if (src.empty() || most < vertex_count_) return Status::Ok();
  std::size_t i = 0;
  const auto beyond = [this](VertexId id) {
    return static_cast<std::uint64_t>(id) >= vertex_count_;
  };
  while (!beyond(src[i]) && !beyond(dst[i])) ++i;
  return Status::InvalidArgument(fmt::format("edge {} names vertex {}; ids must be in [0, {})",
                                             first + i, beyond(src[i]) ? src[i] : dst[i],
                                             vertex_count_));
} catch (...) {
  return StatusOfException();
}

Status PartitionInput::CheckCount(std::uint64_t edges) const {
  if (edges == edge_count_) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{} edges are to be divided, but there are {} of them", edge_count_, edges));
}

}  // namespace rhizome
