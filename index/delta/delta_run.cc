// A run of changes. DeltaRunBuilder collects the changes of one commit, and its Finish sorts them,
// drops edges that a later tombstone erases, and numbers the remaining edges. MergeRuns merges two
// consecutive runs in one pass over each sorted list.

#include "index/delta/delta_run.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

namespace {

bool SameKey(const DeltaEdge& a, const DeltaEdge& b) {
  return a.vertex == b.vertex && a.type == b.type && a.neighbor == b.neighbor;
}

bool RowLess(const DeltaRowRef& a, const DeltaRowRef& b) {
  return std::tie(a.array_id, a.vertex) < std::tie(b.array_id, b.vertex);
}

// Sorts entries by key. For each key, keeps the entries from the last tombstone on, in the order in
// which they were added.
void SortEdges(std::vector<DeltaEdge>& edges) {
  std::stable_sort(edges.begin(), edges.end(), KeyLess);
  auto out = edges.begin();
  for (auto first = edges.begin(); first != edges.end();) {
    auto last = first;
    auto kept = first;
    for (; last != edges.end() && SameKey(*first, *last); ++last)
      if (last->erase) kept = last;
    out = std::move(kept, last, out);
    first = last;
  }
  edges.erase(out, edges.end());
}

// Numbers the remaining edges in the order of `out`. The commit's record has the same order, so
// every process that reads it assigns the same numbers.
void NumberEdges(DeltaRun& run) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> numbers(std::exchange(run.numbered, 0), kNone);
  const std::vector<std::int64_t> attributes = std::exchange(run.attributes, {});
  for (DeltaEdge& edge : run.out) {
    if (edge.erase) continue;
    std::uint32_t& number = numbers[edge.number];
    if (number == kNone) {
      number = run.numbered++;
      const auto first = attributes.begin() + static_cast<std::ptrdiff_t>(std::size_t{edge.number} *
                                                                          run.attribute_count);
      run.attributes.insert(run.attributes.end(), first, first + run.attribute_count);
    }
    edge.number = number;
  }
}

// Returns the same changes seen from the other end.
std::vector<DeltaEdge> Reversed(std::vector<DeltaEdge> edges) {
  for (DeltaEdge& edge : edges) std::swap(edge.vertex, edge.neighbor);
  std::stable_sort(edges.begin(), edges.end(), KeyLess);
  return edges;
}

// Merges the edges of two runs. A tombstone in the newer run replaces all entries of its key in the
// older run.
std::vector<DeltaEdge> MergeEdges(const std::vector<DeltaEdge>& older,
                                  const std::vector<DeltaEdge>& newer, std::uint32_t first_number) {
  std::vector<DeltaEdge> merged;
  merged.reserve(older.size() + newer.size());
  auto a = older.begin();
  const auto take_newer = [&](const DeltaEdge& edge) {
    merged.push_back(edge);
    merged.back().number += first_number;
  };
  for (auto b = newer.begin(); b != newer.end();) {
    while (a != older.end() && KeyLess(*a, *b)) merged.push_back(*a++);
    const DeltaEdge& key = *b;
    for (; a != older.end() && SameKey(*a, key); ++a)
      if (!key.erase) merged.push_back(*a);
    for (const auto first = b; b != newer.end() && SameKey(*b, *first); ++b) take_newer(*b);
  }
  merged.insert(merged.end(), a, older.end());
  return merged;
}

