#include "gnn/links/top_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gnn/links/query_pass.h"
#include "gnn/links/rank_block.h"
#include "index/delta/graph_parts.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/base/bytes_left.h"

// FindTopLinks: (1) opens the table and the decoder, and chooses the candidates; (2) for blocks of
// vertices: reads their rows, lists what is left out, and keeps the best candidates of each vertex
// in one pass over the table; (3) passes them on, sorted.

namespace rhizome {
inline namespace internal {
namespace {

/// A block has no more vertices, so that progress is reported, and an interruption noticed.
constexpr std::uint64_t kMaxTopVertices = std::uint64_t{1} << 15;
constexpr std::uint64_t kMinTopVertices = 64;

struct TopLink {
  float score = 0;
  VertexId vertex = 0;
};

/// The order of the output.
bool IsBetter(const TopLink& a, const TopLink& b) {
  return a.score > b.score || (a.score == b.score && a.vertex < b.vertex);
}

/// Keeps the best candidates of each query, in a heap whose front is the worst of them.
class TopSink final : public TileSink {
 public:
  TopSink(const LinkTable& table, std::span<const LinkGroup> groups, std::size_t queries,
          std::uint64_t count)
      : parts_(table.graph->parts()), groups_(groups), count_(count), best_(queries) {}

  void Take(std::size_t group, const ScoredTile& tile) override {
    const std::vector<std::uint32_t>& queries = groups_[group].queries;
    for (std::size_t lane = 0; lane < queries.size(); ++lane) {
      std::vector<TopLink>& best = best_[queries[lane]];
      for (std::size_t i = 0; i < tile.places.size(); ++i) {
        const float score = tile.scores[i * kGroupQueries + lane];
        const bool full = best.size() == count_;
        // An excluded row has the score NaN, and no comparison with it is true.
        if (full ? !(score >= best.front().score) : score != score) continue;
        const TopLink link{score, parts_->VertexAt(tile.first + tile.places[i])};
        if (full) {
          if (!IsBetter(link, best.front())) continue;
          std::pop_heap(best.begin(), best.end(), IsBetter);
          best.pop_back();
        }
        best.push_back(link);
        std::push_heap(best.begin(), best.end(), IsBetter);
      }
    }
  }

  /// Returns the links of a query, best first.
  const std::vector<TopLink>& Sorted(std::size_t query) {
    std::sort_heap(best_[query].begin(), best_[query].end(), IsBetter);
    return best_[query];
  }

 private:
  const std::shared_ptr<const GraphParts> parts_;
  const std::span<const LinkGroup> groups_;
  const std::uint64_t count_;
  std::vector<std::vector<TopLink>> best_;  // by query
};

/// Returns the vertex type of the destinations of edges of a type; kSeveralTypes if it is not one.
TypeId DestinationsOf(const LinkTable& table, std::optional<TypeId> type) {
  const std::vector<EdgeEnds> ends = table.graph->edge_ends();
  return type && *type < ends.size() ? ends[*type].destination : kSeveralTypes;
}

/// Checks that destinations of edges of a type have rows.
Status CheckDestinations(const LinkTable& table, std::optional<TypeId> type) {
  const std::string_view bound = BoundType(table.entry());
  const TypeId destinations = DestinationsOf(table, type);
  const std::vector<std::string> names = table.graph->vertex_types();
  if (bound.empty() || destinations >= names.size() || names[destinations] == bound)
    return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "array {} has rows for vertices of type {} only, but destinations of edges of that type are "
      "of type {}",
      ShownName(table.entry().name), bound, names[destinations]));
}

class TopRun {
 public:
  TopRun(const LinkTable& table, const LinkDecoder& decoder, const TopLinksOptions& options)
      : table_(table),
        decoder_(decoder),
        options_(options),
        type_(options.type.value_or(0)),
        destinations_(DestinationsOf(table, options.type)),
        candidates_(table, destinations_ != kSeveralTypes),
        arena_(static_cast<int>(std::clamp<std::uint32_t>(options.threads, 1, 1024))) {}

