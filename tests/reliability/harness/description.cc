// Describes a store as text: Describe lists generation, arrays (DescribeArrays), the hash of the
// commits, and a line for each vertex with its neighbours and rows (DescribeVertex, DescribeRow).

#include "reliability/harness/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/store.h"
#include "rhizome/text_values.h"
#include "storage/array/array_facts.h"
#include "storage/base/hash.h"

namespace rhizome::testing {
namespace {

Status DescribeList(const GraphSnapshot& graph, VertexId vertex, Direction direction,
                    std::string& out) {
  RHIZOME_ASSIGN_OR_RETURN(auto list, graph.Neighbors(vertex, direction));
  std::vector<std::string> names;
  for (const Neighbor& neighbor : list) {
    names.push_back(fmt::format("{}:{}:{}", ToString(*graph.ExternalIdOf(neighbor.vertex)),
                                graph.edge_types()[neighbor.type], neighbor.weight));
  }
  std::sort(names.begin(), names.end());
  out += fmt::format(" {}[{}]", direction == Direction::kOut ? "out" : "in", fmt::join(names, " "));
  return Status::Ok();
}

bool IsOfVertices(const GraphSnapshot& graph, const ArrayEntry& array) {
  return !array.name.ends_with(".crc32c") && array.rows == graph.info().vertices;
}

/// The rows in an array of those vertices that may have one.
struct Rows {
  std::string array;
  std::uint64_t row_bytes = 0;
  std::vector<VertexId> vertices;
  std::vector<std::byte> bytes;
  std::vector<std::string> texts;  // of the rows, if they are codes of texts
};

/// Returns the vertices that may have a row: in a bound array, the vertices of its type.
Result<std::vector<VertexId>> VerticesWithRow(const GraphSnapshot& graph, const ArrayEntry& array,
                                              const std::vector<VertexId>& vertices) {
  const std::string_view bound = BoundType(array);
  if (bound.empty()) return vertices;
  std::vector<VertexId> out;
  for (const VertexId vertex : vertices) {
    RHIZOME_ASSIGN_OR_RETURN(const TypeId type, graph.TypeOf(vertex));
    if (graph.vertex_types()[type] == bound) out.push_back(vertex);
  }
  return out;
}

/// Returns a summary of all texts of an edge attribute.
Result<std::string> DescribeTexts(const GraphSnapshot& graph, const EdgeAttributeInfo& attribute) {
  RHIZOME_ASSIGN_OR_RETURN(const auto texts, TextValues::OpenIfAny(graph, attribute.name));
  if (texts == nullptr) return std::string();
  RHIZOME_ASSIGN_OR_RETURN(const auto all, texts->All(1000));
  return fmt::format("texts of {}: {}\n", attribute.name, fmt::join(all, "; "));
}

Result<std::vector<Rows>> ReadAllRows(const GraphSnapshot& graph,
                                      const std::vector<VertexId>& vertices) {
  std::vector<Rows> out;
  for (const ArrayEntry& array : graph.store().manifest().arrays) {
    if (!IsOfVertices(graph, array)) continue;
    Rows& rows = out.emplace_back(Rows{array.name, array.row_bytes(), {}, {}, {}});
    RHIZOME_ASSIGN_OR_RETURN(rows.vertices, VerticesWithRow(graph, array, vertices));
    rows.bytes.resize(rows.vertices.size() * rows.row_bytes);
    RHIZOME_RETURN_IF_ERROR(graph.ReadRows(array.name, rows.vertices, rows.bytes));
    RHIZOME_ASSIGN_OR_RETURN(const auto texts, TextValues::OpenIfAny(graph, array.name));
    if (texts == nullptr) continue;
    RHIZOME_ASSIGN_OR_RETURN(rows.texts, texts->TextsOfVertices(rows.vertices));
  }
  return out;
}

std::string Hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : bytes) {
    out += kDigits[std::to_integer<std::size_t>(byte) / 16];
    out += kDigits[std::to_integer<std::size_t>(byte) % 16];
  }
  return out;
}

/// Describes the row of a vertex, if it may have one.
void DescribeRow(const Rows& rows, VertexId vertex, std::string& out) {
  const auto found = std::ranges::lower_bound(rows.vertices, vertex);
  if (found == rows.vertices.end() || *found != vertex) return;
  const auto at = static_cast<std::size_t>(found - rows.vertices.begin());
  const auto row = std::span(rows.bytes).subspan(at * rows.row_bytes, rows.row_bytes);
  out += fmt::format(" {}={}", rows.array, Hex(row));
  if (!rows.texts.empty()) out += fmt::format("'{}'", rows.texts[at]);
}

