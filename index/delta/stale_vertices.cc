// Staleness of embeddings. OriginOf reads from an array's attributes how it was computed;
// ChangesAfter collects the later commits; StaleVertices marks the vertices that these commits
// affect, by one traversal of the lists for each layer.

#include "index/delta/stale_vertices.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "index/delta/delta_record.h"
#include "index/delta/graph_parts.h"
#include "storage/array/array_rules.h"

namespace rhizome {

namespace {

/// Maximum number of layers of a model (gnn/models/model_shape.h).
constexpr std::uint64_t kMaxLayers = 64;

/// Traverses the lists of a graph with its delta.
class ListWalker {
 public:
  ListWalker(const GraphParts& parts, const DeltaView* view, Direction direction)
      : parts_(parts), view_(view), direction_(direction) {}

  /// Calls visit(vertex) for each neighbour, until it returns false.
  template <typename Visit>
  Status ForEachNeighbor(VertexId vertex, Visit&& visit) {
    const Row row = parts_.RowOf(vertex);
    if (view_ == nullptr || !view_->Touched(row, direction_)) {
      bool going = true;
      return parts_.ForEachPart(row, [&](PartitionId p, LocalId local) -> Status {
        const auto all = parts_.partitions[p].Entries(local, direction_);
        return going ? VisitRange(p, local, all.first, all.count, visit, going) : Status::Ok();
      });
    }
    std::uint64_t begin = 0;
    bool going = true;
    for (const DeltaView::Piece& piece : view_->PiecesOf(row, direction_)) {
      const std::uint64_t count = piece.end - std::exchange(begin, piece.end);
      if (piece.partition != view_->partition()) {
        RHIZOME_RETURN_IF_ERROR(
            VisitRange(piece.partition, piece.local, piece.first, count, visit, going));
      } else {
        for (std::uint64_t i = piece.first; going && i < piece.first + count; ++i)
          going = visit(parts_.VertexAt(view_->rows(direction_)[i]));
      }
      if (!going) break;
    }
    return Status::Ok();
  }

 private:
  template <typename Visit>
  Status VisitRange(PartitionId p, LocalId local, std::uint64_t first, std::uint64_t count,
                    Visit&& visit, bool& going) {
    const Adjacency& partition = parts_.partitions[p];
    const std::uint64_t list_first = partition.Entries(local, direction_).first;
    RHIZOME_ASSIGN_OR_RETURN(const auto list, partition.FetchList(local, direction_, scratch_));
    for (std::uint64_t i = first - list_first; going && i < first - list_first + count; ++i)
      going = visit(parts_.order.VertexAt(partition.RowOf(list[i])));
    return Status::Ok();
  }

  const GraphParts& parts_;
  const DeltaView* const view_;
  const Direction direction_;
  std::vector<LocalId> scratch_;
};

Direction Opposite(Direction direction) {
  return direction == Direction::kIn ? Direction::kOut : Direction::kIn;
}

/// Spreads staleness by one hop along one direction: every vertex whose list contains a vertex that
/// is stale in `before` becomes stale.
Status SpreadOver(const StaleQuery& query, Direction direction,
                  const std::vector<std::uint8_t>& before, std::vector<std::uint8_t>& stale) {
  const Direction back = Opposite(direction);
  const bool has_back = query.parts.partitions.front().has(back);
  ListWalker walker(query.parts, query.view, has_back ? back : direction);
  for (std::size_t v = 0; v < stale.size(); ++v) {
    // If the lists of the other direction exist, it traverses them from the stale vertices;
    // otherwise it searches the lists of the vertices that are not stale.
    if ((before[v] != 0) != has_back) continue;
    RHIZOME_RETURN_IF_ERROR(
        walker.ForEachNeighbor(static_cast<VertexId>(v), [&](VertexId neighbor) {
          const auto n = static_cast<std::size_t>(neighbor);
          if (has_back) stale[n] = 1;
          if (!has_back && before[n] != 0) stale[v] = 1;
          return has_back || before[n] == 0;
        }));
  }
  return Status::Ok();
}

/// Spreads staleness by one hop along the lists of the query.
Status Spread(const StaleQuery& query, std::vector<std::uint8_t>& stale) {
  const std::vector<std::uint8_t> before = stale;
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    if (query.direction != direction && query.direction != Direction::kBoth) continue;
    RHIZOME_RETURN_IF_ERROR(SpreadOver(query, direction, before, stale));
  }
  return Status::Ok();
}

// Marks the vertices whose lists of the query's direction changed. In a store with only one
// direction, changes of the other direction are derived from the other ends of changed edges. Only
// the merged lists show which lists lost a deleted vertex, so after a deletion every list that any
// commit touched counts as changed.
void MarkChangedLists(const StaleQuery& query, std::vector<std::uint8_t>& stale) {
  const DeltaRun& changes = *query.changes;
  const auto mark = [&](VertexId vertex) { stale[static_cast<std::size_t>(vertex)] = 1; };
  const bool in = query.direction != Direction::kOut;
  const bool out = query.direction != Direction::kIn;
  for (const DeltaEdge& edge : changes.out) {
    if (in) mark(edge.neighbor);
    if (out) mark(edge.vertex);
  }
  for (const DeltaEdge& edge : changes.in) {
    if (in) mark(edge.vertex);
    if (out) mark(edge.neighbor);
  }
  if (changes.deleted.empty() || query.view == nullptr) return;
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    if (query.direction != direction && query.direction != Direction::kBoth) continue;
    if (!query.parts.partitions.front().has(direction)) continue;
    query.view->ForEachTouched(direction, [&](Row row) { mark(query.parts.VertexAt(row)); });
  }
}

