// The two implementations of PartitionedEdges: MemoryEdges for edges in a GraphInput, and
// SpilledEdges for edges in spill files. Both count edges with EdgeCounter while they partition
// them, then rearrange the edges by partition (Arrange), and return one partition at a time (Take).

#include "index/generation/partitioned_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "index/base/free_vector.h"
#include "index/base/workers.h"
#include "index/generation/spilled_graph.h"
#include "index/partition/streaming_partitioner.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kPhase = "partition";

/// Calls visit(src, dst) for each directed edge of an input edge.
template <typename Visit>
void ForEachDirected(VertexId src, VertexId dst, bool undirected, Visit visit) {
  visit(src, dst);
  if (undirected && src != dst) visit(dst, src);
}

/// Counts the edges at each vertex.
void CountDegrees(VertexId src, VertexId dst, bool undirected, EdgeDivision& division) {
  ForEachDirected(src, dst, undirected, [&](VertexId from, VertexId to) {
    division.out_degree.Increment(static_cast<std::uint64_t>(from));
    division.in_degree.Increment(static_cast<std::uint64_t>(to));
  });
}

std::uint64_t DirectedCount(VertexId src, VertexId dst, bool undirected) {
  return undirected && src != dst ? 2 : 1;
}

void SumPartitions(std::span<const std::uint64_t> counts, EdgeDivision& division) {
  for (const std::uint64_t edges : counts) {
    division.edges += edges;
    division.largest_partition = std::max(division.largest_partition, edges);
  }
}

/// Edges in the memory of a GraphInput. Peak memory: the edges twice by column while they are
/// arranged, then once by partition.
class MemoryEdges final : public PartitionedEdges {
 public:
  MemoryEdges(GraphInput& input, const PartitionOptions& options, const JobControl& control)
      : edges_(std::move(input.edges)),
        vertices_(input.vertex_count),
        weighted_(input.weighted || !edges_.weight.empty()),
        undirected_(input.undirected),
        options_(options),
        control_(control),
        workers_(options.threads) {
    input.edges = {};
  }

  Columns columns() const override {
    return {.weighted = weighted_, .attributes = edges_.attributes.size()};
  }

  Result<PartitionInput> Input() const override {
    return PartitionInput(vertices_, edges_.src, edges_.dst);
  }

  Result<EdgeDivision> Divide() override {
    EdgeDivision division;
    division.kind = options_.kind;
    const PartitionInput input(vertices_, edges_.src, edges_.dst);
    if (options_.partitions > 1 && StreamingPartitioner::Supports(options_.kind)) {
      RHIZOME_RETURN_IF_ERROR(DivideStream(division));
    } else {
      RHIZOME_ASSIGN_OR_RETURN(DividedEdges divided, DivideEdges(input, options_, control_));
      partition_of_edge_ = std::move(divided.partition_of_edge);
      division.metrics = divided.metrics;
      division.owners = std::move(divided.owners);
    }
    division.out_degree = Degrees(vertices_);
    division.in_degree = Degrees(vertices_);
    counts_.assign(options_.partitions, 0);
    workers_.ForEach(2, edges_.size(), [&](std::size_t side) {
      if (side == 0)
        CountOut(division.out_degree);
      else
        CountIn(division.in_degree);
    });
    SumPartitions(counts_, division);
    division.most_vertices =
        std::min(vertices_, 2 * division.largest_partition + vertices_ / options_.partitions);
    return division;
  }

