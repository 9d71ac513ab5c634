// The streaming partitioners: a class for each kind, then the base class, whose Assign chooses the
// partition of an edge, counts it, and records it at both ends. PartitionStream runs a partitioner
// over all edges of a PartitionInput.

#include "index/partition/streaming_partitioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "index/partition/owner_chooser.h"
#include "index/partition/partition_balance.h"
#include "index/partition/partitioner.h"
#include "index/partition/partitioner_table.h"
#include "rhizome/metrics.h"
#include "storage/base/check.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

namespace {

using Degrees = std::vector<std::uint32_t>;

// Saturates: degrees above 32 bits compare as equal.
void CountOne(std::uint32_t& degree) {
  degree += degree != std::numeric_limits<std::uint32_t>::max();
}

class RandomPartitioner final : public StreamingPartitioner {
 public:
  RandomPartitioner(std::uint64_t vertex_count, const PartitionOptions& options)
      : StreamingPartitioner(vertex_count, options.partitions, false), key_(Mix64(options.seed)) {}

 private:
  PartitionId Choose(std::uint64_t position, std::uint64_t, std::uint64_t) override {
    return static_cast<PartitionId>(ScaleTo(Mix64(position ^ key_), partitions()));
  }
  std::uint64_t OwnBytes() const override { return 0; }

  const std::uint64_t key_;
};

// Returns the largest divisor that is at most the square root.
std::uint32_t GridRows(std::uint32_t partitions) {
  std::uint32_t rows = 1;
  for (std::uint32_t d = 1; d * d <= partitions; ++d) {
    if (partitions % d == 0) rows = d;
  }
  return rows;
}

class Hash2dPartitioner final : public StreamingPartitioner {
 public:
  Hash2dPartitioner(std::uint64_t vertex_count, const PartitionOptions& options)
      : StreamingPartitioner(vertex_count, options.partitions, false),
        rows_(GridRows(options.partitions)),
        columns_(options.partitions / rows_),
        key_(Mix64(options.seed)) {
    RHIZOME_DCHECK(rows_ <= columns_ && rows_ * columns_ == options.partitions);
  }

 private:
  PartitionId Choose(std::uint64_t, std::uint64_t src, std::uint64_t dst) override {
    const std::uint64_t row = ScaleTo(Mix64(src ^ key_), rows_);
    const std::uint64_t column = ScaleTo(Mix64(dst ^ key_), columns_);
    return static_cast<PartitionId>(row * columns_ + column);
  }
  std::uint64_t OwnBytes() const override { return 0; }

  const std::uint32_t rows_;
  const std::uint32_t columns_;
  const std::uint64_t key_;
};

class DbhPartitioner final : public StreamingPartitioner {
 public:
  DbhPartitioner(std::uint64_t vertex_count, const PartitionOptions& options)
      : StreamingPartitioner(vertex_count, options.partitions, true),
        key_(Mix64(options.seed)),
        degrees_(static_cast<std::size_t>(vertex_count)) {}

  void CountDegrees(VertexId src, VertexId dst) override {
    CountOne(degrees_[static_cast<std::size_t>(src)]);
    if (dst != src) CountOne(degrees_[static_cast<std::size_t>(dst)]);
  }

 private:
  // Breaks ties by id, so that an edge and its reverse get the same partition.
  PartitionId Choose(std::uint64_t, std::uint64_t src, std::uint64_t dst) override {
    const bool first = degrees_[src] != degrees_[dst] ? degrees_[src] < degrees_[dst] : src < dst;
    return static_cast<PartitionId>(ScaleTo(Mix64((first ? src : dst) ^ key_), partitions()));
  }
  std::uint64_t OwnBytes() const override { return degrees_.size() * sizeof(degrees_[0]); }

  const std::uint64_t key_;
  Degrees degrees_;  // [vertices]
};

class RangePartitioner final : public StreamingPartitioner {
 public:
  RangePartitioner(std::uint64_t vertex_count, const PartitionOptions& options)
      : StreamingPartitioner(vertex_count, options.partitions, true),
        degrees_(static_cast<std::size_t>(vertex_count)) {}

  void CountDegrees(VertexId src, VertexId) override {
    CountOne(degrees_[static_cast<std::size_t>(src)]);
  }

 private:
  PartitionId Choose(std::uint64_t, std::uint64_t src, std::uint64_t) override {
    if (ends_.empty()) CutRanges();
    const auto range = std::upper_bound(ends_.begin(), ends_.end(), src);
    return static_cast<PartitionId>(range - ends_.begin());
  }
  std::uint64_t OwnBytes() const override { return degrees_.size() * sizeof(degrees_[0]); }

