#include "gnn/links/rank_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "gnn/links/given_candidates.h"
#include "gnn/links/negative_figures.h"
#include "gnn/links/rank_block.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/base/bytes_left.h"
#include "storage/base/mutant.h"
#include "storage/base/stopwatch.h"

// RankLinks: (1) opens the table and the decoder; (2) refuses rows that are missing or out of date;
// (3) reads the test edges and the known edges; (4) counts leaked edges and edges with unseen ends;
// (5) ranks blocks of test edges, each in one pass over the table, or among given candidates;
// (6) compares with negatives.

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kEdgesAtOnce = 4096;

/// A block has no more edges, so that progress is reported, and an interruption noticed.
constexpr std::uint64_t kMaxBlockEdges = std::uint64_t{1} << 15;

/// A pass over the table has at least this many edges, unless there are fewer.
constexpr std::uint64_t kMinBlockEdges = 64;

/// A test edge and whether one of its ends has no edge in the store.
struct TestEdge {
  VertexPair edge;
  bool unseen = false;
};

class Evaluation {
 public:
  Evaluation(const LinkTable& table, const LinkDecoder& decoder,
             const LinkEvaluationOptions& options, KnownEdges known)
      : table_(table),
        decoder_(decoder),
        options_(options),
        known_(std::move(known)),
        candidates_(table, options.candidates == LinkCandidates::kType),
        arena_(static_cast<int>(std::clamp<std::uint32_t>(options.threads, 1, 1024))) {}

  Status Read(const LinkEvaluationEdges& edges) {
    RHIZOME_RETURN_IF_ERROR(ReadAll(edges.test, [&](const VertexPair& edge) {
      test_.push_back({.edge = edge});
      return CheckRows(edge);
    }));
    if (test_.empty()) return Status::InvalidArgument("there are no test edges");
    for (const TestEdge& test : test_) known_.Add(test.edge);
    for (const PairSource& source : edges.known) {
      RHIZOME_RETURN_IF_ERROR(ReadAll(source, [&](const VertexPair& edge) {
        if (!RHIZOME_MUTANT("ranks forget the validation set")) known_.Add(edge);
        return Status::Ok();
      }));
    }
    known_.Sort();
    return Status::Ok();
  }

  /// Sets TestEdge::unseen and counts leaked edges.
  Status CompareWithStore() {
    std::optional<VertexPair> leaked;
    for (TestEdge& test : test_) {
      RHIZOME_ASSIGN_OR_RETURN(const bool in_store, known_.InStore(test.edge));
      if (in_store) {
        ++result_.leaked_edges;
        if (!leaked) leaked = test.edge;
      }
      for (const VertexId end : {test.edge.src, test.edge.dst}) {
        RHIZOME_ASSIGN_OR_RETURN(const bool unseen, known_.IsUnseen(end));
        test.unseen = test.unseen || unseen;
      }
      result_.unseen_ends += test.unseen ? 1 : 0;
    }
    result_.edges = test_.size();
    if (!leaked || options_.allow_leaked) return Status::Ok();
    return Status::InvalidArgument(fmt::format(
        "the store has {} of the {} test edges, the first from {} to {}, so the ranks would be of "
        "edges that are known; leave them out of the store, or give `allow_leaked`",
        result_.leaked_edges, test_.size(), table_.graph->NameOf(leaked->src),
        table_.graph->NameOf(leaked->dst)));
  }

