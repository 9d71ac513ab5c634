#include "index/arrays/publish_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "index/arrays/moved_array.h"
#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/delta/stale_vertices.h"
#include "index/delta/type_facts.h"
#include "index/topology/type_rows.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/base/mutant.h"
#include "storage/store/store_files.h"

namespace rhizome {
inline namespace internal {
namespace {

using Steps = std::function<Status(ArrayChange& change, const ArraySource& source)>;

/// Checks that `current` is a later state of the store for which the array was computed: in the
/// meantime the path may lead to a copy.
Status CheckContinues(const MadeArray& made, const Store& current) {
  const Store& before = made.made_for;
  const auto refuse = [&](std::string_view what) {
    return Status::InvalidArgument(fmt::format(
        "'{}' is {} than the one that the array was computed for; run the job again on it",
        current.path().string(), what));
  };
  if (current.id() != before.id()) return refuse("another store");
  if (current.manifest().generation == before.manifest().generation &&
      HashOfGraph(current.manifest()) != HashOfGraph(before.manifest()))
    return refuse("a different, diverged copy of the store");
  RHIZOME_ASSIGN_OR_RETURN(const bool same, IsOfHistory(made.source.arrays.front(), current));
  return same ? Status::Ok() : refuse("a different, diverged copy of the store");
}

/// Returns the number of vertices from `first` on that are not deleted and may have a row in the
/// array.
Result<std::uint64_t> CountWithoutRow(const ArrayEntry& array, std::uint64_t first,
                                      const Store& current, const Delta& delta) {
  const auto type = TypeNamed(delta.vertex_types(), BoundType(array));
  std::optional<VertexOrder> order;
  if (type) {
    RHIZOME_ASSIGN_OR_RETURN(order, LoadOrder(current));
  }
  std::uint64_t count = 0;
  for (std::uint64_t v = first; v < delta.vertices(); ++v) {
    const auto vertex = static_cast<VertexId>(v);
    const bool of_type = !type || TypeOfVertex(*order, delta, vertex) == *type;
    if (of_type && !delta.IsDeleted(vertex)) ++count;
  }
  return count;
}

/// Publishes the array in the generation of `current`.
Status PublishIn(const Path& path, const MadeArray& made, const Store& current,
                 const JobControl& control, const Steps& steps) {
  FileSystem& fs = current.fs();
  const Manifest& manifest = current.manifest();
  const ChangedStore expected{.generation = manifest.generation,
                              .id = made.made_for.id(),
                              .wait = {.seconds = made.wait_seconds, .control = &control}};
  const bool as_it_is = (manifest.generation == made.made_for.manifest().generation ||
                         RHIZOME_MUTANT("array is published where rows moved")) &&
                        made.source.arrays.front().rows == manifest.info.vertices;
  if (as_it_is) {
    return ArrayChange::Run(fs, path, expected,
                            [&](ArrayChange& change) { return steps(change, made.source); });
  }
  MovedArray moved(made, current, made.source.root / fmt::format("moved-{}", manifest.generation),
                   control);
  RHIZOME_RETURN_IF_ERROR(moved.Write());
  return ArrayChange::Run(fs, path, expected, [&](ArrayChange& change) -> Status {
    RHIZOME_RETURN_IF_ERROR(steps(change, moved.source()));
    return moved.PublishRest(change);
  });
}

}  // namespace

Result<PublishReport> PublishMade(const Path& path, const MadeArray& made,
                                  const JobControl& control, const Steps& steps) {
  const std::uint64_t rows =
      std::max(RowsGiven(made.source.arrays.front()), made.made_for.manifest().info.vertices);
  while (true) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(
        const auto current,
        Store::Open(made.made_for.fs(), path, Store::Mode::kRead, {.id = made.made_for.id()}));
    RHIZOME_RETURN_IF_ERROR(CheckContinues(made, *current));
    RHIZOME_ASSIGN_OR_RETURN(const auto delta,
                             Delta::Load(Delta::Empty(DeltaBaseOf(*current)), *current));
    const std::uint64_t generation = current->manifest().generation;
    const Status status = PublishIn(path, made, *current, control, steps);
    if (status.ok()) {
      PublishReport report{.generation = generation};
      RHIZOME_ASSIGN_OR_RETURN(report.new_vertices,
                               CountWithoutRow(made.source.arrays.front(), rows, *current, *delta));
      return report;
    }
    if (status.code() != StatusCode::kInvalidArgument) return Fail(status);
    // The refusal may be due to another compaction; then the loop repeats.
    RHIZOME_ASSIGN_OR_RETURN(
        const auto now,
        Store::Open(made.made_for.fs(), path, Store::Mode::kRead, {.id = made.made_for.id()}));
    if (now->manifest().generation == generation) return Fail(status);
  }
}

}  // namespace internal
}  // namespace rhizome