  // A range ends once the number of edges before its end reaches its share; the last range is
  // unbounded.
  void CutRanges() {
    std::uint64_t total = 0;
    for (const std::uint32_t degree : degrees_) total += degree;
    std::uint64_t sum = 0;
    for (std::uint64_t v = 0; v < degrees_.size(); ++v) {
      sum += degrees_[v];
      while (ends_.size() + 1 < partitions() &&
             static_cast<double>(sum) * partitions() >=
                 static_cast<double>(total) * static_cast<double>(ends_.size() + 1)) {
        ends_.push_back(v + 1);
      }
    }
    ends_.resize(partitions() - 1, degrees_.size());
    ends_.push_back(std::numeric_limits<std::uint64_t>::max());
    RHIZOME_DCHECK(ends_.size() == partitions() && std::is_sorted(ends_.begin(), ends_.end()));
    degrees_ = {};
  }

  Degrees degrees_;                  // [vertices] out-degrees, freed when the ranges are cut
  std::vector<std::uint64_t> ends_;  // [partitions], ascending
};

class HdrfPartitioner final : public StreamingPartitioner {
 public:
  HdrfPartitioner(std::uint64_t vertex_count, std::uint64_t edge_count,
                  const PartitionOptions& options)
      : StreamingPartitioner(vertex_count, options.partitions, false),
        lambda_(options.hdrf_lambda),
        cap_(EdgeCap(edge_count, options.partitions, options.max_edge_balance)),
        degrees_(static_cast<std::size_t>(vertex_count)) {}

 private:
  // Among the partitions that hold neither end, only the least loaded can win.
  PartitionId Choose(std::uint64_t, std::uint64_t src, std::uint64_t dst) override {
    const std::vector<std::uint64_t>& edges = edges_of_partition();
    CountOne(degrees_[src]);
    if (dst != src) CountOne(degrees_[dst]);
    const auto src_degree = static_cast<double>(degrees_[src]);
    const double src_share = src_degree / (src_degree + static_cast<double>(degrees_[dst]));
    // A vertex of lower degree is worth more: theta in the paper is the vertex's own share of the
    // two degrees.
    const double src_worth = 1 + (1 - src_share);
    const double dst_worth = 1 + src_share;
    const double spread = 1 + static_cast<double>(edges[most_] - edges[least_]);

    PartitionId best = least_;
    double best_score = -1;
    const auto consider = [&](PartitionId p) {
      RHIZOME_DCHECK(edges[least_] <= edges[p] && edges[p] <= edges[most_]);
      if (edges[p] >= cap_) return;
      const double score = (replicas().Has(src, p) ? src_worth : 0) +
                           (replicas().Has(dst, p) ? dst_worth : 0) +
                           lambda_ * static_cast<double>(edges[most_] - edges[p]) / spread;
      if (score < best_score || (score == best_score && edges[p] >= edges[best])) return;
      best = p;
      best_score = score;
    };
    consider(least_);
    replicas().ForEachOfEither(src, dst, consider);
    RHIZOME_DCHECK(edges[best] < cap_ || edges[least_] >= cap_);  // more edges than were announced
    CountEdge(best);
    return best;
  }

  // The base class counts the edge after this call, so the counts still lack one edge of `best`.
  void CountEdge(PartitionId best) {
    const std::vector<std::uint64_t>& edges = edges_of_partition();
    const auto after = [&](std::size_t p) { return edges[p] + (p == best); };
    if (after(best) > after(most_)) most_ = best;
    if (best != least_) return;
    std::size_t least = 0;
    for (std::size_t p = 1; p < edges.size(); ++p) {
      if (after(p) < after(least)) least = p;
    }
    least_ = static_cast<PartitionId>(least);
  }

  std::uint64_t OwnBytes() const override { return degrees_.size() * sizeof(degrees_[0]); }

  const double lambda_;
  const std::uint64_t cap_;
  Degrees degrees_;        // [vertices] degrees so far
  PartitionId most_ = 0;   // the partition with the most edges
  PartitionId least_ = 0;  // the partition with the fewest; the first of several
};

}  // namespace

std::unique_ptr<StreamingPartitioner> MakeHash2dPartitioner(std::uint64_t vertex_count,
                                                            std::uint64_t,
                                                            const PartitionOptions& options) {
  return std::make_unique<Hash2dPartitioner>(vertex_count, options);
}

std::unique_ptr<StreamingPartitioner> MakeDbhPartitioner(std::uint64_t vertex_count, std::uint64_t,
                                                         const PartitionOptions& options) {
  return std::make_unique<DbhPartitioner>(vertex_count, options);
}

std::unique_ptr<StreamingPartitioner> MakeHdrfPartitioner(std::uint64_t vertex_count,
                                                          std::uint64_t edge_count,
                                                          const PartitionOptions& options) {
  return std::make_unique<HdrfPartitioner>(vertex_count, edge_count, options);
}

std::unique_ptr<StreamingPartitioner> MakeRandomPartitioner(std::uint64_t vertex_count,
                                                            std::uint64_t,
                                                            const PartitionOptions& options) {
  return std::make_unique<RandomPartitioner>(vertex_count, options);
}

std::unique_ptr<StreamingPartitioner> MakeRangePartitioner(std::uint64_t vertex_count,
                                                           std::uint64_t,
                                                           const PartitionOptions& options) {
  return std::make_unique<RangePartitioner>(vertex_count, options);
}