template <typename T>
std::vector<T> Joined(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> all;
  all.reserve(a.size() + b.size());
  all.insert(all.end(), a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace

std::span<const DeltaEdge> DeltaRun::ListOf(VertexId vertex, Direction direction,
                                            bool symmetric) const {
  const std::vector<DeltaEdge>& all = list(direction, symmetric);
  const auto [first, last] =
      std::equal_range(all.begin(), all.end(), DeltaEdge{.vertex = vertex},
                       [](const DeltaEdge& a, const DeltaEdge& b) { return a.vertex < b.vertex; });
  return {first, last};
}

bool DeltaRun::IsDeleted(VertexId vertex) const {
  return std::binary_search(deleted.begin(), deleted.end(), vertex);
}

std::optional<VertexId> DeltaRun::Find(const ExternalId& id) const {
  const auto after = std::upper_bound(
      ids_sorted.begin(), ids_sorted.end(), id,
      [&](const ExternalId& wanted, std::uint32_t i) { return wanted < vertex_ids[i]; });
  if (after == ids_sorted.begin() || vertex_ids[*(after - 1)] != id) return std::nullopt;
  return first_vertex + static_cast<VertexId>(*(after - 1));
}

const DeltaRowRef* DeltaRun::FindRow(std::uint64_t array_id, VertexId vertex) const {
  const DeltaRowRef wanted{array_id, vertex, 0};
  const auto at = std::lower_bound(rows.begin(), rows.end(), wanted, RowLess);
  return at != rows.end() && !RowLess(wanted, *at) ? &*at : nullptr;
}

std::shared_ptr<const DeltaRun> MergeRuns(const DeltaRun& older, const DeltaRun& newer) {
  auto merged = std::make_shared<DeltaRun>();
  merged->first_sequence = older.first_sequence;
  merged->last_sequence = newer.last_sequence;
  merged->state = newer.state;
  merged->attribute_count = older.attribute_count;
  merged->attributes = Joined(older.attributes, newer.attributes);
  merged->numbered = older.numbered + newer.numbered;
  merged->out = MergeEdges(older.out, newer.out, older.numbered);
  merged->in = MergeEdges(older.in, newer.in, older.numbered);
  merged->first_vertex = older.first_vertex;
  merged->vertex_types = Joined(older.vertex_types, newer.vertex_types);
  merged->vertex_ids = Joined(older.vertex_ids, newer.vertex_ids);
  merged->ids_sorted.reserve(merged->vertex_ids.size());
  const auto shift = static_cast<std::uint32_t>(older.vertex_ids.size());
  std::vector<std::uint32_t> later = newer.ids_sorted;
  for (std::uint32_t& index : later) index += shift;
  std::merge(older.ids_sorted.begin(), older.ids_sorted.end(), later.begin(), later.end(),
             std::back_inserter(merged->ids_sorted), [&](std::uint32_t a, std::uint32_t b) {
               return merged->vertex_ids[a] < merged->vertex_ids[b];
             });
  std::set_union(older.deleted.begin(), older.deleted.end(), newer.deleted.begin(),
                 newer.deleted.end(), std::back_inserter(merged->deleted));
  // For equal rows, set_union keeps the one of the first range.
  std::set_union(newer.rows.begin(), newer.rows.end(), older.rows.begin(), older.rows.end(),
                 std::back_inserter(merged->rows), RowLess);
  merged->new_edge_types = Joined(older.new_edge_types, newer.new_edge_types);
  merged->new_vertex_types = Joined(older.new_vertex_types, newer.new_vertex_types);
  merged->texts = MergeTexts(older.texts, newer.texts);
  return merged;
}

DeltaRunBuilder::DeltaRunBuilder(bool symmetric, std::uint32_t attribute_count,
                                 VertexId first_vertex)
    : symmetric_(symmetric) {
  run_.attribute_count = attribute_count;
  run_.first_vertex = first_vertex;
}

void DeltaRunBuilder::AddEdge(VertexId src, VertexId dst, TypeId type, float weight,
                              std::span<const std::int64_t> attributes) {
  const std::uint32_t number = run_.numbered++;
  run_.attributes.insert(run_.attributes.end(), attributes.begin(), attributes.end());
  run_.attributes.resize(std::size_t{run_.numbered} * run_.attribute_count);
  run_.out.push_back({src, dst, type, false, weight, number});
  if (symmetric_ && src != dst) run_.out.push_back({dst, src, type, false, weight, number});
}

void DeltaRunBuilder::EraseEdges(VertexId src, VertexId dst, TypeId type) {
  run_.out.push_back({src, dst, type, true});
  if (symmetric_ && src != dst) run_.out.push_back({dst, src, type, true});
}

VertexId DeltaRunBuilder::AddVertex(ExternalId id, TypeId type) {
  run_.vertex_ids.push_back(std::move(id));
  run_.vertex_types.push_back(type);
  return run_.first_vertex + static_cast<VertexId>(run_.vertex_types.size()) - 1;
}

void DeltaRunBuilder::AddText(TextsId dictionary, std::int64_t code, std::string text) {
  const auto at = std::lower_bound(run_.texts.begin(), run_.texts.end(), dictionary,
                                   [](const DeltaTexts& one, TextsId id) { return one.id < id; });
  const bool known = at != run_.texts.end() && at->id == dictionary;
  DeltaTexts& added =
      known ? *at : *run_.texts.insert(at, DeltaTexts{.id = dictionary, .first = code});
  RHIZOME_CHECK(added.end() == code);
  added.texts.push_back(std::move(text));
}

DeltaRun DeltaRunBuilder::Finish(std::uint64_t sequence) {
  DeltaRun run = std::exchange(run_, {});
  run.first_sequence = run.last_sequence = sequence;
  SortEdges(run.out);
  NumberEdges(run);
  if (!symmetric_) run.in = Reversed(run.out);
  run.ids_sorted.resize(run.vertex_ids.size());
  std::iota(run.ids_sorted.begin(), run.ids_sorted.end(), 0U);
  std::stable_sort(
      run.ids_sorted.begin(), run.ids_sorted.end(),
      [&](std::uint32_t a, std::uint32_t b) { return run.vertex_ids[a] < run.vertex_ids[b]; });
  std::sort(run.deleted.begin(), run.deleted.end());
  run.deleted.erase(std::unique(run.deleted.begin(), run.deleted.end()), run.deleted.end());
  for (DeltaTexts& added : run.texts) added.Sort();
  for (DeltaRowRef& row : run.rows) row.sequence = sequence;
  std::sort(run.rows.begin(), run.rows.end(), RowLess);
  const auto same = [](const DeltaRowRef& a, const DeltaRowRef& b) {
    return !RowLess(a, b) && !RowLess(b, a);
  };
  run.rows.erase(std::unique(run.rows.begin(), run.rows.end(), same), run.rows.end());
  return run;
}

}  // namespace internal
}  // namespace rhizome
