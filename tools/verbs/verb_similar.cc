#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "elements.h"
#include "id_text.h"
#include "rhizome/storage/array_versions.h"
#include "text.h"
#include "verbs.h"
#include "vertex_array.h"

namespace rhizome {
namespace {

struct SimilarFlags {
  std::string store;
  std::string id;
  std::vector<std::string> arrays;
  std::uint64_t k = 10;
};

struct Scored {
  double score = 0;
  VertexId vertex = 0;

  /// Orders the best first, ties by vertex id, so that the answer does not depend on the order of
  /// rows.
  friend bool operator<(const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.vertex < b.vertex;
  }
};

/// Keeps the k best of the candidates that it is offered, in a heap whose front is the worst.
class TopK {
 public:
  explicit TopK(std::uint64_t k) : k_(k) {}
  void Offer(const Scored& candidate) {
    if (best_.size() == k_ && !(candidate < best_.front())) return;
    best_.push_back(candidate);
    std::push_heap(best_.begin(), best_.end());
    if (best_.size() <= k_) return;
    std::pop_heap(best_.begin(), best_.end());
    best_.pop_back();
  }
  std::vector<Scored> Sorted() && {
    std::sort_heap(best_.begin(), best_.end());
    return std::move(best_);
  }

 private:
  std::uint64_t k_;
  std::vector<Scored> best_;
};

/// Returns the cosine of two rows of equal length, or NaN if either is all zeros, like the row of a
/// vertex that has none. Sums are in double.
double Cosine(std::span<const float> a, double a_norm, std::span<const float> b) {
  double dot = 0;
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += double{a[i]} * double{b[i]};
    squares += double{b[i]} * double{b[i]};
  }
  return dot / (a_norm * std::sqrt(squares));
}

/// Returns the k rows of `array` that are nearest to that of `vertex`, without itself: (1) reads
/// the row of `vertex`; (2) compares the rows that were put since the generation; (3) streams the
/// chunks in row order, one in memory at a time, and compares all other rows.
Result<std::vector<Scored>> Nearest(const GraphSnapshot& graph, const ChunkArray& array,
                                    VertexId vertex, std::uint64_t k, const JobControl& control) {
  const ArrayEntry& entry = array.entry();
  RHIZOME_ASSIGN_OR_RETURN(const auto raw_query, ReadVertexRow(graph, array, vertex));
  std::vector<float> query(entry.dim);
  ToFloats(entry.dtype, raw_query, query);
  double squares = 0;
  for (const float x : query) squares += double{x} * double{x};
  const double norm = std::sqrt(squares);
  if (!(norm > 0)) {
    return Fail(Status::InvalidArgument(fmt::format(
        "the row of {} in '{}' is all zeros or not finite: it has no direction to compare",
        ToString(*graph.ExternalIdOf(vertex)), ShownName(entry.name))));
  }
  TopK best(k);
  const std::vector<VertexId> changed = graph.ChangedRows(entry);
  const auto is_changed = [&](VertexId other) {
    return std::binary_search(changed.begin(), changed.end(), other);
  };
  std::vector<std::byte> raw;
  std::vector<float> rows(entry.dim);
  for (const VertexId other : changed) {
    if (other == vertex) continue;
    RHIZOME_ASSIGN_OR_RETURN(raw, ReadVertexRow(graph, array, other));
    ToFloats(entry.dtype, raw, rows);
    const double score = Cosine(query, norm, rows);
    if (!std::isnan(score)) best.Offer({score, other});
  }
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "comparing", .done = chunk, .total = entry.chunk_count()}));
    const std::uint64_t count = array.RowsInChunk(chunk);
    raw.resize(count * entry.row_bytes());
    rows.resize(count * entry.dim);
    RHIZOME_RETURN_IF_ERROR(array.ReadChunk(chunk, raw));
    ToFloats(entry.dtype, raw, rows);
    for (std::uint64_t r = 0; r < count; ++r) {
      const VertexId other = *graph.VertexAt(static_cast<Row>(chunk * entry.chunk_rows + r));
      if (other == vertex || graph.IsDeleted(other) || is_changed(other)) continue;
      const double score = Cosine(query, norm, std::span(rows).subspan(r * entry.dim, entry.dim));
      if (!std::isnan(score)) best.Offer({score, other});
    }
  }
  return std::move(best).Sorted();
}

