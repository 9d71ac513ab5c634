// Draws the entries of a hop. Pick finds the lists of a slice of frontier vertices (FindLists) and
// draws from each: uniformly (PickUniform is the fast path; DrawPositions serves all others), or by
// weight (DrawWeighted). A list may first be reduced to one edge type or to the edges up to a time.

#include "index/sample/sampler_draw.h"

#include <algorithm>
#include <utility>

#include "rhizome/graph_lookup.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

namespace {

// Appends the entries at the given positions of a list that consists of pieces.
void AppendEntries(std::span<const Piece> pieces, std::span<const std::uint64_t> positions,
                   std::vector<EntryRef>& entries) {
  if (pieces.size() == 1) {
    const Piece& piece = pieces[0];
    for (const std::uint64_t position : positions) {
      RHIZOME_DCHECK(position < piece.end);
      entries.push_back({piece.first + position, piece.local, piece.partition});
    }
    return;
  }
  for (const std::uint64_t position : positions) {
    const PlaceInList place = FindPiece(pieces, position);
    entries.push_back(
        {place.partition_position(position), place.piece.local, place.piece.partition});
  }
}

void AppendAll(std::span<const Piece> pieces, std::vector<EntryRef>& entries) {
  std::uint64_t i = 0;
  for (const Piece& piece : pieces) {
    for (std::uint64_t position = piece.first; i < piece.end; ++i, ++position) {
      entries.push_back({position, piece.local, piece.partition});
    }
  }
  RHIZOME_DCHECK(i == LengthOf(pieces));
}

}  // namespace

Result<std::unique_ptr<const DrawTables>> DrawTables::Create(
    const GraphSnapshot& graph, const std::shared_ptr<const DeltaView>& view,
    const SamplerOptions& options) {
  std::unique_ptr<DrawTables> tables(new DrawTables{.sides = WalkedSides(graph, options.direction),
                                                    .lists = {},
                                                    .weights = {},
                                                    .times = {},
                                                    .seed = options.seed,
                                                    .replace = options.replace,
                                                    .temporal_pick = options.temporal_pick});
  const WalkedSides& sides = tables->sides;
  tables->lists.reserve(sides.count());
  for (std::size_t side = 0; side < sides.count(); ++side)
    tables->lists.emplace_back(graph, view, sides.direction(side));
  if (options.weighted) {
    RHIZOME_ASSIGN_OR_RETURN(tables->weights, WeightTable::Create(graph, view.get(), sides));
  }
  if (options.times != nullptr) {
    const bool by_type = !options.typed_fanouts.empty() || !options.meta_path.empty();
    RHIZOME_ASSIGN_OR_RETURN(tables->times, TimeOrder::Create(graph, view.get(), tables->lists,
                                                              sides, by_type, options.times));
  }
  return std::unique_ptr<const DrawTables>(std::move(tables));
}

void DrawTables::OnlyType(std::span<const Piece> list, TypeId type,
                          std::vector<Piece>& pieces) const {
  if (lists.size() == 1) return lists[0].OnlyType(list, type, pieces);
  const auto second = std::find_if(list.begin(), list.end(), [&](const Piece& piece) {
    return sides.SideOf(piece.partition) == 1;
  });
  const auto count = static_cast<std::size_t>(second - list.begin());
  lists[0].OnlyType(list.first(count), type, pieces);
  lists[1].AppendOfType(list.subspan(count), LengthOf(list.first(count)), sides.ShiftOf(1), type,
                        pieces);
}

// Finds the lists of a frontier. If both directions are traversed, the list of a vertex has the
// pieces of both.
void EntryPicker::FindLists(const DrawTables& tables, std::span<const Row> rows) {
  lists_.resize(rows.size());
  tables.lists[0].FindAll(rows, lists_);
  if (tables.lists.size() == 1) return;
  second_.resize(rows.size());
  tables.lists[1].FindAll(rows, second_);
  joined_.clear();
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t first = joined_.size();
    for (const Piece& piece : lists_[i].pieces())
      if (piece.end > 0) joined_.push_back(piece);
    const std::uint64_t length = joined_.size() == first ? 0 : joined_.back().end;
    for (Piece piece : second_[i].pieces()) {
      if (piece.end == 0) continue;
      piece.end += length;
      piece.partition = static_cast<PartitionId>(piece.partition + tables.sides.ShiftOf(1));
      joined_.push_back(piece);
    }
    ends.push_back(joined_.size());
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t first = i == 0 ? 0 : ends[i - 1];
    lists_[i].place = VertexList::Place::kJoined;
    lists_[i].shared = std::span<const Piece>(joined_).subspan(first, ends[i] - first);
  }
}

void EntryPicker::Pick(const DrawTables& tables, const FrontierSlice& slice,
                       std::vector<EntryRef>& entries, std::vector<std::uint64_t>& counts) {
  entries.clear();
  counts.resize(slice.rows.size());
  FindLists(tables, slice.rows);
  const bool plain = !tables.weights && !tables.times && slice.requests.size() == 1 &&
                     slice.requests[0].type == ListRequest::kAnyType;
  if (plain) return PickUniform(tables, slice, entries, counts);
  for (std::size_t i = 0; i < slice.rows.size(); ++i) {
    const std::size_t before = entries.size();
    for (const ListRequest& request : slice.requests) {
      PickList(tables, slice, i, request, entries);
    }
    counts[i] = entries.size() - before;
  }
}