  Result<TopLinksReport> Run(const VertexSource& source, const ScoreSink& sink,
                             const JobControl& control) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t block, BlockVertices());
    for (bool more = true; more;) {
      RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "searching", .done = report_.vertices}));
      std::vector<VertexId> vertices(block);
      RHIZOME_ASSIGN_OR_RETURN(const std::size_t count, source(vertices));
      more = count == block;
      vertices.resize(count);
      if (count == 0) break;
      RHIZOME_RETURN_IF_ERROR(RunBlock(vertices, sink, control));
    }
    return report_;
  }

 private:
  Result<std::uint64_t> BlockVertices() const {
    const std::uint64_t fixed = ScanBytes(table_, options_.threads);
    const std::uint64_t each =
        QueryBytes(table_) + options_.count * (sizeof(TopLink) + sizeof(VertexPair) + 4);
    const std::uint64_t need = fixed + 2 * kMinTopVertices * each;
    if (options_.memory_bytes < need) {
      return Fail(Status::OutOfMemory(fmt::format(
          "{} bytes (`memory_bytes`) are too few to search {} links of a vertex in array {}; give "
          "at least {}",
          options_.memory_bytes, options_.count, ShownName(table_.entry().name), need)));
    }
    return std::clamp<std::uint64_t>(BytesLeft(options_.memory_bytes, fixed) / 2 / each,
                                     kMinTopVertices, kMaxTopVertices);
  }

  Status RunBlock(std::span<const VertexId> vertices, const ScoreSink& sink,
                  const JobControl& control) {
    std::vector<LinkQuery> queries;
    std::vector<Row> given;
    for (const VertexId vertex : vertices) {
      RHIZOME_ASSIGN_OR_RETURN(const Row row, RowOf(vertex));
      given.push_back(row);
      queries.push_back(
          {.given = row, .type = type_, .candidates = candidates_.SetOfType(destinations_)});
    }
    RHIZOME_ASSIGN_OR_RETURN(const GatheredRows rows,
                             GatheredRows::Read(table_, SortedRows(given), control));
    std::vector<LinkGroup> groups = GroupQueries(decoder_, rows, queries);
    for (LinkGroup& group : groups) {
      for (std::uint32_t lane = 0; lane < group.queries.size(); ++lane)
        RHIZOME_RETURN_IF_ERROR(LeaveOut(vertices[group.queries[lane]], lane, group));
    }
    TopSink best(table_, groups, queries.size(), options_.count);
    RHIZOME_ASSIGN_OR_RETURN(const ScanStats scanned, ScanTable(table_, candidates_, queries,
                                                                groups, best, arena_, control));
    report_.vertices += vertices.size();
    report_.bytes_read += scanned.bytes_read;
    report_.read_seconds += scanned.read_seconds;
    ++report_.passes;
    return PassOn(vertices, best, sink);
  }

  Result<Row> RowOf(VertexId vertex) const {
    if (vertex < 0 || static_cast<std::uint64_t>(vertex) >= table_.rows() ||
        table_.graph->IsDeleted(vertex))
      return Fail(
          Status::InvalidArgument(fmt::format("there is no vertex with vertex id {}", vertex)));
    const Row row = table_.graph->parts()->RowOf(vertex);
    if (candidates_.HasRow(row)) return row;
    return Fail(Status::InvalidArgument(fmt::format(
        "array {} has rows for vertices of type {} only, but vertex {} has another type",
        ShownName(table_.entry().name), BoundType(table_.entry()), table_.graph->NameOf(vertex))));
  }

  /// Excludes the vertex itself and, if asked for, the destinations of its edges.
  Status LeaveOut(VertexId vertex, std::uint32_t lane, LinkGroup& group) const {
    const auto parts = table_.graph->parts();
    group.excluded.push_back({.row = parts->RowOf(vertex), .lane = lane});
    if (!options_.drop_known) return Status::Ok();
    RHIZOME_ASSIGN_OR_RETURN(const std::vector<Neighbor> neighbors,
                             options_.type
                                 ? table_.graph->NeighborsOfType(vertex, Direction::kOut, type_)
                                 : table_.graph->Neighbors(vertex, Direction::kOut));
    for (const Neighbor& neighbor : neighbors)
      group.excluded.push_back({.row = parts->RowOf(neighbor.vertex), .lane = lane});
    return Status::Ok();
  }

  Status PassOn(std::span<const VertexId> vertices, TopSink& best, const ScoreSink& sink) {
    std::vector<VertexPair> pairs;
    std::vector<float> scores;
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      for (const TopLink& link : best.Sorted(i)) {
        pairs.push_back({.src = vertices[i], .dst = link.vertex, .type = type_});
        scores.push_back(link.score);
      }
    }
    report_.links += pairs.size();
    return sink(pairs, scores);
  }

  const LinkTable& table_;
  const LinkDecoder& decoder_;
  const TopLinksOptions& options_;
  const TypeId type_;
  const TypeId destinations_;  // vertex type of the candidates; kSeveralTypes: all vertices
  const Candidates candidates_;
  TaskArena arena_;
  TopLinksReport report_;
};

}  // namespace

Result<TopLinksReport> FindTopLinks(const GraphSnapshot& graph, const TopLinksOptions& options,
                                    const VertexSource& source, const ScoreSink& sink,
                                    const JobControl& control) {
  if (options.count == 0)
    return Fail(Status::InvalidArgument("at least one link of a vertex must be asked for"));
  RHIZOME_ASSIGN_OR_RETURN(const LinkTable table, LinkTable::Open(graph, options.array));
  const std::vector<std::string> types = table.graph->edge_types();
  RHIZOME_ASSIGN_OR_RETURN(
      const LinkDecoder decoder,
      LinkDecoder::Load({.name = options.scorer, .path = options.decoder}, table.dim(), types));
  if (options.type && *options.type >= types.size()) {
    return Fail(Status::InvalidArgument(fmt::format(
        "there is no edge type {}: the graph has {} edge types", *options.type, types.size())));
  }
  if (!options.type && decoder.has_types() && types.size() > 1) {
    return Fail(Status::InvalidArgument(
        fmt::format("{} scores links of one edge type: give its `type`", decoder.kind().name)));
  }
  RHIZOME_RETURN_IF_ERROR(decoder.CheckType(options.type.value_or(0)));
  RHIZOME_RETURN_IF_ERROR(CheckDestinations(table, options.type));
  TopRun run(table, decoder, options);
  return run.Run(source, sink, control);
}

}  // namespace internal
}  // namespace rhizome