Result<Json> SimilarJson(const OpenedGraph& opened, const std::optional<ClassNames>& labels,
                         const std::string& name, VertexId vertex, std::uint64_t k,
                         const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(name));
  RHIZOME_RETURN_IF_ERROR(CheckVertexArray(array->entry()));
  RHIZOME_ASSIGN_OR_RETURN(const auto nearest, Nearest(*opened.graph, *array, vertex, k, control));
  Json list = Json::array();
  for (const Scored& scored : nearest) {
    Json label = nullptr;
    if (labels) {
      RHIZOME_ASSIGN_OR_RETURN(label, labels->Of(*opened.graph, scored.vertex));
    }
    list.push_back({{"id", IdJson(*opened.graph->ExternalIdOf(scored.vertex))},
                    {"label", std::move(label)},
                    {"score", scored.score}});
  }
  return list;
}

std::string Text(const Json& value) { return value.is_null() ? std::string() : ShownId(value); }

/// Describes the answer as a block of columns (id, label, score) for each array, side by side.
std::string DescribeSimilar(const Json& f) {
  const std::string label = Text(f["label"]);
  std::string text = Text(f["id"]) + (label.empty() ? "" : "  (" + label + ")") + "\n";
  TextTable table({0});
  std::vector<std::string> head = {""};
  std::size_t rows = 0;
  for (const auto& [name, list] : f["by_array"].items()) {
    head.insert(head.end(), {"by " + name, "", "", ""});
    rows = std::max(rows, list.size());
  }
  head.erase(head.end() - 1);
  table.Add(std::move(head));
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<std::string> row = {std::to_string(i + 1)};
    for (const auto& [name, list] : f["by_array"].items()) {
      if (i < list.size()) {
        row.insert(row.end(), {Text(list[i]["id"]), Text(list[i]["label"]),
                               fmt::format("{:.3f}", list[i]["score"].get<double>()), ""});
      } else {
        row.insert(row.end(), {"", "", "", ""});
      }
    }
    row.pop_back();
    table.Add(std::move(row));
  }
  return text + table.ToString();
}

Result<Answer> RunSimilar(const SimilarFlags& flags, Session& session) {
  for (const std::string& name : flags.arrays) {
    RHIZOME_RETURN_IF_ERROR(ParseArrayReference(name));
  }
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened, OpenGraph(flags.store, session));
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, opened.graph->FindText(flags.id));
  RHIZOME_ASSIGN_OR_RETURN(const std::optional<ClassNames> labels, ClassNames::Open(opened));
  Json label = nullptr;
  if (labels) {
    RHIZOME_ASSIGN_OR_RETURN(label, labels->Of(*opened.graph, vertex));
  }
  Json by_array = Json::object();
  for (const std::string& name : flags.arrays) {
    RHIZOME_ASSIGN_OR_RETURN(by_array[name],
                             SimilarJson(opened, labels, name, vertex, flags.k, session.control));
  }
  Json fields = {{"id", IdJson(*opened.graph->ExternalIdOf(vertex))},
                 {"label", std::move(label)},
                 {"array", flags.arrays.front()},
                 {"similar", by_array[flags.arrays.front()]},
                 {"by_array", std::move(by_array)}};
  for (const std::string& name : flags.arrays) {
    RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(name));
    RHIZOME_RETURN_IF_ERROR(TellStale(session, *opened.graph, array->entry(), fields));
  }
  return Answer{std::move(fields), DescribeSimilar, {}};
}

}  // namespace

void AddSimilarVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<SimilarFlags>();
  CLI::App* verb =
      AddVerb(root, session, "similar", "Nearest vertices by cosine; several arrays side by side",
              "rhizome similar demo.rz 7 --array embedding --array feat --k 5", flags, RunSimilar);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("ID", flags->id, "The vertex, by its external id")->required();
  verb->add_option("--array", flags->arrays, "The array to compare; may be repeated")
      ->required()
      ->allow_extra_args(false)
      ->type_name("NAME");
  verb->add_option("-k,--k", flags->k, "How many")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000}))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace rhizome
