#include "rhizome/index/stale_vertices.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "rhizome/index/delta_record.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/storage/array_rules.h"

namespace rhizome {

namespace {

/// Of a network (gnn/model_shape.h).
constexpr std::uint64_t kMostLayers = 64;

/// Walks the lists of a graph with its delta.
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

/// One hop: whoever has a stale in-neighbour becomes stale, as of before the hop.
Status Spread(const GraphParts& parts, const DeltaView* view, std::vector<std::uint8_t>& stale) {
  const std::vector<std::uint8_t> before = stale;
  const bool out = parts.partitions.front().has(Direction::kOut);
  ListWalker walker(parts, view, out ? Direction::kOut : Direction::kIn);
  for (std::size_t v = 0; v < stale.size(); ++v) {
    // With out-lists from those that are stale, with in-lists alone to those that are not.
    if ((before[v] != 0) != out) continue;
    RHIZOME_RETURN_IF_ERROR(
        walker.ForEachNeighbor(static_cast<VertexId>(v), [&](VertexId neighbor) {
          const auto n = static_cast<std::size_t>(neighbor);
          if (out) stale[n] = 1;
          if (!out && before[n] != 0) stale[v] = 1;
          return out || before[n] == 0;
        }));
  }
  return Status::Ok();
}

// Those whose lists of in-edges differ. A store of out-lists alone knows it from the targets. Whose
// list a deleted vertex leaves, only the merged lists tell: then every list counts that any commit
// touched.
void MarkChangedLists(const StaleQuery& query, std::vector<std::uint8_t>& stale) {
  const DeltaRun& changes = *query.changes;
  for (const DeltaEdge& edge : changes.out) stale[static_cast<std::size_t>(edge.neighbor)] = 1;
  for (const DeltaEdge& edge : changes.in) stale[static_cast<std::size_t>(edge.vertex)] = 1;
  if (changes.deleted.empty() || query.view == nullptr) return;
  if (!query.parts.partitions.front().has(Direction::kIn)) return;
  query.view->ForEachTouched(Direction::kIn, [&](Row row) {
    stale[static_cast<std::size_t>(query.parts.VertexAt(row))] = 1;
  });
}

/// The number after `word` in text such as "generation 1 version 2 sequence 3"; 0 if it is not
/// there.
std::uint64_t NumberAfter(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return 0;
  std::uint64_t number = 0;
  const char* const begin = text.data() + at + word.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc() ? number : 0;
}

}  // namespace

std::string StaleName(std::string_view array) {
  return std::string(array) + std::string(kStaleSuffix);
}

std::optional<ArrayOrigin> OriginOf(const ArrayEntry& array) {
  const auto fact = [&](std::string_view name) -> std::string_view {
    for (const auto& [key, value] : array.attributes)
      if (key == name) return value;
    return {};
  };
  const std::string_view fanout = fact("fanout");
  if (!fact("made_by").starts_with("infer") || fanout.empty()) return std::nullopt;
  // Without that fact, of before there was one: a fanout a layer, or "all" for all of them.
  const std::uint64_t layers = NumberAfter(fact("hops"), "");
  return ArrayOrigin{
      .features = std::string(fact("features")),
      .layers = static_cast<std::uint32_t>(
          layers != 0 ? std::min<std::uint64_t>(layers, kMostLayers)
          : fanout == "all"
              ? kMostLayers
              : static_cast<std::uint64_t>(std::count(fanout.begin(), fanout.end(), ',')) + 1),
      .sequence = NumberAfter(fact("snapshot"), "sequence ")};
}

ArrayInput StaleArray(std::string name) {
  return {.name = std::move(name),
          .dim = 1,
          .dtype = DataType::kUint8,
          .layout = ArrayLayout::kChunk,
          .codec = {.kind = CodecKind::kZstd, .level = 1},
          .attributes = {},
          .read_rows = {}};
}

Delta::Base DeltaBaseOf(const Store& store) {
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

Result<std::shared_ptr<const DeltaRun>> ChangesAfter(const Store& store, const Delta::Base& base,
                                                     std::uint64_t seen, std::uint64_t last) {
  std::shared_ptr<const Delta> all = Delta::Empty(base);
  std::shared_ptr<const Delta> later = all;  // of the same kind: only its runs are asked for
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

Result<std::vector<std::uint8_t>> StaleVertices(const StaleQuery& query) {
  const std::uint64_t vertices =
      query.view == nullptr ? query.parts.info().vertices : query.view->delta().vertices();
  const DeltaRun* const changes = query.changes;
  const bool all = query.view == nullptr && changes != nullptr && !changes->deleted.empty();
  std::vector<std::uint8_t> stale(vertices, all ? 1 : 0);
  for (std::uint64_t v = query.first_new; v < vertices; ++v) stale[v] = 1;
  if (changes == nullptr || all) return stale;
  for (const DeltaRowRef& row : changes->rows)
    if (row.array_id == query.features_id) stale[static_cast<std::size_t>(row.vertex)] = 1;
  for (std::uint32_t layer = 0; layer < query.layers; ++layer) {
    RHIZOME_RETURN_IF_ERROR(Spread(query.parts, query.view, stale));
    MarkChangedLists(query, stale);
  }
  return stale;
}

Result<Staleness> StalenessOf(const Store& store, const GraphParts& parts, std::uint64_t sequence,
                              const ArrayEntry& array) {
  Staleness staleness;
  const std::optional<ArrayOrigin> origin = OriginOf(array);
  if (!origin) return staleness;
  for (const auto& [name, value] : array.attributes)
    if (name == kStaleRowsAttribute) staleness.marked_rows = NumberAfter(value, "");
  RHIZOME_ASSIGN_OR_RETURN(const std::shared_ptr<const DeltaRun> changes,
                           ChangesAfter(store, parts.DeltaBase(), origin->sequence, sequence));
  if (changes == nullptr) return staleness;
  const ArrayEntry* const features = store.manifest().FindArray(origin->features);
  const bool other_features =
      features == nullptr ||
      std::any_of(changes->rows.begin(), changes->rows.end(),
                  [&](const DeltaRowRef& row) { return row.array_id == features->array_id; });
  staleness.written_since = other_features || !changes->out.empty() || !changes->in.empty() ||
                            !changes->deleted.empty() || !changes->vertex_types.empty();
  return staleness;
}

}  // namespace rhizome
