#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/graph_lookup.h"
#include "rhizome/sampler.h"
#include "sampler_shapes.h"

namespace rhizome::fuzzing {

/// A part of a vertex's neighbour list that the sampler draws from separately.
struct Request {
  std::int64_t fanout = 0;
  std::int64_t type = -1;  ///< an edge type; -1: all
};

inline std::vector<Request> RequestsOf(const SamplerOptions& options, std::size_t hop) {
  if (options.typed_fanouts.empty())
    return {{options.fanouts[hop],
             options.meta_path.empty() ? std::int64_t{-1} : std::int64_t{options.meta_path[hop]}}};
  std::vector<Request> requests;
  for (const std::int64_t fanout : options.typed_fanouts[hop])
    requests.push_back({fanout, static_cast<std::int64_t>(requests.size())});
  return requests;
}

/// Checks a sample against the neighbour lists of the shape, list by list.
class Checker {
 public:
  Checker(const Shape& shape, const SamplerOptions& options, const SampledSubgraph& sample,
          std::span<const std::int64_t> seed_times)
      : shape_(shape), options_(options), sample_(sample), seed_times_(seed_times) {}

  void Run(std::span<const VertexId> seeds) {
    hops_ = std::max(options_.fanouts.size(), options_.typed_fanouts.size());
    RHIZOME_CHECK(sample_.hop_offsets.size() == hops_ + 2 && sample_.hop_lists.size() == hops_ + 1);
    RHIZOME_CHECK(sample_.hop_offsets.back() == sample_.rows.size());
    RHIZOME_CHECK(std::is_sorted(sample_.hop_offsets.begin(), sample_.hop_offsets.end()));
    RHIZOME_CHECK(std::is_sorted(sample_.offsets.begin(), sample_.offsets.end()));
    RHIZOME_CHECK(sample_.offsets.back() == sample_.neighbors.size());
    RHIZOME_CHECK(sample_.edges.size() == (options_.edge_ids ? sample_.neighbors.size() : 0));
    RHIZOME_CHECK(sample_.seed_of.size() == (options_.disjoint ? sample_.rows.size() : 0));
    CheckSeeds(seeds);
    found_.assign(sample_.rows.size(), false);
    for (std::size_t hop = 0; hop < hops_; ++hop) CheckHop(hop);
    // Every vertex other than a seed must have been drawn.
    for (std::size_t v = sample_.hop_offsets[1]; v < found_.size(); ++v) RHIZOME_CHECK(found_[v]);
  }

 private:
  VertexId VertexOf(std::uint64_t local) const {
    return *shape_.graph->VertexAt(sample_.rows[local]);
  }

  void CheckSeeds(std::span<const VertexId> seeds) const {
    RHIZOME_CHECK(sample_.seed_locals.size() == seeds.size());
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      const auto local = static_cast<std::uint64_t>(sample_.seed_locals[i]);
      RHIZOME_CHECK(local < sample_.hop_offsets[1] && VertexOf(local) == seeds[i]);
      RHIZOME_CHECK(!options_.disjoint || (local == i && sample_.seed_of[local] == i));
    }
    std::set<std::pair<std::uint32_t, Row>> seen;
    for (std::size_t v = 0; v < sample_.rows.size(); ++v) {
      const std::uint32_t whose = options_.disjoint ? sample_.seed_of[v] : 0;
      RHIZOME_CHECK(seen.emplace(whose, sample_.rows[v]).second);
    }
  }

  void CheckHop(std::size_t hop) {
    const bool again = options_.frontier == Frontier::kAgain;
    const std::uint64_t first = again ? 0 : sample_.hop_offsets[hop];
    const std::uint64_t end = sample_.hop_offsets[hop + 1];
    RHIZOME_CHECK(again ? sample_.hop_lists[hop + 1] - sample_.hop_lists[hop] == end
                        : sample_.offsets.size() == sample_.rows.size() + 1);
    for (std::uint64_t v = first; v < end; ++v)
      CheckList(hop, v, again ? sample_.hop_lists[hop] + v : v);
  }

