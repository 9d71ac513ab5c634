// Checks claims by multisets. Add compares the two directions of a partition (CompareSides), and
// adds the partition's degrees and sets to the rows and its claims about boundary vertices to a sum
// (AddRange). ClaimsHold compares that sum with the sum computed from the facts.

#include "index/check/verify_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "index/base/parallel.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {
namespace {

// Number of vertices, or rows, of one task.
constexpr std::uint64_t kGrain = 1 << 14;

/// Returns the sum of body(begin, end) over ranges that cover [0, count), on all threads.
template <typename Body>
std::uint64_t ParallelSum(std::uint64_t count, const Body& body) {
  std::atomic<std::uint64_t> sum = 0;
  ParallelFor((count + kGrain - 1) / kGrain, [&](std::size_t task) {
    const std::uint64_t begin = task * kGrain;
    sum.fetch_add(body(begin, std::min(count, begin + kGrain)), std::memory_order_relaxed);
  });
  return sum;
}

/// Returns the sum of a mix of each entry of one vertex's list; `pair(neighbour)` packs both ends
/// of the edge into one number.
template <typename Pair>
std::uint64_t MixList(const Adjacency& adjacency, LocalId local, Direction direction,
                      std::vector<LocalId>& scratch, bool typed, const Pair& pair) {
  const auto list = adjacency.ReadList(local, direction, scratch);
  std::uint64_t sum = 0;
  if (!typed && !adjacency.weighted()) {
    for (const LocalId neighbor : list) sum += Mix64(pair(neighbor));
    return sum;
  }
  const std::uint64_t first = adjacency.Entries(local, direction).first;
  for (std::size_t i = 0; i < list.size();) {
    const TypeId type = adjacency.TypeOfEntry(local, direction, i);
    const auto run = adjacency.EntriesOfType(local, direction, type);
    for (const std::size_t end = run.first + run.count - first; i < end; ++i) {
      const auto weight = std::bit_cast<std::uint32_t>(adjacency.Weight(direction, first + i));
      sum += Mix64(Mix64(pair(list[i])) ^ (std::uint64_t{type} << 32 | weight));
    }
  }
  return sum;
}

}  // namespace

TopologyVerifier::TopologyVerifier(const GenerationInfo& info)
    : info_(info),
      keeps_out_(info.symmetric || info.directions != Direction::kIn),
      keeps_in_(!info.symmetric && info.directions != Direction::kOut),
      set_bytes_((info.partitions + 7) / 8),
      edges_(info.partitions),
      sides_agree_(info.partitions, 1),
      out_degree_(keeps_out_ ? info.vertices : 0),
      in_degree_(keeps_in_ ? info.vertices : 0),
      sets_(info.vertices * set_bytes_) {}

bool TopologyVerifier::CompareSides(const Adjacency& adjacency) const {
  if (!info_.symmetric && !(keeps_out_ && keeps_in_)) return true;
  const bool typed = info_.edge_types.size() > 1;
  const std::uint64_t difference =
      ParallelSum(adjacency.vertex_count(), [&](std::uint64_t begin, std::uint64_t end) {
        std::vector<LocalId> scratch;
        std::uint64_t sum = 0;
        for (std::uint64_t v = begin; v < end; ++v) {
          const auto local = static_cast<LocalId>(v);
          sum += MixList(adjacency, local, Direction::kOut, scratch, typed,
                         [&](LocalId to) { return v << 32 | to; });
          sum -= MixList(adjacency, local, Direction::kIn, scratch, typed,
                         [&](LocalId from) { return std::uint64_t{from} << 32 | v; });
        }
        return sum;
      });
  return difference == 0;
}

void TopologyVerifier::Add(std::uint32_t partition, const Adjacency& adjacency) {
  edges_[partition] = adjacency.edge_count();
  sides_agree_[partition] = CompareSides(adjacency) ? 1 : 0;
  std::vector<std::uint8_t> here(set_bytes_, 0);
  here[partition / 8] = static_cast<std::uint8_t>(1U << (partition % 8));
  claims_ += ParallelSum(adjacency.vertex_count(), [&](std::uint64_t begin, std::uint64_t end) {
    return AddRange(adjacency, here, begin, end);
  });
}