void EntryPicker::PickAll(const DrawTables& tables, std::span<const Row> rows,
                          std::vector<EntryRef>& entries, std::vector<std::uint64_t>& counts) {
  entries.clear();
  counts.resize(rows.size());
  FindLists(tables, rows);
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    const std::size_t before = entries.size();
    AppendAll(lists_[i].pieces(), entries);
    counts[i] = entries.size() - before;
  }
}

// Fast path for the common case, with little work between one vertex and the next.
void EntryPicker::PickUniform(const DrawTables& tables, const FrontierSlice& slice,
                              std::vector<EntryRef>& entries, std::vector<std::uint64_t>& counts) {
  const std::int64_t fanout = slice.requests[0].fanout;
  const bool all = fanout == kAllNeighbors;
  const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(fanout, 0));
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    const std::span<const Piece> pieces = lists_[i].pieces();
    const std::uint64_t degree = LengthOf(pieces);
    const std::size_t before = entries.size();
    if (all || (degree <= wanted && !tables.replace)) {
      AppendAll(pieces, entries);
    } else if (degree > 0 && wanted > 0) {
      CounterRandom random({.seed = tables.seed,
                            .batch = slice.BatchOf(i),
                            .vertex = lists_[i].vertex,
                            .hop = slice.hop,
                            .stream = 0,
                            .subgraph = slice.subgraphs.empty() ? 0 : slice.subgraphs[i]});
      if (tables.replace) {
        PositionDrawer::WithReplacement(random, degree, wanted, positions_);
      } else {
        drawer_.WithoutReplacement(random, degree, wanted, positions_);
      }
      AppendEntries(pieces, positions_, entries);
    }
    counts[i] = entries.size() - before;
  }
}

void EntryPicker::PickList(const DrawTables& tables, const FrontierSlice& slice, std::size_t i,
                           const ListRequest& request, std::vector<EntryRef>& entries) {
  if (request.fanout == 0) return;
  const VertexList& list = lists_[i];
  std::span<const Piece> pieces = list.pieces();
  if (request.type != ListRequest::kAnyType) {
    tables.OnlyType(pieces, static_cast<TypeId>(request.type), typed_);
    pieces = typed_;
  }
  if (tables.times) {
    tables.times->Cut(pieces, slice.TimeOf(i), eligible_);
    pieces = eligible_;
  }
  if (LengthOf(pieces) == 0) return;
  CounterRandom random({.seed = tables.seed,
                        .batch = slice.BatchOf(i),
                        .vertex = list.vertex,
                        .hop = slice.hop,
                        .stream = static_cast<std::uint32_t>(request.type + 1),
                        .subgraph = slice.subgraphs.empty() ? 0 : slice.subgraphs[i]});
  DrawPositions(tables, request, random, pieces);
  if (!tables.times) return AppendEntries(pieces, positions_, entries);
  for (const std::uint64_t position : positions_) {
    const auto [piece, begin] = FindPiece(pieces, position);
    entries.push_back({tables.times->At(piece.partition, piece.first, position - begin),
                       piece.local, piece.partition});
  }
}

void EntryPicker::DrawPositions(const DrawTables& tables, const ListRequest& request,
                                CounterRandom& random, std::span<const Piece> pieces) {
  if (tables.weights) return DrawWeighted(tables, request, random, pieces);
  const std::uint64_t length = LengthOf(pieces);
  const bool all = request.fanout == kAllNeighbors;
  const std::uint64_t draws = all ? length : static_cast<std::uint64_t>(request.fanout);
  if (all || (draws >= length && !tables.replace)) {
    positions_.resize(length);
    for (std::uint64_t i = 0; i < length; ++i) positions_[i] = i;
  } else if (tables.replace) {
    PositionDrawer::WithReplacement(random, length, draws, positions_);
  } else if (tables.temporal_pick == TemporalPick::kLast) {
    tables.times->Latest(random, pieces, draws, drawer_, positions_);
  } else {
    drawer_.WithoutReplacement(random, length, draws, positions_);
  }
}

void EntryPicker::DrawWeighted(const DrawTables& tables, const ListRequest& request,
                               CounterRandom& random, std::span<const Piece> pieces) {
  const bool all = request.fanout == kAllNeighbors;
  const std::uint64_t draws = all ? LengthOf(pieces) : static_cast<std::uint64_t>(request.fanout);
  const WeightTable& weights = *tables.weights;
  if (!tables.times) {
    if (tables.replace && !all) {
      weighted_.WithReplacement(random, weights, pieces, draws, positions_);
    } else {
      weighted_.WithoutReplacement(random, weights, pieces, draws, positions_);
    }
    return;
  }
  // The time order permutes the entries of a list, so there are no partial sums, and every entry is
  // read.
  const auto weight_at = [&](std::uint64_t i) {
    const auto [piece, begin] = FindPiece(pieces, i);
    return weights.At(piece.partition, tables.times->At(piece.partition, piece.first, i - begin));
  };
  positions_.clear();
  if (tables.replace && !all) {
    weighted_.ByShares(random, LengthOf(pieces), weight_at, draws, positions_);
  } else {
    weighted_.ByKeys(random, LengthOf(pieces), weight_at, draws, positions_);
  }
}

}  // namespace internal
}  // namespace rhizome
