#include "tools/verbs/vertex_array.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "index/base/staleness.h"
#include "index/homes/home_array.h"
#include "rhizome/task_metrics.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "tools/cli/text.h"
#include "tools/import/elements.h"

namespace rhizome {

Status CheckVertexArray(const ArrayEntry& entry) {
  if (!IsOfEdges(entry)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}' is an edge attribute: its rows belong to the edge ids of a partition, not "
                  "to vertices; export writes them in that order",
                  ShownName(entry.name)));
}

std::string LostRowsOf(const ArrayEntry& entry) {
  for (const auto& [key, value] : entry.attributes)
    if (key == kLostRowsAttribute) return value;
  return {};
}

std::string_view ShownMissingRow(const ArrayEntry& entry) {
  switch (MissingRowOf(entry)) {
    case MissingRow::kZeros:
      return "zeros";
    case MissingRow::kNoLabel:
      return "-1 (none)";
    case MissingRow::kNoSplit:
      return "255 (none)";
  }
  return "zeros";
}

std::vector<CardArray> CardArrays(const Manifest& manifest) {
  std::set<std::string> marks;
  for (const ArrayEntry& entry : manifest.arrays) marks.insert(StaleName(entry.name));
  std::vector<CardArray> shown;
  for (const ArrayEntry& entry : manifest.arrays) {
    const auto version = SplitVersion(entry.name);
    const std::string name(version ? version->first : std::string_view(entry.name));
    const bool derived = entry.name.ends_with(kSidecarSuffix) || marks.contains(entry.name);
    if (IsOfEdges(entry) || derived || name == kHomeArray || (name == "label" && entry.dim == 1))
      continue;
    const ArrayEntry* const meant = manifest.FindArray(name);
    if (meant != nullptr && meant->name == entry.name) shown.push_back({name, meant});
  }
  return shown;
}

Json SplitText(const Json& value) {
  constexpr const char* kNames[] = {"train", "valid", "test"};
  if (!value.is_number_integer()) return value;
  const auto set = value.get<std::int64_t>();
  if (set == static_cast<std::int64_t>(Split::kNone)) return "none";
  return set >= 0 && set < 3 ? Json(kNames[set]) : value;
}

const char* DirectionOfList(const GraphSnapshot& graph, Direction list) {
  if (graph.info().symmetric) return "both";
  return list == Direction::kOut ? "out" : "in";
}

namespace {

void WarnLostRows(const Session& session, const ArrayEntry& entry, Json& fields) {
  const std::string lost = LostRowsOf(entry);
  if (lost.empty()) return;
  fields["lost_rows"].push_back({{"array", ShownName(entry.name)}, {"rows", lost}});
  Tell(
      session, "note",
      fmt::format("array {}: rows {} (in the order at that time) were lost in a repair, and are {} "
                  "unless they were put again",
                  ShownName(entry.name), lost, ShownMissingRow(entry)));
}

}  // namespace

Status WarnIfStale(const Session& session, const GraphSnapshot& graph, const ArrayEntry& entry,
                   Json& fields, std::optional<VertexId> row_of) {
  WarnLostRows(session, entry, fields);
  RHIZOME_ASSIGN_OR_RETURN(const Staleness staleness, graph.StalenessOf(entry));
  if (!staleness.any()) return Status::Ok();
  Json found = {{"array", ShownName(entry.name)},
                {"marked_rows", staleness.marked_rows},
                {"written_since", staleness.written_since}};
  std::string what;
  if (staleness.marked_rows != 0)
    what = fmt::format("{} stale, according to {}", Plural(staleness.marked_rows, "row"),
                       ShownName(StaleName(entry.name)));
  if (staleness.written_since)
    what +=
        std::string(what.empty() ? "" : "; ") + "the graph was written to since it was computed";
  const std::string marks = StaleName(entry.name);
  if (row_of && graph.store().manifest().FindArray(marks) != nullptr) {
    std::byte mark{};
    RHIZOME_RETURN_IF_ERROR(graph.ReadRows(marks, std::span(&*row_of, 1), std::span(&mark, 1)));
    found["row_marked"] = mark != std::byte{0};
    what += mark != std::byte{0} ? "; this row is marked as stale"
                                 : "; this row is not marked as stale";
  }
  fields["stale"].push_back(std::move(found));
  Tell(session, "note",
       fmt::format("array {}: {}; infer --incremental updates it", ShownName(entry.name), what));
  return Status::Ok();
}

}  // namespace rhizome
