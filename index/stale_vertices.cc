#include "rhizome/index/stale_vertices.h"

#include <algorithm>
#include <utility>

namespace rhizome {

namespace {

constexpr std::string_view kStaleSuffix = ".stale";

/// Walks the lists of a graph with its delta.
class ListWalker {
 public:
  ListWalker(const GraphParts& parts, const DeltaView& view, Direction direction)
      : parts_(parts), view_(view), direction_(direction) {}

  /// Calls visit(vertex) for each neighbour, until it returns false.
  template <typename Visit>
  Status ForEachNeighbor(VertexId vertex, Visit&& visit) {
    const Row row = parts_.RowOf(vertex);
    if (!view_.Touched(row, direction_)) {
      bool going = true;
      return parts_.ForEachPart(row, [&](PartitionId p, LocalId local) -> Status {
        const auto all = parts_.partitions[p].Entries(local, direction_);
        return going ? VisitRange(p, local, all.first, all.count, visit, going) : Status::Ok();
      });
    }
    std::uint64_t begin = 0;
    bool going = true;
    for (const DeltaView::Piece& piece : view_.PiecesOf(row, direction_)) {
      const std::uint64_t count = piece.end - std::exchange(begin, piece.end);
      if (piece.partition != view_.partition()) {
        RHIZOME_RETURN_IF_ERROR(
            VisitRange(piece.partition, piece.local, piece.first, count, visit, going));
      } else {
        for (std::uint64_t i = piece.first; going && i < piece.first + count; ++i)
          going = visit(parts_.VertexAt(view_.rows(direction_)[i]));
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
  const DeltaView& view_;
  const Direction direction_;
  std::vector<LocalId> scratch_;
};

/// One hop: whoever has a stale in-neighbour becomes stale, as of before the hop.
Status Spread(const GraphParts& parts, const DeltaView& view, std::vector<std::uint8_t>& stale) {
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

// Those whose lists of in-edges differ. A store of out-lists alone knows it from the targets.
void MarkChangedLists(const GraphParts& parts, const DeltaView& view,
                      std::vector<std::uint8_t>& stale) {
  const auto merged = view.delta().Merged();
  for (const DeltaEdge& edge : merged->out) stale[static_cast<std::size_t>(edge.neighbor)] = 1;
  if (parts.partitions.front().has(Direction::kIn)) {
    view.ForEachTouched(Direction::kIn,
                        [&](Row row) { stale[static_cast<std::size_t>(parts.VertexAt(row))] = 1; });
  }
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
  return ArrayOrigin{
      .features = std::string(fact("features")),
      .layers = static_cast<std::uint32_t>(std::count(fanout.begin(), fanout.end(), ',') + 1)};
}

Result<std::vector<std::uint8_t>> StaleVertices(const GraphParts& parts, const DeltaView& view,
                                                std::uint64_t features_id, std::uint32_t layers) {
  const Delta& delta = view.delta();
  std::vector<std::uint8_t> stale(delta.vertices(), 0);
  const auto merged = delta.Merged();
  if (merged == nullptr) return stale;
  for (const DeltaRowRef& row : merged->rows)
    if (row.array_id == features_id) stale[static_cast<std::size_t>(row.vertex)] = 1;
  for (std::uint64_t v = delta.base_vertices(); v < delta.vertices(); ++v) stale[v] = 1;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    RHIZOME_RETURN_IF_ERROR(Spread(parts, view, stale));
    MarkChangedLists(parts, view, stale);
  }
  return stale;
}

}  // namespace rhizome