  // Rearranges column by column and frees each column afterwards. The ends are last, because
  // ForEachDirected needs both of them.
  Status Arrange(const VertexOrder& order) override {
    parts_.resize(options_.partitions);
    if (options_.partitions == 1 && !undirected_) return MoveToOnePart(order);
    const auto scatter = [&](auto column_of, auto value_of) {
      for (std::uint32_t p = 0; p < options_.partitions; ++p)
        column_of(parts_[p]).reserve(counts_[p]);
      for (std::size_t e = 0; e < edges_.size(); ++e) {
        auto& column = column_of(parts_[PartitionOf(e)]);
        ForEachDirected(edges_.src[e], edges_.dst[e], undirected_, [&](VertexId src, VertexId dst) {
          column.push_back(value_of(e, src, dst));
        });
      }
    };
    if (!edges_.type.empty()) {
      scatter(
          [](PartitionEdgeList & part) -> auto& { return part.edges.type; },
          [&](std::size_t e, VertexId, VertexId) { return edges_.type[e]; });
      Free(edges_.type);
    }
    if (!edges_.weight.empty()) {
      scatter(
          [](PartitionEdgeList & part) -> auto& { return part.edges.weight; },
          [&](std::size_t e, VertexId, VertexId) { return edges_.weight[e]; });
      Free(edges_.weight);
    }
    for (EdgeAttribute& attribute : edges_.attributes) ScatterAttribute(attribute);
    workers_.ForEach(2, edges_.size(), [&](std::size_t side) {
      if (side == 0)
        scatter(
            [](PartitionEdgeList & part) -> auto& { return part.edges.src; },
            [&](std::size_t, VertexId src, VertexId) { return order.RowOf(src); });
      else
        scatter(
            [](PartitionEdgeList & part) -> auto& { return part.edges.dst; },
            [&](std::size_t, VertexId, VertexId dst) { return order.RowOf(dst); });
    });
    edges_ = {};
    Free(partition_of_edge_);
    return Status::Ok();
  }

  Result<std::vector<std::uint8_t>> PartitionSets() override {
    const std::size_t bytes = PartitionSetBytes(options_.partitions);
    std::vector<std::uint8_t> sets(vertices_ * bytes);
    for (std::uint32_t p = 0; p < options_.partitions; ++p) {
      const auto mark = [&](Row row) {
        sets[static_cast<std::size_t>(row) * bytes + p / 8] |=
            static_cast<std::uint8_t>(1U << (p % 8));
      };
      std::for_each(parts_[p].edges.src.begin(), parts_[p].edges.src.end(), mark);
      std::for_each(parts_[p].edges.dst.begin(), parts_[p].edges.dst.end(), mark);
    }
    return sets;
  }

  Result<PartitionEdgeList> Take(std::uint32_t partition) override {
    return std::move(parts_[partition]);
  }

 private:
  /// Count the edges at each vertex, and (CountOut) of each partition. Two threads run them.
  void CountOut(Degrees& degrees) {
    for (std::size_t e = 0; e < edges_.size(); ++e)
      ForEachDirected(edges_.src[e], edges_.dst[e], undirected_, [&](VertexId from, VertexId) {
        degrees.Increment(static_cast<std::uint64_t>(from));
        ++counts_[PartitionOf(e)];
      });
  }
  void CountIn(Degrees& degrees) const {
    for (std::size_t e = 0; e < edges_.size(); ++e)
      ForEachDirected(edges_.src[e], edges_.dst[e], undirected_, [&](VertexId, VertexId to) {
        degrees.Increment(static_cast<std::uint64_t>(to));
      });
  }

  /// Arranges directed edges of one partition, which stay where they are.
  Status MoveToOnePart(const VertexOrder& order) {
    PartitionEdgeList& part = parts_.front();
    for (std::vector<VertexId>* ends : {&edges_.src, &edges_.dst})
      for (VertexId& end : *ends) end = order.RowOf(end);
    part.edges = {.src = std::move(edges_.src),
                  .dst = std::move(edges_.dst),
                  .type = std::move(edges_.type),
                  .weight = std::move(edges_.weight)};
    part.attributes = std::move(edges_.attributes);
    edges_ = {};
    return Status::Ok();
  }

  /// Returns the partition of an edge; one partition has no list of them.
  PartitionId PartitionOf(std::size_t edge) const {
    return partition_of_edge_.empty() ? PartitionId{0} : partition_of_edge_[edge];
  }