/// Returns the number after `word` in a text such as "generation 1 version 2 sequence 3"; 0 if
/// `word` is absent.
std::uint64_t NumberAfter(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return 0;
  std::uint64_t number = 0;
  const char* const begin = text.data() + at + word.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc() ? number : 0;
}

/// Returns the names in a list separated by commas, at least one.
std::vector<std::string> NamesIn(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t end = text.find(',');
    names.emplace_back(text.substr(0, end));
    if (end == text.npos) return names;
    text.remove_prefix(end + 1);
  }
}

bool IsOneOf(std::uint64_t id, const std::vector<std::uint64_t>& ids) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::string StaleName(std::string_view array) {
  return std::string(array) + std::string(kStaleSuffix);
}

std::optional<ArrayOrigin> internal::OriginOf(const ArrayEntry& array) {
  const auto fact = [&](std::string_view name) -> std::string_view {
    for (const auto& [key, value] : array.attributes)
      if (key == name) return value;
    return {};
  };
  const std::string_view fanout = fact("fanout");
  if (!fact("made_by").starts_with("infer") || fanout.empty()) return std::nullopt;
  // Older arrays lack the number of layers; it follows from their fanout: one number a layer, or
  // "all".
  const std::uint64_t layers = NumberAfter(fact("hops"), "");
  return ArrayOrigin{
      .features = NamesIn(fact("features")),
      .layers = static_cast<std::uint32_t>(
          layers != 0 ? std::min<std::uint64_t>(layers, kMaxLayers)
          : fanout == "all"
              ? kMaxLayers
              : static_cast<std::uint64_t>(std::count(fanout.begin(), fanout.end(), ',')) + 1),
      .direction = fact(kDirectionAttribute) == "out"    ? Direction::kOut
                   : fact(kDirectionAttribute) == "both" ? Direction::kBoth
                                                         : Direction::kIn,
      .sequence = NumberAfter(fact("snapshot"), "sequence "),
      .commits = StoreId::Parse(fact(kCommitsAttribute)).value_or(StoreId{}).bytes};
}

std::vector<std::uint64_t> internal::FeatureIdsOf(const ArrayOrigin& origin,
                                                  const Manifest& manifest) {
  std::vector<std::uint64_t> ids;
  for (const std::string& name : origin.features)
    if (const ArrayEntry* const array = manifest.FindArray(name)) ids.push_back(array->array_id);
  return ids;
}

Result<bool> internal::IsOfHistory(const ArrayEntry& array, const Store& store) {
  const std::optional<ArrayOrigin> origin = OriginOf(array);
  if (!origin || origin->commits == Hash128{}) return true;
  RHIZOME_ASSIGN_OR_RETURN(const HistoryState had, store.StateAt(origin->sequence));
  return !had.known() || had.commits == origin->commits;
}

