#include "index/sample/joined_neighbors.h"

#include <utility>
#include <vector>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

JoinedNeighbors::JoinedNeighbors(const GraphSnapshot& graph,
                                 std::shared_ptr<const NeighborSource> out,
                                 std::shared_ptr<const NeighborSource> in)
    : sides_(graph, Direction::kBoth), sources_{std::move(out), std::move(in)} {
  RHIZOME_CHECK(sides_.count() == 2);
}

// Divides the entries by side without changing their order, so that entries of one list remain
// adjacent.
Status JoinedNeighbors::LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const {
  RHIZOME_CHECK(entries.size() == rows.size());
  std::vector<EntryRef> of_side;
  std::vector<std::size_t> places;
  std::vector<Row> found;
  for (std::size_t side = 0; side < sources_.size(); ++side) {
    of_side.clear();
    places.clear();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (sides_.SideOf(entries[i].partition) != side) continue;
      of_side.push_back(entries[i]);
      of_side.back().partition = sides_.Within(entries[i].partition);
      places.push_back(i);
    }
    if (of_side.empty()) continue;
    found.resize(of_side.size());
    RHIZOME_RETURN_IF_ERROR(sources_[side]->LookUp(of_side, found));
    for (std::size_t i = 0; i < places.size(); ++i) rows[places[i]] = found[i];
  }
  return Status::Ok();
}

bool JoinedNeighbors::wants_whole_hops() const {
  return sources_[0]->wants_whole_hops() || sources_[1]->wants_whole_hops();
}

}  // namespace internal
}  // namespace rhizome