Status DescribeVertex(const GraphSnapshot& graph, VertexId vertex, std::string& out) {
  out += fmt::format("vertex {} {} {}", vertex, ToString(*graph.ExternalIdOf(vertex)),
                     graph.vertex_types()[*graph.TypeOf(vertex)]);
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    const Direction kept = graph.info().directions;
    if (kept == Direction::kBoth || kept == direction)
      RHIZOME_RETURN_IF_ERROR(DescribeList(graph, vertex, direction, out));
  }
  return Status::Ok();
}

/// Returns a hash of the rows of an array, read a few at a time like a job does: through verified
/// whole chunks, whereas a graph reads and verifies single rows.
Result<Hash128> HashRows(const Store& store, const ArrayEntry& entry) {
  constexpr std::uint64_t kRowsAtOnce = 11;
  RHIZOME_ASSIGN_OR_RETURN(const auto array, store.OpenArray(entry.name));
  std::vector<std::byte> rows(entry.rows * entry.row_bytes());
  for (std::uint64_t row = 0; row < entry.rows; row += kRowsAtOnce) {
    const std::uint64_t count = std::min(kRowsAtOnce, entry.rows - row);
    const auto out = std::span(rows).subspan(row * entry.row_bytes(), count * entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(array->ReadRows(row, count, out));
  }
  return Xxh3(rows);
}

}  // namespace

Result<std::string> DescribeArrays(const Store& store) {
  const Manifest& manifest = store.manifest();
  std::string out;
  for (const ArrayEntry& array : manifest.arrays) {
    RHIZOME_ASSIGN_OR_RETURN(const Hash128 hash, HashRows(store, array));
    out += fmt::format("array {} {}x{} {}\n", array.name, array.rows, array.dim, Hex(hash));
  }
  for (const ArraySeries& series : manifest.series) {
    out += fmt::format("series {} {}", series.name, series.last_version);
    for (const ArrayAlias& alias : series.aliases)
      out += fmt::format(" {}@{}", alias.name, fmt::join(alias.history, ","));
    out += '\n';
  }
  return out;
}

Result<std::string> Describe(FileSystem& fs, const Path& path) {
  auto opened = Store::Open(fs, path, Store::Mode::kRead);
  if (!opened && opened.error().code() == StatusCode::kNotFound) return "none";
  if (!opened) return Fail(opened.error());
  return Describe(**opened);
}

Result<std::string> Describe(const Store& store) {
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(store));
  return Describe(*graph);
}

Result<std::string> Describe(const Graph& live) {
  const auto snapshot = live.Snapshot();
  const GraphSnapshot& graph = *snapshot;
  const Manifest& manifest = graph.store().manifest();
  std::string out =
      fmt::format("generation {} version {}\n", manifest.generation, manifest.version);
  RHIZOME_ASSIGN_OR_RETURN(const std::string of_arrays, DescribeArrays(graph.store()));
  out += of_arrays;
  const HistoryState history = graph.history();
  if (!history.known())
    return Fail(Status::Corruption(
        fmt::format("commit {}: it cannot be told what led to it", graph.sequence())));
  out += fmt::format("commits {}\n", Hex(history.commits));
  for (const EdgeAttributeInfo& attribute : graph.edge_attributes()) {
    RHIZOME_ASSIGN_OR_RETURN(const std::string texts, DescribeTexts(graph, attribute));
    out += texts;
  }
  std::vector<VertexId> vertices;
  for (std::uint64_t v = 0; v < graph.vertex_count(); ++v)
    if (!graph.IsDeleted(static_cast<VertexId>(v))) vertices.push_back(static_cast<VertexId>(v));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Rows> arrays, ReadAllRows(graph, vertices));
  for (const VertexId vertex : vertices) {
    RHIZOME_RETURN_IF_ERROR(DescribeVertex(graph, vertex, out));
    for (const Rows& rows : arrays) DescribeRow(rows, vertex, out);
    out += '\n';
  }
  return out;
}

std::string VerticesIn(const std::string& description) {
  const std::size_t at = description.find("commits ");
  return at == std::string::npos ? "" : description.substr(at);
}

}  // namespace rhizome::testing
