#include "cache/tables/negative_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

// Draws without an accepted vertex after which a source counts as empty.
constexpr std::uint64_t kMaxFruitless = std::uint64_t{1} << 24;

constexpr std::array<std::pair<NegativeSource, std::string_view>, 4> kSourceNames = {{
    {NegativeSource::kResident, "resident"},
    {NegativeSource::kUniform, "uniform"},
    {NegativeSource::kDegree, "degree"},
    {NegativeSource::kInBatch, "in-batch"},
}};

Status BadMixture(std::string_view text, std::string_view why) {
  return Status::InvalidArgument(fmt::format(
      "mixture of negatives '{}': {}; write for example resident:.5,uniform:.5 (sources: "
      "resident, uniform, degree^ALPHA, in-batch)",
      text, why));
}

std::optional<double> ParseNumber(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Parses one part; its share is negative if it is not given.
Result<NegativeShare> ParseShare(std::string_view whole, std::string_view part) {
  NegativeShare share;
  share.share = -1;
  if (const std::size_t colon = part.find(':'); colon != std::string_view::npos) {
    const auto number = ParseNumber(part.substr(colon + 1));
    if (!number || !(*number >= 0 && *number <= 1))
      return Fail(BadMixture(whole, fmt::format("'{}' has no share from 0 to 1", part)));
    share.share = *number;
    part = part.substr(0, colon);
  }
  if (const std::size_t hat = part.find('^'); hat != std::string_view::npos) {
    const auto number = ParseNumber(part.substr(hat + 1));
    if (!number || !(*number >= 0 && *number <= 1) || part.substr(0, hat) != "degree")
      return Fail(BadMixture(whole, fmt::format("'{}' is not degree^ with 0 to 1", part)));
    share.alpha = *number;
    part = part.substr(0, hat);
  }
  for (const auto& [source, name] : kSourceNames) {
    if (name != part) continue;
    share.source = source;
    return share;
  }
  return Fail(BadMixture(whole, fmt::format("'{}' is not a source", part)));
}

}  // namespace

Result<NegativeMixture> ParseNegativeMixture(std::string_view text) {
  NegativeMixture mixture;
  double given = 0;
  double without = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    RHIZOME_ASSIGN_OR_RETURN(const NegativeShare share,
                             ParseShare(text, text.substr(begin, end - begin)));
    for (const NegativeShare& other : mixture)
      if (other.source == share.source) return Fail(BadMixture(text, "a source occurs twice"));
    mixture.push_back(share);
    (share.share < 0 ? without : given) += share.share < 0 ? 1 : share.share;
    begin = end + 1;
  }
  constexpr double kTolerance = 1e-6;
  if (given > 1 + kTolerance || (without == 0 && given < 1 - kTolerance))
    return Fail(BadMixture(text, fmt::format("the shares add up to {}, not to 1", given)));
  for (NegativeShare& share : mixture)
    if (share.share < 0) share.share = std::max(0.0, 1 - given) / without;
  return mixture;
}

Result<NegativeVertices> NegativeVertices::Of(std::shared_ptr<const GraphSnapshot> graph) {
  RHIZOME_ASSIGN_OR_RETURN(GraphEdges edges, GraphEdges::Of(std::move(graph)));
  NegativeVertices vertices(std::move(edges));
  RHIZOME_RETURN_IF_ERROR(Guarded([&] { return vertices.Count(); }));
  return vertices;
}

Status NegativeVertices::Count() {
  const VertexOrder& order = graph().order();
  live_ = graph().live_vertices_by_type();
  const std::size_t types = live_.size();
  runs_.resize(order.grouped() ? types : 0);
  for (std::size_t i = 0; i < order.segments().size() && order.grouped(); ++i) {
    const OrderSegment& segment = order.segments()[i];
    const Row end = i + 1 < order.segments().size() ? order.segments()[i + 1].first_row
                                                    : static_cast<Row>(order.size());
    std::vector<Run>& runs = runs_[segment.type];
    const std::uint64_t begin = runs.empty() ? 0 : runs.back().end;
    runs.push_back({.first_row = segment.first_row,
                    .end = begin + static_cast<std::uint64_t>(end - segment.first_row),
                    .begin = begin});
  }
  const std::uint32_t partitions = graph().partition_count();
  resident_.resize(partitions * types);
  for (std::uint32_t p = 0; p < partitions; ++p) {
    const Adjacency& partition = graph().partition(p);
    for (LocalId local = 0; local < partition.vertex_count(); ++local) {
      const Row row = partition.RowOf(local);
      const TypeId type = types == 1 ? TypeId{0} : order.TypeOf(row);
      if (IsDrawable(order.VertexAt(row), type)) ++resident_[p * types + type];
    }
  }
  first_position_ = {0};
  for (const std::uint64_t count : edges_.counts())
    first_position_.push_back(first_position_.back() + count);
  return Status::Ok();
}