  Status DivideStream(EdgeDivision& division) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = kPhase, .done = 0, .total = edges_.size()}));
    RHIZOME_ASSIGN_OR_RETURN(auto partitioner,
                             StreamingPartitioner::Create(vertices_, edges_.size(), options_));
    constexpr std::size_t kEdgesOfReport = std::size_t{1} << 16;
    for (std::size_t e = 0; partitioner->needs_degrees() && e < edges_.size(); ++e)
      partitioner->CountDegrees(edges_.src[e], edges_.dst[e]);
    partition_of_edge_.resize(edges_.size());
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      if (e % kEdgesOfReport == 0)
        RHIZOME_RETURN_IF_ERROR(
            control_.Report({.phase = kPhase, .done = e, .total = edges_.size()}));
      partition_of_edge_[e] = partitioner->Assign(edges_.src[e], edges_.dst[e]);
    }
    division.metrics = partitioner->Metrics();
    division.owners = partitioner->ChooseOwners();
    return Status::Ok();
  }

  void ScatterAttribute(EdgeAttribute& attribute) {
    for (PartitionEdgeList& part : parts_) part.attributes.push_back(attribute.Empty());
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      EdgeAttribute& column = parts_[PartitionOf(e)].attributes.back();
      ForEachDirected(edges_.src[e], edges_.dst[e], undirected_, [&](VertexId, VertexId) {
        RHIZOME_CHECK(column.AddFrom(attribute, e).ok());
      });
    }
    attribute = EdgeAttribute();
  }

  EdgeList edges_;
  const std::uint64_t vertices_;
  const bool weighted_;
  const bool undirected_;
  const PartitionOptions& options_;
  const JobControl& control_;
  Workers workers_;
  std::vector<PartitionId> partition_of_edge_;
  std::vector<std::uint64_t> counts_;
  std::vector<PartitionEdgeList> parts_;
};

/// The sets of partitions of the vertices, in a spill file between the choice of the owners and the
/// writing of the partitions.
class SpilledSets {
 public:
  Status Store(SpillSpace& space, const ReplicaSets& sets, std::uint32_t partitions) {
    set_bytes_ = PartitionSetBytes(partitions);
    RHIZOME_ASSIGN_OR_RETURN(SpillWriter writer, SpillWriter::Create(space, 64 << 10));
    std::vector<std::uint8_t> set(set_bytes_);
    for (std::uint64_t vertex = 0; vertex < sets.vertex_count(); ++vertex) {
      CopySet(sets, vertex, set);
      RHIZOME_RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span(set))));
    }
    RHIZOME_ASSIGN_OR_RETURN(file_, writer.Finish());
    return Status::Ok();
  }

  /// Returns the sets by row, and removes the file.
  Status Load(const VertexOrder& order, std::vector<std::uint8_t>& sets) {
    sets.assign(order.size() * set_bytes_, 0);
    RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(file_, /*ahead=*/true));
    VertexId vertex = 0;
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const auto block, reader.Next());
      if (block.empty()) break;
      for (std::size_t at = 0; at + set_bytes_ <= block.size(); at += set_bytes_)
        std::memcpy(sets.data() + static_cast<std::size_t>(order.RowOf(vertex++)) * set_bytes_,
                    block.data() + at, set_bytes_);
    }
    file_.Remove();
    return Status::Ok();
  }

 private:
  SpillFile file_;
  std::size_t set_bytes_ = 0;
};

/// Edges in spill files. A streaming partitioner scans them once, or twice if it needs degrees; a
/// partitioner that needs all edges scans them three times, if its data fits in memory. Each edge
/// is then written to its partition's file.
class SpilledEdges final : public PartitionedEdges {
 public:
  SpilledEdges(GraphInput& input, const PartitionOptions& options, const JobControl& control)
      : graph_(*input.spilled),
        vertices_(input.vertex_count),
        undirected_(input.undirected),
        options_(options),
        control_(control) {}

  Columns columns() const override {
    return {
        .weighted = graph_.weighted, .attributes = graph_.attributes.size(), .in_memory = false};
  }

  Result<PartitionInput> Input() const override { return InputOf(vertices_, graph_.ends); }
  void ForgetInput() override {
    graph_.ends.file.Remove();
    graph_.columns.reset();
  }

  Result<EdgeDivision> Divide() override {
    EdgeDivision division;
    division.kind = options_.kind;
    bool whole = false;
    if (options_.partitions > 1 && !StreamingPartitioner::Supports(options_.kind)) {
      whole =
          ExpansionBytes(vertices_, graph_.ends.edges, options_.partitions) <= graph_.memory_bytes;
      if (!whole) division.kind = PartitionerKind::kHdrf;
    }
    RHIZOME_RETURN_IF_ERROR(whole ? DivideWhole(division) : DivideStream(division));
    RHIZOME_RETURN_IF_ERROR(CountAllDegrees(division));
    SumPartitions(counts_, division);
    return division;
  }

  Status Arrange(const VertexOrder& order) override {
    order_ = &order;
    return Status::Ok();
  }