// Adds the partition's contents to the rows, and returns the sum of its claims.
std::uint64_t TopologyVerifier::AddRange(const Adjacency& adjacency,
                                         std::span<const std::uint8_t> here, std::uint64_t begin,
                                         std::uint64_t end) {
  const auto add = [](std::uint64_t& to, std::uint64_t count) {
    if (count > 0) std::atomic_ref(to).fetch_add(count, std::memory_order_relaxed);
  };
  std::uint64_t claims = 0;
  for (std::uint64_t v = begin; v < end; ++v) {
    const auto local = static_cast<LocalId>(v);
    const auto row = static_cast<std::size_t>(adjacency.RowOf(local));
    for (std::size_t byte = 0; byte < set_bytes_; ++byte)
      if (here[byte] != 0)
        std::atomic_ref(sets_[row * set_bytes_ + byte])
            .fetch_or(here[byte], std::memory_order_relaxed);
    if (keeps_out_) add(out_degree_[row], adjacency.Entries(local, Direction::kOut).count);
    if (keeps_in_) add(in_degree_[row], adjacency.Entries(local, Direction::kIn).count);
    claims += MixFacts(row, Claimed(adjacency, local, here));
  }
  return claims;
}

TopologyVerifier::Facts TopologyVerifier::Claimed(const Adjacency& adjacency, LocalId local,
                                                  std::span<const std::uint8_t> here) const {
  const auto set = adjacency.PartitionSet(local);
  return {.set = set.empty() ? here : set,  // empty: the vertex is interior
          .out_degree = keeps_out_ ? adjacency.GlobalDegree(local, Direction::kOut) : 0,
          .in_degree = keeps_in_ ? adjacency.GlobalDegree(local, Direction::kIn) : 0};
}

TopologyVerifier::Facts TopologyVerifier::Real(std::size_t row) const {
  return {.set = std::span(sets_).subspan(row * set_bytes_, set_bytes_),
          .out_degree = keeps_out_ ? out_degree_[row] : 0,
          .in_degree = keeps_in_ ? in_degree_[row] : 0};
}

std::uint64_t TopologyVerifier::MixFacts(std::uint64_t row, const Facts& facts) {
  std::uint64_t mixed = Mix64(row);
  for (std::size_t at = 0; at < facts.set.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, facts.set.data() + at, std::min(sizeof(word), facts.set.size() - at));
    mixed = Mix64(mixed ^ word);
  }
  return Mix64(Mix64(mixed ^ facts.out_degree) ^ facts.in_degree);
}

// If every partition that holds a row makes the same, true claim about it, then the multiset of
// claims has the facts of each row once for each partition in its set.
bool TopologyVerifier::ClaimsHold() const {
  return claims_ == ParallelSum(info_.vertices, [&](std::uint64_t begin, std::uint64_t end) {
           std::uint64_t facts = 0;
           for (std::uint64_t row = begin; row < end; ++row) {
             const Facts real = Real(row);
             std::uint64_t holders = 0;
             for (const std::uint8_t byte : real.set)
               holders += static_cast<std::uint64_t>(std::popcount(byte));
             facts += holders * MixFacts(row, real);
           }
           return facts;
         });
}

std::string TopologyVerifier::WrongClaim(const Adjacency& adjacency) const {
  for (std::uint64_t v = 0; v < adjacency.vertex_count(); ++v) {
    const auto local = static_cast<LocalId>(v);
    const auto row = static_cast<std::size_t>(adjacency.RowOf(local));
    const Facts real = Real(row);
    int holders = 0;
    for (const std::uint8_t byte : real.set) holders += std::popcount(byte);
    const Facts claimed = Claimed(adjacency, local, real.set);
    const char* wrong = nullptr;
    if (adjacency.interior(local) ? holders != 1 : !std::ranges::equal(claimed.set, real.set))
      wrong = "the partition set";
    else if (claimed.out_degree != real.out_degree)
      wrong = "the out-degree";
    else if (claimed.in_degree != real.in_degree)
      wrong = "the in-degree";
    if (wrong != nullptr)
      return fmt::format("{} of row {} contradicts the other partitions", wrong, row);
  }
  return {};
}

}  // namespace internal
}  // namespace rhizome
