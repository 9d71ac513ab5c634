// The changes since a generation. With appends a run and merges runs of similar size; Load replays
// the catalogue's records through With. Look-ups search the runs from the newest to the oldest.

#include "index/delta/delta.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

namespace {

using Names = std::shared_ptr<const std::vector<std::string>>;

Names WithNames(const Names& names, const std::vector<std::string>& more) {
  if (more.empty()) return names;
  auto all = std::make_shared<std::vector<std::string>>(*names);
  all->insert(all->end(), more.begin(), more.end());
  return all;
}

}  // namespace

std::shared_ptr<const Delta> Delta::Empty(Base base) {
  std::shared_ptr<Delta> delta(new Delta);
  delta->sequence_ = base.sequence;
  delta->vertices_ = base.vertices;
  delta->vertex_types_ = std::make_shared<std::vector<std::string>>(base.vertex_types);
  delta->edge_types_ = std::make_shared<std::vector<std::string>>(base.edge_types);
  delta->base_ = std::move(base);
  return delta;
}

Result<std::shared_ptr<const Delta>> Delta::Load(std::shared_ptr<const Delta> from,
                                                 const Store& store) {
  RHIZOME_RETURN_IF_ERROR(store.ScanDelta(
      from->sequence(), [&](std::uint64_t sequence, std::span<const std::byte> record) {
        auto run = DecodeDeltaRecord(record, sequence, from->Context());
        if (!run)
          return run.error().WithContext(
              fmt::format("{}: delta, commit {}", store.path().string(), sequence));
        from = from->With(*std::move(run));
        return Status::Ok();
      }));
  return from;
}

std::shared_ptr<const Delta> Delta::With(DeltaRun run) const {
  std::shared_ptr<Delta> next(new Delta(*this));
  next->sequence_ = run.last_sequence;
  next->state_ = run.state;
  ++next->commits_;
  next->vertices_ += run.vertex_types.size();
  next->any_deleted_ = any_deleted_ || !run.deleted.empty();
  next->vertex_types_ = WithNames(vertex_types_, run.new_vertex_types);
  next->edge_types_ = WithNames(edge_types_, run.new_edge_types);
  for (const DeltaTexts& added : run.texts)
    for (const std::string& text : added.texts) next->text_bytes_ += text.size();
  auto& runs = next->runs_;
  runs.push_back(std::make_shared<const DeltaRun>(std::move(run)));
  while (runs.size() > 1 && runs[runs.size() - 2]->size() < 2 * runs.back()->size()) {
    const auto newer = std::move(runs.back());
    runs.pop_back();
    runs.back() = MergeRuns(*runs.back(), *newer);
  }
  return next;
}

std::uint64_t Delta::entries() const {
  std::uint64_t entries = 0;
  for (const auto& run : runs_) entries += run->size();
  return entries;
}

std::uint64_t Delta::deleted_vertices() const {
  std::uint64_t deleted = 0;
  for (const auto& run : runs_) deleted += run->deleted.size();
  return deleted;
}

DeltaContext Delta::Context() const {
  DeltaContext context{.symmetric = base_.symmetric,
                       .string_ids = base_.string_ids,
                       .attribute_count = base_.attribute_count,
                       .vertices = vertices_,
                       .vertex_types = vertex_types_->size(),
                       .edge_types = edge_types_->size(),
                       .previous = sequence_,
                       .first = runs_.empty(),
                       .texts = {}};
  for (const auto& run : runs_)
    for (const DeltaTexts& added : run->texts) context.texts[added.id] = added.end();
  return context;
}

std::optional<std::int64_t> Delta::FirstText(TextsId dictionary) const {
  for (const auto& run : runs_)
    if (const DeltaTexts* added = FindTexts(run->texts, dictionary)) return added->first;
  return std::nullopt;
}

std::optional<std::int64_t> Delta::EndOfTexts(TextsId dictionary) const {
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run)
    if (const DeltaTexts* added = FindTexts((*run)->texts, dictionary)) return added->end();
  return std::nullopt;
}

