#include "index/generation/reorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "index/base/vertex_column.h"
#include "index/topology/degrees.h"
#include "storage/base/exceptions.h"
#include "storage/base/mix.h"
#include "storage/base/name_table.h"

namespace rhizome {

namespace {

constexpr NameTable<OrderKind, 5> kNames = {{
    {OrderKind::kPds, "pds"},
    {OrderKind::kPs, "ps"},
    {OrderKind::kNatural, "natural"},
    {OrderKind::kDegree, "degree"},
    {OrderKind::kRandom, "random"},
}};

// Three digits of this width cover a 32-bit key, and the counters of a digit take 16 KiB.
constexpr unsigned kDigitBits = 11;
constexpr std::size_t kBuckets = std::size_t{1} << kDigitBits;

/// A permutation of the vertices, sorted by an LSD radix sort: one stable sort after another, the
/// least significant key first. It starts in vertex-id order, which breaks all ties. O(vertices)
/// time for each digit of the largest key; twice the bytes of `Vertex` a vertex.
template <typename Vertex>
class RadixOrder {
 public:
  explicit RadixOrder(std::size_t size) : order_(size), other_(size) {
    std::iota(order_.begin(), order_.end(), Vertex{0});
  }

  /// Sorts by key(vertex), ascending. `largest` is the largest key.
  template <typename Key>
  void SortBy(std::uint64_t largest, Key&& key) {
    const auto bits = static_cast<unsigned>(std::bit_width(largest));
    for (unsigned shift = 0; shift < bits; shift += kDigitBits) {
      SortByDigit([&](Vertex v) {
        return static_cast<std::size_t>(key(std::size_t{v}) >> shift) % kBuckets;
      });
    }
  }

  VertexColumn Take() { return VertexColumn(std::move(order_)); }

 private:
  template <typename Digit>
  void SortByDigit(Digit&& digit) {
    std::array<std::size_t, kBuckets + 1> begin{};
    for (const Vertex v : order_) ++begin[digit(v) + 1];
    for (std::size_t b = 1; b <= kBuckets; ++b) begin[b] += begin[b - 1];
    for (const Vertex v : order_) other_[begin[digit(v)]++] = v;
    order_.swap(other_);
  }

  std::vector<Vertex> order_;
  std::vector<Vertex> other_;
};

template <typename T>
std::uint64_t Largest(std::span<const T> values) {
  return values.empty()
             ? 0
             : static_cast<std::uint64_t>(*std::max_element(values.begin(), values.end()));
}

template <typename Vertex>
void SortByDegree(const ReorderInput& input, RadixOrder<Vertex>& order) {
  std::uint64_t largest = 0;
  for (std::uint64_t v = 0; v < input.degree->size(); ++v)
    largest = std::max(largest, (*input.degree)[v]);
  order.SortBy(largest, [&](std::size_t v) { return largest - (*input.degree)[v]; });
}

template <typename Vertex>
void SortByOwnerAndType(const ReorderInput& input, RadixOrder<Vertex>& order) {
  order.SortBy(Largest(input.type), [&](std::size_t v) -> std::uint64_t { return input.type[v]; });
  order.SortBy(Largest(input.owner),
               [&](std::size_t v) -> std::uint64_t { return input.owner[v]; });
}

// A Fisher-Yates shuffle that hashes a counter instead of keeping the state of a generator.
template <typename Vertex>
VertexColumn Shuffled(std::size_t size, std::uint64_t seed) {
  std::vector<Vertex> order(size);
  std::iota(order.begin(), order.end(), Vertex{0});
  const std::uint64_t key = Mix64(seed);
  for (std::size_t i = size; i > 1; --i) {
    std::swap(order[i - 1], order[ScaleTo(Mix64(key ^ i), i)]);
  }
  return VertexColumn(std::move(order));
}

template <typename Vertex>
VertexColumn Order(const ReorderInput& input, OrderKind kind, std::uint64_t seed) {
  if (kind == OrderKind::kRandom) return Shuffled<Vertex>(input.owner.size(), seed);
  RadixOrder<Vertex> order(input.owner.size());
  if (kind == OrderKind::kPds || kind == OrderKind::kDegree) SortByDegree(input, order);
  if (GroupsByOwner(kind)) SortByOwnerAndType(input, order);
  return order.Take();
}

}  // namespace

std::string_view OrderName(OrderKind kind) { return NameOf(kNames, kind); }

std::optional<OrderKind> ParseOrder(std::string_view name) { return KindOf(kNames, name); }

bool GroupsByOwner(OrderKind kind) { return kind == OrderKind::kPds || kind == OrderKind::kPs; }

Result<VertexColumn> OrderVertices(const ReorderInput& input, OrderKind kind,
                                   std::uint64_t seed) try {
  const std::size_t vertices = input.owner.size();
  if (input.degree->size() != vertices || (!input.type.empty() && input.type.size() != vertices))
    return Fail(Status::InvalidArgument(
        fmt::format("vertices are ordered by {} owners, {} types (or none) and {} degrees, but "
                    "each needs one entry for each vertex",
                    vertices, input.type.size(), input.degree->size())));
  return VertexColumn::FitsNarrow(vertices) ? Order<std::uint32_t>(input, kind, seed)
                                            : Order<std::uint64_t>(input, kind, seed);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
