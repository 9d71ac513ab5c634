// Expand (1) numbers the ends of the pairs; (2) draws the negatives of both sides, type by type
// (DrawSide); (3) numbers the negatives.

#include "cache/feed/link_seeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "cache/feed/seed_numbers.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

// Distinguishes the random numbers of negatives from the numbers of hops (RandomKey::hop).
constexpr std::uint32_t kNegativeStream = std::uint32_t{1} << 31;

// For sources of negatives that do not depend on a partition.
constexpr std::uint32_t kNoPartition = 0;

VertexId EndOf(const VertexPair& pair, std::uint32_t side) {
  return side == 0 ? pair.src : pair.dst;
}

}  // namespace

Result<std::shared_ptr<LinkSeeds>> LinkSeeds::Create(std::shared_ptr<const GraphSnapshot> graph,
                                                     std::vector<VertexPair> pairs,
                                                     const LinkSeedOptions& options) {
  std::shared_ptr<LinkSeeds> made(new LinkSeeds(std::move(graph), std::move(pairs), options));
  RHIZOME_RETURN_IF_ERROR(made->Check());
  if (options.negatives > 0) RHIZOME_RETURN_IF_ERROR(made->OpenNegatives());
  return made;
}

Status LinkSeeds::CheckEnd(std::size_t pair, VertexId end) const {
  const bool exists = static_cast<std::uint64_t>(end) < graph_->vertex_count();
  if (exists && !graph_->IsDeleted(end)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("`pairs`: pair {} has the end {}, which {}", pair, end,
                  exists ? "was deleted" : "is not a vertex of the graph"));
}

Status LinkSeeds::Check() const {
  const std::size_t types = std::max<std::size_t>(graph_->edge_types().size(), 1);
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(CheckEnd(i, pairs_[i].src));
    RHIZOME_RETURN_IF_ERROR(CheckEnd(i, pairs_[i].dst));
    if (pairs_[i].type < types) continue;
    return Status::InvalidArgument(
        fmt::format("`pairs`: pair {} has edge type {}, but the graph has {} edge types", i,
                    pairs_[i].type, types));
  }
  return Status::Ok();
}

Status LinkSeeds::OpenNegatives() {
  auto mixture = ParseNegativeMixture(options_.sources);
  if (!mixture) return mixture.error().WithContext("`negative_sources`");
  for (const NegativeShare& share : *mixture) {
    if (share.source != NegativeSource::kResident) continue;
    return Status::InvalidArgument(
        "`negative_sources`: resident is for tables, whose batches are of one partition; use "
        "uniform, degree^ALPHA or in-batch");
  }
  RHIZOME_ASSIGN_OR_RETURN(vertices_, NegativeVertices::Of(graph_));
  single_.emplace(*vertices_, *std::move(mixture));
  const std::vector<std::string> names = graph_->vertex_types();
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    for (const std::uint32_t side : {0U, 1U}) {
      RHIZOME_ASSIGN_OR_RETURN(const TypeId type, TypeOf(EndOf(pairs_[i], side)));
      if (vertices_->count(type) > 1) continue;
      return Status::InvalidArgument(fmt::format(
          "`negatives`: no vertex can replace the {} of pair {}, because there is no other vertex "
          "of type '{}'; give pairs of other types, or no negatives",
          side == 0 ? "source" : "destination", i, type < names.size() ? names[type] : ""));
    }
  }
  return Status::Ok();
}

std::vector<VertexId> LinkSeeds::numbers() const {
  std::vector<VertexId> numbers(pairs_.size());
  std::iota(numbers.begin(), numbers.end(), VertexId{0});
  return numbers;
}

std::uint64_t LinkSeeds::held_bytes() const {
  if (!vertices_) return 0;
  constexpr std::uint64_t kRunBytes = 24;
  const std::uint64_t types = std::max<std::uint64_t>(graph_->vertex_types().size(), 1);
  return 8 * graph_->partition_count() * types + kRunBytes * graph_->partition_count() * types;
}

