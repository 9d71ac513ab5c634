#include "index/homes/home_clusters.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "index/base/counter_random.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr int kRounds = 5;
constexpr std::uint32_t kSettled = 20;  // rounds end when less than one in kSettled vertices moves

/// Returns the vertices in order of degree. Degrees are compared by power of two, which is precise
/// enough; vertices of the same power are shuffled.
std::vector<std::uint32_t> OrderByDegree(const HomeGraph& graph, std::uint64_t seed) {
  std::vector<std::uint32_t> order(graph.vertex_count());
  std::iota(order.begin(), order.end(), 0);
  CounterRandom random({.seed = seed});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::bit_width(graph.degree(a)) < std::bit_width(graph.degree(b));
  });
  return order;
}

class Propagation {
 public:
  Propagation(const HomeGraph& graph, const HomeLoad& cap, std::span<const PartitionId> within,
              std::uint64_t seed)
      : graph_(graph),
        cap_(cap),
        within_(within),
        cluster_of_(graph.vertex_count()),
        weight_to_(graph.vertex_count()),
        random_({.seed = seed, .stream = 1}) {
    std::iota(cluster_of_.begin(), cluster_of_.end(), 0);
    loads_.reserve(graph.vertex_count());
    for (std::uint32_t v = 0; v < graph.vertex_count(); ++v) loads_.push_back(graph.load(v));
  }

  HomeClusters Run(std::span<const std::uint32_t> order) {
    for (int round = 0; round < kRounds; ++round) {
      std::uint32_t moved = 0;
      for (const std::uint32_t v : order) moved += Move(v) ? 1 : 0;
      if (moved < order.size() / kSettled) break;
    }
    return Numbered();
  }

 private:
  bool Move(std::uint32_t v) {
    const HomeLoad load = graph_.load(v);
    const std::uint32_t own = cluster_of_[v];
    graph_.ForEachNeighbor(v, [&](std::uint32_t u, std::uint32_t weight) {
      if (!within_.empty() && within_[u] != within_[v]) return;
      const std::uint32_t cluster = cluster_of_[u];
      if (weight_to_[cluster] == 0) touched_.push_back(cluster);
      weight_to_[cluster] += weight;
    });
    std::uint32_t best = own;
    std::uint64_t most = weight_to_[own];
    std::uint32_t ties = 1;
    for (const std::uint32_t cluster : touched_) {
      const std::uint32_t weight = weight_to_[cluster];
      if (cluster == own || weight < most || !(loads_[cluster] + load).Within(cap_)) continue;
      ties = weight > most ? 1 : ties + 1;
      if (weight == most && random_.Below(ties) != 0) continue;
      most = weight;
      best = cluster;
    }
    for (const std::uint32_t cluster : touched_) weight_to_[cluster] = 0;
    touched_.clear();
    if (best == own) return false;
    loads_[own] -= load;
    loads_[best] += load;
    cluster_of_[v] = best;
    return true;
  }

  HomeClusters Numbered() {
    constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> number(cluster_of_.size(), kNone);
    HomeClusters clusters;
    for (std::uint32_t& cluster : cluster_of_) {
      if (number[cluster] == kNone) number[cluster] = clusters.count++;
      cluster = number[cluster];
    }
    clusters.cluster_of = std::move(cluster_of_);
    return clusters;
  }

  const HomeGraph& graph_;
  const HomeLoad cap_;
  const std::span<const PartitionId> within_;
  std::vector<std::uint32_t> cluster_of_;
  std::vector<HomeLoad> loads_;           // by cluster
  std::vector<std::uint32_t> weight_to_;  // by cluster: edges from the current vertex
  std::vector<std::uint32_t> touched_;
  CounterRandom random_;
};

}  // namespace

HomeClusters ClusterVertices(const HomeGraph& graph, const HomeLoad& cap,
                             std::span<const PartitionId> within, std::uint64_t seed) {
  return Propagation(graph, cap, within, seed).Run(OrderByDegree(graph, seed));
}

}  // namespace internal
}  // namespace rhizome