  Status Rank(const JobControl& control) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t bytes, BytesForBlocks());
    const std::uint64_t most_edges = std::clamp<std::uint64_t>(
        bytes * 3 / 4 / (2 * QueryBytes(table_)), kMinBlockEdges, kMaxBlockEdges);
    const std::uint64_t most_excluded = bytes / 4 / RankBlock::kExcludedBytes;
    RankBlock block(table_, decoder_, candidates_, known_);
    ScanStats stats;
    for (std::size_t first = 0; first < test_.size();) {
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "ranking", .done = first, .total = test_.size()}));
      std::size_t end = first;
      while (end < test_.size() && block.edges() < most_edges && block.excluded() < most_excluded)
        RHIZOME_RETURN_IF_ERROR(block.Add(test_[end++].edge));
      if (const std::uint64_t lists = block.excluded() * RankBlock::kExcludedBytes; lists > bytes)
        return TooLittleMemory(2 * lists + options_.memory_bytes);
      RHIZOME_ASSIGN_OR_RETURN(const std::vector<LinkCounts> counts,
                               block.Rank(arena_, control, stats));
      ++result_.passes;
      for (std::size_t i = first; i < end; ++i) {
        Note(test_[i], EdgeEnd::kDst, counts[2 * (i - first)]);
        Note(test_[i], EdgeEnd::kSrc, counts[2 * (i - first) + 1]);
      }
      first = end;
    }
    result_.bytes_read = stats.bytes_read;
    result_.read_seconds = stats.read_seconds;
    return Status::Ok();
  }

  Status RankAmong(const LinkEvaluationEdges::Given& given, const JobControl& control) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t bytes, BytesForBlocks());
    GivenRanks ranks(table_, decoder_, given, bytes);
    for (std::size_t first = 0; first < test_.size();) {
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "ranking", .done = first, .total = test_.size()}));
      std::vector<VertexPair> block;
      for (std::size_t i = first; i < test_.size() && block.size() < ranks.block_edges(); ++i)
        block.push_back(test_[i].edge);
      RHIZOME_ASSIGN_OR_RETURN(const GivenCounts counts, ranks.Rank(block, arena_, control));
      for (std::size_t i = 0; i < block.size(); ++i) {
        if (given.dst) Note(test_[first + i], EdgeEnd::kDst, counts.dst[i]);
        if (given.src) Note(test_[first + i], EdgeEnd::kSrc, counts.src[i]);
      }
      first += block.size();
    }
    return ranks.Finish();
  }

  Status Compare(const GraphSnapshot& graph, const PairSource& negatives,
                 const JobControl& control) {
    std::vector<VertexPair> positives;
    positives.reserve(test_.size());
    for (const TestEdge& test : test_) positives.push_back(test.edge);
    LinkEvaluationOptions rest = options_;
    rest.memory_bytes = BytesLeft(options_.memory_bytes, HeldEdges());
    RHIZOME_ASSIGN_OR_RETURN(result_.negatives,
                             CompareWithNegatives(graph, rest, positives, negatives, control));
    return Status::Ok();
  }

  LinkEvaluation Take() {
    result_.all = all_.Figures();
    result_.without_unseen = without_unseen_.Figures();
    result_.dst = dst_.Figures();
    result_.src = src_.Figures();
    for (const auto& [type, sums] : by_type_) result_.by_type.emplace_back(type, sums.Figures());
    return std::move(result_);
  }

 private:
  template <typename Visit>
  Status ReadAll(const PairSource& source, const Visit& visit) {
    std::vector<VertexPair> edges(kEdgesAtOnce);
    for (bool more = true; more;) {
      RHIZOME_ASSIGN_OR_RETURN(const std::size_t count, source(edges));
      more = count == edges.size();
      for (std::size_t i = 0; i < count; ++i) {
        RHIZOME_RETURN_IF_ERROR(CheckVertices(edges[i]));
        RHIZOME_RETURN_IF_ERROR(visit(edges[i]));
      }
      if (HeldEdges() > options_.memory_bytes) return TooLittleMemory(2 * HeldEdges());
    }
    return Status::Ok();
  }

  Status CheckVertices(const VertexPair& edge) const {
    for (const VertexId vertex : {edge.src, edge.dst}) {
      if (vertex >= 0 && static_cast<std::uint64_t>(vertex) < table_.rows() &&
          !table_.graph->IsDeleted(vertex))
        continue;
      return Status::InvalidArgument(fmt::format("there is no vertex with vertex id {}", vertex));
    }
    return Status::Ok();
  }

  /// Checks that both ends of a test edge have rows, and that its type has a relation.
  Status CheckRows(const VertexPair& edge) const {
    RHIZOME_RETURN_IF_ERROR(decoder_.CheckType(edge.type));
    const auto parts = table_.graph->parts();
    for (const VertexId vertex : {edge.src, edge.dst}) {
      if (candidates_.HasRow(parts->RowOf(vertex))) continue;
      return Status::InvalidArgument(fmt::format(
          "array {} has rows for vertices of type {} only, but vertex {} of a test "
          "edge has another type",
          ShownName(table_.entry().name), BoundType(table_.entry()), table_.graph->NameOf(vertex)));
    }
    return Status::Ok();
  }

  /// Returns the memory of the edges of files.
  std::uint64_t HeldEdges() const { return test_.capacity() * sizeof(TestEdge) + known_.bytes(); }

  Status TooLittleMemory(std::uint64_t need) const {
    return Status::OutOfMemory(fmt::format(
        "{} bytes (`memory_bytes`) are too few to rank {} test edges by array {}; give at least {}",
        options_.memory_bytes, test_.size(), ShownName(table_.entry().name), need));
  }

  Result<std::uint64_t> BytesForBlocks() const {
    const std::uint64_t fixed =
        test_.capacity() * sizeof(TestEdge) + known_.bytes() + ScanBytes(table_, options_.threads);
    const std::uint64_t need = fixed + 4 * kMinBlockEdges * QueryBytes(table_);
    if (options_.memory_bytes < need) return Fail(TooLittleMemory(need));
    return BytesLeft(options_.memory_bytes, fixed);
  }

  void Note(const TestEdge& test, EdgeEnd end, const LinkCounts& counts) {
    all_.Add(counts);
    if (!test.unseen) without_unseen_.Add(counts);
    (end == EdgeEnd::kDst ? dst_ : src_).Add(counts);
    by_type_[test.edge.type].Add(counts);
  }

  const LinkTable& table_;
  const LinkDecoder& decoder_;
  const LinkEvaluationOptions& options_;
  KnownEdges known_;
  const Candidates candidates_;
  TaskArena arena_;
  std::vector<TestEdge> test_;
  RankSums all_;
  RankSums without_unseen_;
  RankSums dst_;
  RankSums src_;
  std::map<TypeId, RankSums> by_type_;
  LinkEvaluation result_;
};