Result<TypeId> LinkSeeds::TypeOf(VertexId vertex) const {
  if (graph_->vertex_types().size() <= 1) return TypeId{0};
  return graph_->TypeOf(vertex);
}

Status LinkSeeds::Expand(SeedBatch& batch) {
  std::vector<VertexPair> pairs;
  for (const VertexId number : batch.vertices) {
    RHIZOME_DCHECK(static_cast<std::size_t>(number) < pairs_.size());
    pairs.push_back(pairs_[static_cast<std::size_t>(number)]);
  }
  batch.vertices.clear();
  batch.pairs.clear();
  batch.leave_out = !options_.keep_seed_edges;
  SeedNumbers numbers(batch.vertices);
  for (const VertexPair& pair : pairs) batch.pairs.push_back(numbers.Of(pair));
  for (const std::uint32_t side : {0U, 1U}) {
    batch.negatives[side].clear();
    if (!vertices_) continue;
    std::vector<std::pair<TypeId, std::vector<VertexId>>> drawn;
    RHIZOME_RETURN_IF_ERROR(DrawSide(side, pairs, batch.key, drawn));
    for (const auto& [type, vertices] : drawn)
      batch.negatives[side].push_back({.type = type, .vertices = numbers.Of(vertices)});
  }
  return Status::Ok();
}

/// Draws the negatives of a side by the type of the replaced end, ascending.
Status LinkSeeds::DrawSide(std::uint32_t side, std::span<const VertexPair> pairs, std::uint64_t key,
                           std::vector<std::pair<TypeId, std::vector<VertexId>>>& drawn) {
  std::map<TypeId, std::vector<VertexId>> ends;
  for (const VertexPair& pair : pairs) {
    RHIZOME_ASSIGN_OR_RETURN(const TypeId type, TypeOf(EndOf(pair, side)));
    ends[type].push_back(EndOf(pair, side));
  }
  for (const auto& [type, replaced] : ends) {
    std::vector<VertexId>& vertices = drawn.emplace_back(type, std::vector<VertexId>()).second;
    vertices.reserve(replaced.size() * options_.negatives);
    CounterRandom random({.seed = options_.seed,
                          .batch = key,
                          .vertex = 0,
                          .hop = kNegativeStream,
                          .stream = side,
                          .subgraph = type});
    const TypeId wanted =
        RHIZOME_MUTANT("negatives have the type of the first end") ? ends.begin()->first : type;
    for (const VertexId end : replaced)
      RHIZOME_RETURN_IF_ERROR(DrawFor(end, wanted, replaced, random, vertices));
  }
  return Status::Ok();
}

/// Appends the negatives that replace one end.
Status LinkSeeds::DrawFor(VertexId end, TypeId type, std::span<const VertexId> in_batch,
                          CounterRandom& random, std::vector<VertexId>& out) {
  for (std::uint64_t k = 0; k < options_.negatives; ++k) {
    const std::size_t before = out.size();
    out.push_back(end);
    for (int draw = 0; draw <= kMaxRedraws && out.back() == end; ++draw) {
      out.resize(before);
      RHIZOME_RETURN_IF_ERROR(single_->Draw(kNoPartition, type, 1, in_batch, random, out));
    }
  }
  return Status::Ok();
}

FeedPipeline::NextSeeds WithLinks(std::shared_ptr<LinkSeeds> links, FeedPipeline::NextSeeds next) {
  if (links == nullptr) return next;
  return [links = std::move(links), next = std::move(next)]() -> Result<std::optional<SeedBatch>> {
    RHIZOME_ASSIGN_OR_RETURN(std::optional<SeedBatch> batch, next());
    if (batch) RHIZOME_RETURN_IF_ERROR(links->Expand(*batch));
    return batch;
  };
}

}  // namespace internal
}  // namespace rhizome
