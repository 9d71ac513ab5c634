#include "cache/kernels/aggregate.h"

#include <algorithm>

#include "cache/kernels/simd.h"

namespace rhizome {
inline namespace internal {
namespace {

const float* DataOrNull(std::span<const float> values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

SumArgs MakeSumArgs(const CsrView& csr, const AggregateScales& scales, const RowsView& x,
                    const AggregateStart& start, float* out, std::size_t out_stride) {
  SumArgs args;
  args.type = x.type;
  args.x = x.x;
  args.x_stride = x.stride;
  args.dim = x.dim;
  args.begins = csr.offsets.data();
  args.ends = csr.offsets.data() + 1;
  args.index = csr.neighbors.data();
  args.index_end = static_cast<std::uint32_t>(csr.neighbors.size());
  args.source_scale = DataOrNull(scales.source);
  args.edge_weight = DataOrNull(scales.edge);
  args.target_scale = DataOrNull(scales.target);
  args.initial = start.rows;
  args.initial_stride = start.stride;
  args.initial_rows = start.count;
  args.initial_scale = DataOrNull(start.scale);
  args.out = out;
  args.out_stride = out_stride;
  return args;
}

void AggregateRows(const CsrView& csr, const AggregateScales& scales, const RowsView& x,
                   std::size_t begin, std::size_t end, float* out) {
  Kernels().sum(MakeSumArgs(csr, scales, x, {}, out, x.dim), begin, end);
}

void AccumulateRows(std::size_t targets, const std::uint32_t* begins, const std::uint32_t* ends,
                    const std::uint32_t* index, const float* scale, const float* x, std::size_t dim,
                    float* acc) {
  SumArgs args;
  args.x = x;
  args.x_stride = dim;
  args.dim = dim;
  args.begins = begins;
  args.ends = ends;
  args.index = index;
  args.source_scale = scale;
  args.keep = true;
  args.out = acc;
  args.out_stride = dim;
  Kernels().sum(args, 0, targets);
}

GroupedCsr GroupByRelation(const CsrView& csr, std::span<const std::uint16_t> relations,
                           std::span<const float> weights) {
  struct Edge {
    std::uint64_t key;  // relation and neighbour
    std::uint32_t position;
  };
  constexpr std::uint32_t kNeighborBits = 32;
  GroupedCsr grouped;
  grouped.group_begin.reserve(csr.offsets.size());
  grouped.lists.neighbors.reserve(csr.neighbors.size());
  grouped.weights.reserve(weights.size());
  std::vector<Edge> edges;
  for (std::size_t t = 0; t < csr.targets(); ++t) {
    edges.clear();
    for (std::uint32_t e = csr.offsets[t]; e < csr.offsets[t + 1]; ++e) {
      const std::uint64_t relation = relations.empty() ? 0 : relations[e];
      edges.push_back({relation << kNeighborBits | csr.neighbors[e], e});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return a.key != b.key ? a.key < b.key : a.position < b.position;
    });
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const auto relation = static_cast<std::uint16_t>(edges[i].key >> kNeighborBits);
      if (i > 0 && relation != grouped.relation.back())
        grouped.lists.offsets.push_back(static_cast<std::uint32_t>(grouped.lists.neighbors.size()));
      if (i == 0 || relation != grouped.relation.back()) grouped.relation.push_back(relation);
      grouped.lists.neighbors.push_back(static_cast<std::uint32_t>(edges[i].key));
      if (!weights.empty()) grouped.weights.push_back(weights[edges[i].position]);
    }
    if (!edges.empty())
      grouped.lists.offsets.push_back(static_cast<std::uint32_t>(grouped.lists.neighbors.size()));
    grouped.group_begin.push_back(static_cast<std::uint32_t>(grouped.relation.size()));
  }
  return grouped;
}

TransposedCsr Turn(const CsrView& csr, std::size_t source_count) {
  TransposedCsr turned;
  std::vector<std::uint32_t>& offsets = turned.lists.offsets;
  offsets.assign(source_count + 1, 0);
  for (const std::uint32_t source : csr.neighbors) ++offsets[source + 1];
  for (std::size_t j = 0; j < source_count; ++j) offsets[j + 1] += offsets[j];
  turned.lists.neighbors.resize(csr.neighbors.size());
  turned.edges.resize(csr.neighbors.size());
  std::vector<std::uint32_t> next(offsets.begin(), offsets.end() - 1);
  for (std::size_t t = 0; t < csr.targets(); ++t) {
    for (std::uint32_t e = csr.offsets[t]; e < csr.offsets[t + 1]; ++e) {
      const std::uint32_t at = next[csr.neighbors[e]]++;
      turned.lists.neighbors[at] = static_cast<std::uint32_t>(t);
      turned.edges[at] = e;
    }
  }
  return turned;
}

std::vector<std::size_t> SplitByEdges(const CsrView& csr, std::size_t pieces) {
  // Even a target without edges costs time, because its row is written.
  const auto work = [&](std::size_t t) { return std::uint64_t{csr.offsets[t]} + t; };
  const std::uint64_t all = work(csr.targets());
  std::vector<std::size_t> cuts = {0};
  for (std::size_t piece = 1; piece < pieces; ++piece) {
    const std::uint64_t goal = all * piece / pieces;
    std::size_t low = cuts.back();
    std::size_t high = csr.targets();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (work(middle) < goal) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    cuts.push_back(low);
  }
  cuts.push_back(csr.targets());
  return cuts;
}

}  // namespace internal
}  // namespace rhizome