  Result<std::vector<std::uint8_t>> PartitionSets() override {
    std::vector<std::uint8_t> sets;
    RHIZOME_RETURN_IF_ERROR(sets_.Load(*order_, sets));
    return sets;
  }

  Result<PartitionEdgeList> Take(std::uint32_t partition) override {
    PartitionEdgeList part;
    EdgesOfPartition& edges = part.edges;
    const std::uint64_t count = counts_[partition];
    edges.src.reserve(count);
    edges.dst.reserve(count);
    if (graph_.typed) edges.type.reserve(count);
    if (graph_.weighted) edges.weight.reserve(count);
    for (const EdgeAttribute& about : graph_.attributes) part.attributes.push_back(about.Empty());
    RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader reader, EdgeSpoolReader::Open(files_[partition]));
    EdgeList block;
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const bool more, reader.Next(block));
      if (!more) break;
      for (std::size_t e = 0; e < block.size(); ++e) {
        ForEachDirected(block.src[e], block.dst[e], undirected_, [&](VertexId src, VertexId dst) {
          edges.src.push_back(order_->RowOf(src));
          edges.dst.push_back(order_->RowOf(dst));
          if (graph_.typed) edges.type.push_back(block.type[e]);
          if (graph_.weighted) edges.weight.push_back(block.weight[e]);
          for (std::size_t a = 0; a < part.attributes.size(); ++a)
            RHIZOME_CHECK(part.attributes[a].AddFrom(block.attributes[a], e).ok());
        });
      }
    }
    files_[partition].file.Remove();
    return part;
  }

 private:
  Status DivideWhole(EdgeDivision& division) {
    const std::uint32_t partitions = options_.partitions;
    const PartitionInput input = InputOf(vertices_, graph_.ends);
    RHIZOME_ASSIGN_OR_RETURN(DividedEdges divided, DivideEdges(input, options_, control_));
    division.metrics = divided.metrics;
    division.owners = std::move(divided.owners);
    ReplicaSets replicas(vertices_, partitions);
    std::size_t edge = 0;
    RHIZOME_RETURN_IF_ERROR(Scatter([&](VertexId src, VertexId dst) {
      const PartitionId p = divided.partition_of_edge[edge++];
      replicas.Add(static_cast<std::uint64_t>(src), p);
      replicas.Add(static_cast<std::uint64_t>(dst), p);
      return p;
    }));
    division.most_vertices = MostVertices(replicas, division.owners, partitions);
    return sets_.Store(*graph_.space, replicas, partitions);
  }

  Status DivideStream(EdgeDivision& division) {
    PartitionOptions options = options_;
    // With one partition there is nothing to choose, so the kind with the lowest cost is used.
    options.kind = options.partitions > 1 ? division.kind : PartitionerKind::kRandom;
    RHIZOME_ASSIGN_OR_RETURN(auto partitioner,
                             StreamingPartitioner::Create(vertices_, graph_.ends.edges, options));
    if (partitioner->needs_degrees()) {
      RHIZOME_RETURN_IF_ERROR(ForEachBlock("count degrees", [&](const EdgeList& block) {
        for (std::size_t e = 0; e < block.size(); ++e)
          partitioner->CountDegrees(block.src[e], block.dst[e]);
        return Status::Ok();
      }));
    }
    RHIZOME_RETURN_IF_ERROR(
        Scatter([&](VertexId src, VertexId dst) { return partitioner->Assign(src, dst); }));
    division.metrics = partitioner->Metrics();
    division.owners = partitioner->ChooseOwners();
    division.most_vertices =
        MostVertices(partitioner->replicas(), division.owners, options.partitions);
    return sets_.Store(*graph_.space, partitioner->replicas(), options.partitions);
  }

  /// Counts the degrees once the memory of the partitioner is free.
  Status CountAllDegrees(EdgeDivision& division) {
    division.out_degree = Degrees(vertices_);
    division.in_degree = Degrees(vertices_);
    RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader reader, EdgeSpoolReader::Open(graph_.ends));
    EdgeList block;
    while (true) {
      RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
      RHIZOME_ASSIGN_OR_RETURN(const bool more, reader.Next(block));
      if (!more) return Status::Ok();
      for (std::size_t e = 0; e < block.size(); ++e)
        CountDegrees(block.src[e], block.dst[e], undirected_, division);
    }
  }

  template <typename Visit>
  Status ForEachBlock(std::string_view phase, Visit visit) {
    RHIZOME_ASSIGN_OR_RETURN(SpilledEdgeReader reader, SpilledEdgeReader::Open(graph_));
    EdgeList block;
    for (std::uint64_t done = 0;; done += block.size()) {
      RHIZOME_RETURN_IF_ERROR(
          control_.Report({.phase = phase, .done = done, .total = graph_.ends.edges}));
      RHIZOME_ASSIGN_OR_RETURN(const bool more, reader.Next(block));
      if (!more) return Status::Ok();
      RHIZOME_RETURN_IF_ERROR(visit(block));
    }
  }

  /// Writes each edge to the file of the partition that assign(src, dst) returns.
  template <typename Assign>
  Status Scatter(Assign assign) {
    const std::uint32_t partitions = options_.partitions;
    std::size_t edge_bytes = 18 + (graph_.typed ? 2 : 0) + (graph_.weighted ? 4 : 0);
    for (const EdgeAttribute& attribute : graph_.attributes) edge_bytes += attribute.row_bytes();
    // A block exists twice: while it is filled, and while it waits to be written.
    const std::size_t block_edges =
        SpillBlockBytes(graph_.memory_bytes / 16, partitions) / edge_bytes;
    std::vector<EdgeSpoolWriter> writers;
    for (std::uint32_t p = 0; p < partitions; ++p) {
      RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolWriter writer,
                               EdgeSpoolWriter::Create(*graph_.space, block_edges));
      writer.edges.attributes = graph_.attributes;
      writers.push_back(std::move(writer));
    }
    counts_.assign(partitions, 0);
    RHIZOME_RETURN_IF_ERROR(ForEachBlock(kPhase, [&](const EdgeList& block) -> Status {
      for (std::size_t e = 0; e < block.size(); ++e) {
        const PartitionId p = assign(block.src[e], block.dst[e]);
        counts_[p] += DirectedCount(block.src[e], block.dst[e], undirected_);
        EdgeList& out = writers[p].edges;
        out.src.push_back(block.src[e]);
        out.dst.push_back(block.dst[e]);
        if (graph_.typed) out.type.push_back(block.type[e]);
        if (graph_.weighted) out.weight.push_back(block.weight[e]);
        for (std::size_t a = 0; a < out.attributes.size(); ++a)
          RHIZOME_CHECK(out.attributes[a].AddFrom(block.attributes[a], e).ok());
        RHIZOME_RETURN_IF_ERROR(writers[p].FlushIfFull(out.size()));
      }
      return Status::Ok();
    }));
    for (EdgeSpoolWriter& writer : writers) {
      RHIZOME_ASSIGN_OR_RETURN(EdgeSpool file, writer.Finish(writer.edges.size()));
      files_.push_back(std::move(file));
    }
    return Status::Ok();
  }

  SpilledGraph& graph_;
  const std::uint64_t vertices_;
  const bool undirected_;
  const PartitionOptions& options_;
  const JobControl& control_;
  const VertexOrder* order_ = nullptr;
  SpilledSets sets_;
  std::vector<std::uint64_t> counts_;
  std::vector<EdgeSpool> files_;  // by partition
};

}  // namespace

std::uint64_t MostVertices(const ReplicaSets& sets, std::span<const PartitionId> owners,
                           std::uint32_t partitions) {
  std::vector<std::uint64_t> counts(partitions);
  for (std::uint64_t vertex = 0; vertex < sets.vertex_count(); ++vertex) {
    bool isolated = true;
    sets.ForEach(vertex, [&](PartitionId p) {
      ++counts[p];
      isolated = false;
    });
    if (isolated) ++counts[owners[static_cast<std::size_t>(vertex)]];
  }
  return *std::max_element(counts.begin(), counts.end());
}

void CopySet(const ReplicaSets& sets, std::uint64_t vertex, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::uint8_t>(sets.word(vertex, i / 8) >> (i % 8 * 8));
}

std::shared_ptr<PartitionedEdges> PartitionedEdges::Make(GraphInput& input,
                                                         const PartitionOptions& options,
                                                         const JobControl& control) {
  if (input.divided) return std::move(input.divided);
  if (input.spilled && !input.spilled->edges_in_memory)
    return std::make_shared<SpilledEdges>(input, options, control);
  return std::make_shared<MemoryEdges>(input, options, control);
}

}  // namespace internal
}  // namespace rhizome