std::optional<std::int64_t> Delta::FindText(TextsId dictionary, std::string_view text) const {
  for (const auto& run : runs_) {
    const DeltaTexts* added = FindTexts(run->texts, dictionary);
    if (added == nullptr) continue;
    if (const auto code = added->Find(text)) return code;
  }
  return std::nullopt;
}

const std::string* Delta::TextOf(TextsId dictionary, std::int64_t code) const {
  for (const auto& run : runs_) {
    const DeltaTexts* added = FindTexts(run->texts, dictionary);
    if (added != nullptr && code >= added->first && code < added->end())
      return &added->texts[static_cast<std::size_t>(code - added->first)];
  }
  return nullptr;
}

std::optional<VertexId> Delta::Find(const ExternalId& id) const {
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    const auto vertex = (*run)->Find(id);
    // An older vertex with this id was deleted before the newest one was added.
    if (vertex) return IsDeleted(*vertex) ? std::nullopt : vertex;
  }
  return std::nullopt;
}

bool Delta::IsDeleted(VertexId vertex) const {
  return any_deleted_ && std::any_of(runs_.begin(), runs_.end(),
                                     [&](const auto& run) { return run->IsDeleted(vertex); });
}

const DeltaRun& Delta::RunOf(VertexId vertex) const {
  RHIZOME_CHECK(static_cast<std::uint64_t>(vertex) >= base_.vertices &&
                static_cast<std::uint64_t>(vertex) < vertices_);
  auto run = runs_.rbegin();
  while ((*run)->first_vertex > vertex) ++run;
  return **run;
}

const ExternalId& Delta::IdOf(VertexId vertex) const {
  const DeltaRun& run = RunOf(vertex);
  return run.vertex_ids[static_cast<std::size_t>(vertex - run.first_vertex)];
}

TypeId Delta::TypeOf(VertexId vertex) const {
  const DeltaRun& run = RunOf(vertex);
  return run.vertex_types[static_cast<std::size_t>(vertex - run.first_vertex)];
}

std::optional<std::uint64_t> Delta::RowCommit(std::uint64_t array_id, VertexId vertex) const {
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (const DeltaRowRef* row = (*run)->FindRow(array_id, vertex)) return row->sequence;
  }
  return std::nullopt;
}

bool Delta::Touches(VertexId vertex, Direction direction) const {
  return any_deleted_ || std::any_of(runs_.begin(), runs_.end(), [&](const auto& run) {
           return !run->ListOf(vertex, direction, base_.symmetric).empty();
         });
}

Delta::ListChanges Delta::ChangesOf(VertexId vertex, Direction direction) const {
  ListChanges changes;
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    const auto list = (*run)->ListOf(vertex, direction, base_.symmetric);
    const std::size_t newer = changes.erased.size();  // sorted
    for (const DeltaEdge& edge : list) {
      const auto end = changes.erased.begin() + static_cast<std::ptrdiff_t>(newer);
      const bool gone = std::binary_search(changes.erased.begin(), end, edge, KeyLess);
      if (!edge.erase && !gone) changes.added.push_back(edge);
      if (edge.erase && !gone) changes.erased.push_back(edge);
    }
    std::inplace_merge(changes.erased.begin(),
                       changes.erased.begin() + static_cast<std::ptrdiff_t>(newer),
                       changes.erased.end(), KeyLess);
  }
  std::stable_sort(changes.added.begin(), changes.added.end(), KeyLess);
  return changes;
}

std::shared_ptr<const DeltaRun> Delta::Merged() const {
  if (runs_.empty()) return nullptr;
  auto merged = runs_.back();
  for (auto run = runs_.rbegin() + 1; run != runs_.rend(); ++run)
    merged = MergeRuns(**run, *merged);
  return merged;
}

}  // namespace internal
}  // namespace rhizome