  void CheckList(std::size_t hop, std::uint64_t local, std::uint64_t list) {
    std::map<TypeId, std::vector<Entry>> drawn;  // by type; one key if types do not matter
    const bool by_type = !options_.typed_fanouts.empty();
    std::set<std::pair<PartitionId, std::uint64_t>> edges;
    for (std::uint64_t e = sample_.offsets[list]; e < sample_.offsets[list + 1]; ++e) {
      const auto other = static_cast<std::uint64_t>(sample_.neighbors[e]);
      RHIZOME_CHECK(other < sample_.hop_offsets[hop + 2]);
      found_[other] = true;
      RHIZOME_CHECK(!options_.disjoint || sample_.seed_of[other] == sample_.seed_of[local]);
      Entry entry{.vertex = VertexOf(other),
                  .type = sample_.types.empty() ? TypeId{0} : sample_.types[e],
                  .weight = sample_.weights.empty() ? 1.0F : sample_.weights[e]};
      if (options_.edge_ids) {
        const EdgeId edge = sample_.edges[e];
        entry.time = edge.partition < shape_.graph->partition_count()
                         ? shape_.times->OfPartition(edge.partition)[edge.position]
                         : TimeOfWritten(edge);
        RHIZOME_CHECK(edges.emplace(edge.partition, edge.position).second || options_.replace);
      }
      drawn[by_type ? entry.type : TypeId{0}].push_back(entry);
    }
    for (const Request& request : RequestsOf(options_, hop)) {
      const auto found = drawn.extract(by_type ? static_cast<TypeId>(request.type) : TypeId{0});
      CheckDraws(request, Eligible(local, request.type),
                 found ? std::move(found.mapped()) : std::vector<Entry>());
    }
    RHIZOME_CHECK(drawn.empty());
  }

  /// Returns the time of an edge that was written after the generation was built.
  std::int64_t TimeOfWritten(const EdgeId& edge) const {
    const std::int64_t number = EdgeNumbering(*shape_.graph).Of(edge);
    std::int64_t time = 0;
    RHIZOME_CHECK(ReadEdgeRows(*shape_.graph, "time", std::span(&number, 1),
                               std::as_writable_bytes(std::span(&time, 1)))
                      .ok());
    return time;
  }

  std::vector<Entry> Eligible(std::uint64_t local, std::int64_t type) const {
    std::vector<Entry> eligible;
    const auto& lists = shape_.lists[options_.direction == Direction::kOut ? 1 : 0];
    for (Entry entry : lists[static_cast<std::size_t>(VertexOf(local))]) {
      if (type >= 0 && entry.type != type) continue;
      if (options_.weighted && entry.weight == 0) continue;
      if (options_.times != nullptr && entry.time > seed_times_[sample_.seed_of[local]]) continue;
      eligible.push_back(entry);
    }
    return eligible;
  }

  void CheckDraws(const Request& request, std::vector<Entry> eligible, std::vector<Entry> drawn) {
    const bool all = request.fanout == kAllNeighbors;
    const bool replace = options_.replace && !all;
    const auto fanout = static_cast<std::uint64_t>(request.fanout);
    const std::uint64_t expected = all       ? eligible.size()
                                   : replace ? (eligible.empty() ? 0 : fanout)
                                             : std::min<std::uint64_t>(fanout, eligible.size());
    RHIZOME_CHECK(drawn.size() == expected);
    if (options_.temporal_pick == TemporalPick::kLast && options_.edge_ids)
      CheckLatest(eligible, drawn);
    if (!options_.edge_ids)
      for (Entry& entry : eligible) entry.time = 0;
    std::sort(eligible.begin(), eligible.end());
    std::sort(drawn.begin(), drawn.end());
    if (!replace) {
      RHIZOME_CHECK(std::includes(eligible.begin(), eligible.end(), drawn.begin(), drawn.end()));
      return;
    }
    for (const Entry& entry : drawn)
      RHIZOME_CHECK(std::binary_search(eligible.begin(), eligible.end(), entry));
  }

  static void CheckLatest(const std::vector<Entry>& eligible, const std::vector<Entry>& drawn) {
    const auto latest = [](const std::vector<Entry>& entries) {
      std::vector<std::int64_t> times;
      for (const Entry& entry : entries) times.push_back(entry.time);
      std::sort(times.rbegin(), times.rend());
      return times;
    };
    auto best = latest(eligible);
    best.resize(drawn.size());
    RHIZOME_CHECK(latest(drawn) == best);
  }

  const Shape& shape_;
  const SamplerOptions& options_;
  const SampledSubgraph& sample_;
  const std::span<const std::int64_t> seed_times_;
  std::size_t hops_ = 0;
  std::vector<bool> found_;
};

}  // namespace rhizome::fuzzing