ArrayInput internal::StaleArray(std::string name) {
  return {.name = std::move(name),
          .dim = 1,
          .dtype = DataType::kUint8,
          .layout = ArrayLayout::kChunk,
          .codec = {.kind = CodecKind::kZstd, .level = 1},
          .attributes = {},
          .read_rows = {}};
}

Delta::Base internal::DeltaBaseOf(const Store& store) {
  const Manifest& manifest = store.manifest();
  const std::uint64_t values = std::min(EdgeValueCount(EdgeAttributesOf(manifest)), kMaxEdgeValues);
  return {.symmetric = manifest.info.symmetric,
          .string_ids = manifest.info.id_kind == ExternalIdKind::kString,
          .attribute_count = static_cast<std::uint32_t>(values),
          .vertices = manifest.info.vertices,
          .vertex_types = manifest.info.vertex_types,
          .edge_types = manifest.info.edge_types,
          .sequence = store.base_sequence()};
}

Result<std::shared_ptr<const DeltaRun>> internal::ChangesAfter(const Store& store,
                                                               const Delta::Base& base,
                                                               std::uint64_t seen,
                                                               std::uint64_t last) {
  std::shared_ptr<const Delta> all = Delta::Empty(base);
  std::shared_ptr<const Delta> later = all;  // only the runs of this delta are used
  const auto visit = [&](std::uint64_t sequence, std::span<const std::byte> record) -> Status {
    if (sequence > last) return Status::Ok();
    RHIZOME_ASSIGN_OR_RETURN(DeltaRun run, DecodeDeltaRecord(record, sequence, all->Context()));
    if (sequence > seen) later = later->With(run);
    all = all->With(std::move(run));
    return Status::Ok();
  };
  RHIZOME_RETURN_IF_ERROR(store.ScanDelta(base.sequence, visit));
  return later->Merged();
}

// Marks stale vertices:
// 1. new vertices, and vertices with changed features;
// 2. for each layer, one hop further (Spread), and the vertices whose lists of the query's
//    direction changed (MarkChangedLists).
Result<std::vector<std::uint8_t>> internal::StaleVertices(const StaleQuery& query) {
  const std::uint64_t vertices =
      query.view == nullptr ? query.parts.info().vertices : query.view->delta().vertices();
  const DeltaRun* const changes = query.changes;
  const bool all = query.view == nullptr && changes != nullptr && !changes->deleted.empty();
  std::vector<std::uint8_t> stale(vertices, all ? 1 : 0);
  for (std::uint64_t v = query.first_new; v < vertices; ++v) stale[v] = 1;
  if (changes == nullptr || all) return stale;
  for (const DeltaRowRef& row : changes->rows)
    if (IsOneOf(row.array_id, query.features_ids)) stale[static_cast<std::size_t>(row.vertex)] = 1;
  for (std::uint32_t layer = 0; layer < query.layers; ++layer) {
    RHIZOME_RETURN_IF_ERROR(Spread(query, stale));
    MarkChangedLists(query, stale);
  }
  return stale;
}

Result<Staleness> internal::StalenessFrom(const Store& store, const GraphParts& parts,
                                          std::uint64_t sequence, const ArrayEntry& array) {
  Staleness staleness;
  const std::optional<ArrayOrigin> origin = OriginOf(array);
  if (!origin) return staleness;
  for (const auto& [name, value] : array.attributes)
    if (name == kStaleRowsAttribute) staleness.marked_rows = NumberAfter(value, "");
  RHIZOME_ASSIGN_OR_RETURN(const std::shared_ptr<const DeltaRun> changes,
                           ChangesAfter(store, parts.DeltaBase(), origin->sequence, sequence));
  if (changes == nullptr) return staleness;
  const std::vector<std::uint64_t> features = FeatureIdsOf(*origin, store.manifest());
  const bool other_features =
      features.size() < origin->features.size() ||
      std::any_of(changes->rows.begin(), changes->rows.end(),
                  [&](const DeltaRowRef& row) { return IsOneOf(row.array_id, features); });
  staleness.written_since = other_features || !changes->out.empty() || !changes->in.empty() ||
                            !changes->deleted.empty() || !changes->vertex_types.empty();
  return staleness;
}

}  // namespace rhizome