bool NegativeVertices::IsDrawable(VertexId vertex, TypeId type) const {
  return !graph().IsDeleted(vertex) &&
         (live_.size() == 1 || ValueOrThrow(graph().TypeOf(vertex)) == type);
}

/// A vertex of the generation's runs of the type, or a new vertex, until one may be drawn.
VertexId NegativeVertices::DrawUniform(TypeId type, CounterRandom& random) const {
  const VertexOrder& order = graph().order();
  const std::uint64_t added = graph().vertex_count() - order.size();
  const bool grouped = !runs_.empty();
  const std::uint64_t placed = !grouped              ? order.size()
                               : runs_[type].empty() ? 0
                                                     : runs_[type].back().end;
  while (true) {
    const std::uint64_t drawn = random.Below(placed + added);
    VertexId vertex = static_cast<VertexId>(order.size() + drawn - placed);
    if (drawn < placed && grouped) {
      const auto run = std::upper_bound(
          runs_[type].begin(), runs_[type].end(), drawn,
          [](std::uint64_t wanted, const Run& candidate) { return wanted < candidate.end; });
      vertex = order.VertexAt(run->first_row + static_cast<Row>(drawn - run->begin));
    } else if (drawn < placed) {
      vertex = order.VertexAt(static_cast<Row>(drawn));
    }
    if (IsDrawable(vertex, type)) return vertex;
  }
}

VertexId NegativeVertices::DrawResident(std::uint32_t group, TypeId type,
                                        CounterRandom& random) const {
  const Adjacency& partition = graph().partition(group);
  while (true) {
    const auto local = static_cast<LocalId>(random.Below(partition.vertex_count()));
    const VertexId vertex = graph().order().VertexAt(partition.RowOf(local));
    if (IsDrawable(vertex, type)) return vertex;
  }
}

/// A uniform end of a uniform edge is drawn in proportion to its degree; it is accepted with
/// probability degree^(alpha - 1).
Result<bool> NegativeVertices::IsAccepted(VertexId vertex, double alpha, TypeId type,
                                          CounterRandom& random) const {
  if (!IsDrawable(vertex, type)) return false;
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree, graph().Degree(vertex, Direction::kBoth));
  return random.Unit() < std::pow(static_cast<double>(degree), alpha - 1);
}

Status NegativeVertices::DrawByDegree(double alpha, TypeId type, std::uint64_t count,
                                      CounterRandom& random, std::vector<VertexId>& out) {
  std::vector<std::uint64_t> position(1);
  std::vector<VertexPair> edge;
  for (std::uint64_t fruitless = 0; count > 0; ++fruitless) {
    if (first_position_.back() == 0 || fruitless == kMaxFruitless) {
      return Status::InvalidArgument(
          "negatives by degree: the graph has hardly any edge of a vertex of the type");
    }
    const std::uint64_t drawn = random.Below(first_position_.back());
    const auto after = std::upper_bound(first_position_.begin(), first_position_.end(), drawn);
    const auto group = static_cast<std::uint32_t>(after - first_position_.begin() - 1);
    position[0] = drawn - first_position_[group];
    RHIZOME_RETURN_IF_ERROR(edges_.Read(group, position, edge));
    if (edge.empty()) continue;  // the delta deleted it
    const VertexId vertex = random.Below(2) == 0 ? edge[0].src : edge[0].dst;
    RHIZOME_ASSIGN_OR_RETURN(const bool accepted, IsAccepted(vertex, alpha, type, random));
    if (!accepted) continue;
    out.push_back(vertex);
    --count;
    fruitless = 0;
  }
  return Status::Ok();
}

Status NegativeVertices::Draw(const NegativeShare& share, std::uint32_t group, TypeId type,
                              std::uint64_t count, CounterRandom& random,
                              std::vector<VertexId>& out) {
  RHIZOME_CHECK(share.source != NegativeSource::kInBatch);
  if (type >= live_.size() || live_[type] == 0)
    return Status::InvalidArgument(
        fmt::format("negatives: the graph has no vertex of type {}", type));
  if (share.source == NegativeSource::kDegree)
    return Guarded([&] { return DrawByDegree(share.alpha, type, count, random, out); });
  const std::uint32_t partitions = graph().partition_count();
  const bool resident = share.source == NegativeSource::kResident && partitions > 1 &&
                        group < partitions && resident_[group * live_.size() + type] > 0;
  return Guarded([&] {
    for (std::uint64_t i = 0; i < count; ++i)
      out.push_back(resident ? DrawResident(group, type, random) : DrawUniform(type, random));
    return Status::Ok();
  });
}

}  // namespace internal
}  // namespace rhizome
