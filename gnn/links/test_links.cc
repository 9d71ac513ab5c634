#include "gnn/links/test_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "gnn/links/known_edges.h"
#include "gnn/links/rank_links.h"
#include "index/links/link_file.h"
#include "storage/base/bytes_left.h"

namespace rhizome {
inline namespace internal {
namespace {

PairSource SourceOf(const std::vector<VertexPair>& edges) {
  return [&edges, given = std::size_t{0}](std::span<VertexPair> out) mutable {
    const std::size_t count = std::min(out.size(), edges.size() - given);
    std::copy_n(edges.begin() + static_cast<std::ptrdiff_t>(given), count, out.begin());
    given += count;
    return Result<std::size_t>(count);
  };
}

/// Returns the options of an evaluation with the rest of the training's memory. Test edges were
/// checked before the training; rows of vertices that were added since are zeros.
LinkEvaluationOptions EvaluationOptions(const TrainOptions& options, std::uint64_t held_bytes) {
  // Stacks and heaps of threads, and buffers of readers.
  constexpr std::uint64_t kUncounted = std::uint64_t{12} << 20;
  // A training that fits into its memory must not fail at the end: it has freed more than this.
  constexpr std::uint64_t kLeastBytes = std::uint64_t{8} << 20;
  LinkEvaluationOptions evaluation{.array = options.link.out_array,
                                   .decoder = options.job.out,
                                   .allow_leaked = true,
                                   .allow_stale = true,
                                   .threads = options.resources.threads};
  if (const std::uint64_t limit = options.resources.memory_bytes; limit != 0)
    evaluation.memory_bytes = std::max(kLeastBytes, BytesLeft(limit, held_bytes + kUncounted));
  return evaluation;
}

}  // namespace

Status CheckTestOptions(const TrainOptions& options) {
  if (options.link.test_edges.empty()) {
    if (!options.link.allow_leaked) return Status::Ok();
    return Status::InvalidArgument("`allow_leaked` has no effect without `test_edges`; omit it");
  }
  if (!options.job.out.empty()) return Status::Ok();
  return Status::InvalidArgument(
      "`test_edges` needs `out`: the file of the decoder that ranks the edges");
}

Result<TestLinks> TestLinks::Read(const GraphSnapshot& graph, const LinkTrainOptions& link) {
  TestLinks links;
  if (link.test_edges.empty()) return links;
  RHIZOME_ASSIGN_OR_RETURN(links.test_, ReadLinks(graph, link.test_edges));
  if (links.test_.empty())
    return Fail(Status::InvalidArgument(
        fmt::format("`test_edges`: {} has no edges", link.test_edges.string())));
  if (!link.valid.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(links.valid_, ReadLinks(graph, link.valid));
  }
  if (!link.allow_leaked) RHIZOME_RETURN_IF_ERROR(links.CheckLeaks(graph));
  return links;
}

Status TestLinks::CheckLeaks(const GraphSnapshot& graph) const {
  RHIZOME_ASSIGN_OR_RETURN(const KnownEdges known, KnownEdges::Of(graph));
  std::uint64_t leaked = 0;
  const VertexPair* first = nullptr;
  for (const VertexPair& edge : test_) {
    RHIZOME_ASSIGN_OR_RETURN(const bool in_store, known.InStore(edge));
    if (!in_store) continue;
    ++leaked;
    if (first == nullptr) first = &edge;
  }
  if (leaked == 0) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("the store has {} of the {} edges of `test_edges`, the first from {} to {}, so "
                  "the model would "
                  "learn them; leave them out of the store, or give `allow_leaked`",
                  leaked, test_.size(), graph.NameOf(first->src), graph.NameOf(first->dst)));
}

LinkEvaluationEdges TestLinks::Edges() const {
  LinkEvaluationEdges edges;
  edges.test = SourceOf(test_);
  if (!valid_.empty()) edges.known.push_back(SourceOf(valid_));
  return edges;
}

Result<LinkEvaluation> TestLinks::Rank(const TrainOptions& options, std::uint64_t held_bytes,
                                       const JobControl& control) const {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                           Store::Open(FileSystem::Posix(), options.store, Store::Mode::kRead, {}));
  // Only the lists of test edges are read.
  RHIZOME_ASSIGN_OR_RETURN(const auto graph,
                           Graph::Open(std::as_const(*store), {.topology = TopologyPlace::kLazy}));
  return RankLinks(*graph, EvaluationOptions(options, held_bytes), Edges(), control);
}

Result<LinkEvaluation> TestLinks::RankBy(const LinkTable& table, const TrainOptions& options,
                                         std::uint64_t held_bytes,
                                         const JobControl& control) const {
  return RankTable(table, EvaluationOptions(options, held_bytes), Edges(), control);
}

}  // namespace internal
}  // namespace rhizome