namespace {

std::string NamesOfStreaming() {
  std::vector<std::string_view> names;
  for (const PartitionerEntry& entry : AllPartitioners()) {
    if (entry.stream != nullptr) names.push_back(entry.name);
  }
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

}  // namespace

bool StreamingPartitioner::Supports(PartitionerKind kind) {
  const PartitionerEntry* const known = FindPartitioner(kind);
  return known != nullptr && known->stream != nullptr;
}

std::uint64_t StreamingPartitioner::EstimateBytes(PartitionerKind kind, std::uint64_t vertex_count,
                                                  std::uint32_t partitions) {
  const PartitionerEntry* const known = FindPartitioner(kind);
  const std::uint64_t own = known == nullptr ? 0 : known->stream_vertex_bytes;
  return ReplicaSets::EstimateBytes(vertex_count, partitions) + vertex_count * (sizeof(Vote) + own);
}

StreamingPartitioner::StreamingPartitioner(std::uint64_t vertex_count, std::uint32_t partitions,
                                           bool needs_degrees)
    : needs_degrees_(needs_degrees),
      replicas_(vertex_count, partitions),
      votes_(static_cast<std::size_t>(vertex_count)),
      edges_(partitions),
      vertices_(partitions) {}

Result<std::unique_ptr<StreamingPartitioner>> StreamingPartitioner::Create(
    std::uint64_t vertex_count, std::uint64_t edge_count, const PartitionOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckPartitionOptions(options));
  if (Supports(options.kind))
    return FindPartitioner(options.kind)->stream(vertex_count, edge_count, options);
  return Fail(Status::InvalidArgument(
      fmt::format("partitioner '{}' needs all edges in memory; choose one that does not: {}",
                  PartitionerName(options.kind), NamesOfStreaming())));
}

void StreamingPartitioner::CountDegrees(VertexId, VertexId) {}

PartitionId StreamingPartitioner::Assign(VertexId src, VertexId dst) {
  const auto u = static_cast<std::uint64_t>(src);
  const auto v = static_cast<std::uint64_t>(dst);
  RHIZOME_DCHECK(u < replicas_.vertex_count() && v < replicas_.vertex_count());
  const PartitionId p = Choose(position_++, u, v);
  RHIZOME_DCHECK(p < partitions());
  ++edges_[p];
  Record(u, p);
  if (v != u) Record(v, p);
  return p;
}

void StreamingPartitioner::Record(std::uint64_t vertex, PartitionId p) {
  if (replicas_.Add(vertex, p)) ++vertices_[p];
  Vote& vote = votes_[vertex];
  if (vote.lead == 0) {
    vote = {p, 1};
  } else if (vote.leader != p) {
    --vote.lead;
  } else if (vote.lead != std::numeric_limits<std::uint16_t>::max()) {
    ++vote.lead;
  }
}

PartitionMetrics StreamingPartitioner::Metrics() const {
  return MetricsOf(replicas_, edges_, vertices_);
}

// The View of the OwnerChooser.
struct StreamingPartitioner::OwnerView {
  const ReplicaSets& replicas;
  const std::vector<Vote>& votes;

  template <typename Visit>
  void ForEachPartition(std::uint64_t vertex, Visit&& visit) const {
    replicas.ForEach(vertex, visit);
  }
  PartitionId Majority(std::uint64_t vertex) const {
    return votes[vertex].lead == 0 ? kNoOwner : votes[vertex].leader;
  }
};

std::vector<PartitionId> StreamingPartitioner::ChooseOwners() const {
  return OwnerChooser(OwnerView{replicas_, votes_}, replicas_.vertex_count(), partitions())
      .Choose();
}

// Partitions all edges of `input`: one pass counts degrees if the kind needs them, a second one
// assigns the edges.
Result<DividedEdges> PartitionStream(const PartitionInput& input, const PartitionOptions& options,
                                     const JobControl& control) {
  using Column = std::span<const VertexId>;
  const std::uint64_t edges = input.edge_count();
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<StreamingPartitioner> partitioner,
                           StreamingPartitioner::Create(input.vertex_count(), edges, options));
  if (partitioner->needs_degrees()) {
    RHIZOME_RETURN_IF_ERROR(input.ForEachBlock([&](std::uint64_t, Column src, Column dst) {
      for (std::size_t i = 0; i < src.size(); ++i) partitioner->CountDegrees(src[i], dst[i]);
      return control.CheckCancelled();
    }));
  }
  DividedEdges result;
  result.partition_of_edge.resize(static_cast<std::size_t>(edges));
  RHIZOME_RETURN_IF_ERROR(input.ForEachBlock([&](std::uint64_t first, Column src, Column dst) {
    for (std::size_t i = 0; i < src.size(); ++i)
      result.partition_of_edge[first + i] = partitioner->Assign(src[i], dst[i]);
    return control.Report({"partition", first + src.size(), edges, {}});
  }));
  return result;
}

}  // namespace internal
}  // namespace rhizome