/// Returns the number of vertices for which no row was given.
std::uint64_t CountMissingRows(const LinkTable& table) {
  const GraphSnapshot& graph = *table.graph;
  std::set<VertexId> put;
  for (const VertexId vertex : graph.ChangedRows(table.entry())) put.insert(vertex);
  std::uint64_t missing = 0;
  for (auto vertex = static_cast<VertexId>(RowsGiven(table.entry()));
       static_cast<std::uint64_t>(vertex) < graph.vertex_count(); ++vertex)
    missing += !graph.IsDeleted(vertex) && !put.contains(vertex) ? 1 : 0;
  return missing;
}

/// Refuses an array with rows that are missing or out of date.
Status CheckFresh(const LinkTable& table) {
  const std::string name = ShownName(table.entry().name);
  if (const std::uint64_t missing = CountMissingRows(table); missing != 0) {
    return Status::InvalidArgument(
        fmt::format("array {} has no rows for {} vertices, which would be ranked by zeros; put "
                    "them, or give `allow_stale`",
                    name, missing));
  }
  for (const auto& [key, value] : table.entry().attributes) {
    if (key != kLostRowsAttribute) continue;
    return Status::InvalidArgument(fmt::format(
        "array {}: rows {} were lost in a repair; compute it again, or give `allow_stale`", name,
        value));
  }
  RHIZOME_ASSIGN_OR_RETURN(const Staleness staleness, table.graph->StalenessOf(table.entry()));
  if (!staleness.any()) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("array {} is out of date: the graph has changed since it was computed; compute "
                  "it again, or give `allow_stale`",
                  name));
}

}  // namespace

Result<LinkEvaluation> RankLinks(const GraphSnapshot& graph, const LinkEvaluationOptions& options,
                                 const LinkEvaluationEdges& edges, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const LinkTable table, LinkTable::Open(graph, options.array));
  return RankTable(table, options, edges, control);
}

Result<LinkEvaluation> RankTable(const LinkTable& table, const LinkEvaluationOptions& options,
                                 const LinkEvaluationEdges& edges, const JobControl& control) {
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const LinkDecoder decoder,
                           LinkDecoder::Load({.name = options.scorer, .path = options.decoder},
                                             table.dim(), table.graph->edge_types()));
  if (!options.allow_stale) RHIZOME_RETURN_IF_ERROR(CheckFresh(table));
  RHIZOME_ASSIGN_OR_RETURN(KnownEdges known, KnownEdges::Of(*table.graph));
  Evaluation evaluation(table, decoder, options, std::move(known));
  RHIZOME_RETURN_IF_ERROR(evaluation.Read(edges));
  RHIZOME_RETURN_IF_ERROR(evaluation.CompareWithStore());
  if (edges.given.dst || edges.given.src)
    RHIZOME_RETURN_IF_ERROR(evaluation.RankAmong(edges.given, control));
  else
    RHIZOME_RETURN_IF_ERROR(evaluation.Rank(control));
  if (edges.negatives)
    RHIZOME_RETURN_IF_ERROR(evaluation.Compare(*table.graph, edges.negatives, control));
  LinkEvaluation found = evaluation.Take();
  found.edge_types = table.graph->edge_types();
  found.seconds = watch.seconds();
  return found;
}

}  // namespace internal
}  // namespace rhizome
