#include "index/graph/vertex_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "index/topology/type_rows.h"
#include "rhizome/text_values.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"

namespace rhizome {
namespace {

constexpr std::string_view kLabel = "label";
constexpr std::string_view kSplit = "split";

/// Returns whether an ingestion would not read a column of this name as an array.
bool HasOtherRole(std::string_view name) {
  constexpr std::array<std::string_view, 4> kRoles = {"id", "type", "ntype", "-"};
  return std::find(kRoles.begin(), kRoles.end(), name) != kRoles.end();
}

/// Returns the word for a split; empty if there is none, so that the number is written.
std::string_view SplitWord(std::uint8_t split) {
  constexpr std::array<std::string_view, 3> kWords = {"train", "valid", "test"};
  if (split < kWords.size()) return kWords[split];
  return split == 255 ? "none" : "";
}

}  // namespace

std::vector<const ArrayEntry*> VertexArraysOf(const GraphSnapshot& graph) {
  std::vector<const ArrayEntry*> arrays;
  for (const ArrayEntry& entry : graph.store().manifest().arrays) {
    const bool own = entry.name.ends_with(kSidecarSuffix) || entry.name.ends_with(kStaleSuffix);
    if (!own && !IsOfEdges(entry) && entry.rows == graph.info().vertices) arrays.push_back(&entry);
  }
  return arrays;
}

VertexTable::VertexTable(const GraphSnapshot& graph, TableForm form, bool with_arrays)
    : graph_(graph),
      form_(form),
      live_(LiveVertices::Of(graph)),
      types_(graph.vertex_types()),
      columns_({"id"}) {
  if (types_.size() < 2) types_.clear();
  if (!types_.empty()) columns_.emplace_back("type");
  if (with_arrays) AddArrays();
}

void VertexTable::AddArrays() {
  std::vector<const ArrayEntry*> arrays = VertexArraysOf(graph_);
  // label and split come first.
  const auto place = [](const ArrayEntry* entry) {
    return entry->name == kLabel ? 0 : entry->name == kSplit ? 1 : 2;
  };
  std::stable_sort(arrays.begin(), arrays.end(),
                   [&](const ArrayEntry* a, const ArrayEntry* b) { return place(a) < place(b); });
  for (const ArrayEntry* entry : arrays) {
    if (entry->dim != 1 || HasOtherRole(entry->name)) {
      left_out_.push_back(ShownName(entry->name));
      continue;
    }
    const bool split = entry->name == kSplit && entry->dtype == DataType::kUint8;
    arrays_.push_back({entry->name, ValueFormOf(*entry), split, HasTexts(*entry),
                       TypeNamed(graph_.vertex_types(), BoundType(*entry))});
    columns_.push_back(entry->name);
  }
}

std::string VertexTable::Header() const {
  return fmt::format("{}", fmt::join(columns_, std::string(1, SeparatorOf(form_))));
}

Status VertexTable::Format(VertexId vertex, std::size_t row, const Block& block,
                           std::string& line) const {
  const char separator = SeparatorOf(form_);
  line.clear();
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, graph_.ExternalIdOf(vertex));
  if (const Status added = AppendField(ToString(id), form_, line); !added.ok())
    return added.WithContext("an external id");
  TypeId type = 0;
  if (!types_.empty()) {
    line += separator;
    RHIZOME_ASSIGN_OR_RETURN(type, graph_.TypeOf(vertex));
    if (const Status added = AppendField(types_[type], form_, line); !added.ok())
      return added.WithContext("a vertex type");
  }
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    line += separator;
    if (arrays_[a].type && arrays_[a].type != type) continue;
    if (arrays_[a].texts) {
      const std::string& text = block.texts[a][row];
      if (const Status added = text.empty() ? Status::Ok() : AppendField(text, form_, line);
          !added.ok())
        return added.WithContext(fmt::format("a text of '{}'", arrays_[a].array));
      continue;
    }
    const std::size_t bytes = DataTypeBytes(arrays_[a].form.dtype);
    const auto value = std::span(block.values[a]).subspan(row * bytes, bytes);
    const auto word =
        arrays_[a].split ? SplitWord(static_cast<std::uint8_t>(value.front())) : std::string_view();
    line += word;
    if (word.empty()) AppendValue(arrays_[a].form, value, line);
  }
  return Status::Ok();
}

/// Reads the texts or values of a block of vertices. Vertices of other types than the array's have
/// none, and unspecified values.
Status VertexTable::ReadColumn(const Column& column, std::span<const VertexId> vertices,
                               std::vector<std::string>& texts,
                               std::vector<std::byte>& values) const {
  std::vector<VertexId> wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    if (column.type) {
      RHIZOME_ASSIGN_OR_RETURN(const TypeId type, graph_.TypeOf(vertices[i]));
      if (type != column.type) continue;
    }
    wanted.push_back(vertices[i]);
    places.push_back(i);
  }
  if (column.texts) {
    RHIZOME_ASSIGN_OR_RETURN(const auto values_of, TextValues::Open(graph_, column.array));
    RHIZOME_ASSIGN_OR_RETURN(auto read, values_of->TextsOfVertices(wanted));
    texts.assign(vertices.size(), {});
    for (std::size_t i = 0; i < places.size(); ++i) texts[places[i]] = std::move(read[i]);
    return Status::Ok();
  }
  const std::size_t bytes = DataTypeBytes(column.form.dtype);
  values.resize(vertices.size() * bytes);
  if (wanted.size() == vertices.size()) return graph_.ReadRows(column.array, wanted, values);
  std::vector<std::byte> read(wanted.size() * bytes);
  RHIZOME_RETURN_IF_ERROR(graph_.ReadRows(column.array, wanted, read));
  for (std::size_t i = 0; i < places.size(); ++i)
    std::memcpy(values.data() + places[i] * bytes, read.data() + i * bytes, bytes);
  return Status::Ok();
}

Status VertexTable::Read(std::span<const VertexId> vertices, Block& block) const {
  block.values.resize(arrays_.size());
  block.texts.resize(arrays_.size());
  for (std::size_t a = 0; a < arrays_.size(); ++a)
    RHIZOME_RETURN_IF_ERROR(ReadColumn(arrays_[a], vertices, block.texts[a], block.values[a]));
  return Status::Ok();
}

Status VertexTable::Write(const std::function<Status(std::string_view line)>& put,
                          std::uint64_t memory_bytes, const JobControl& control) const {
  std::uint64_t row_bytes = 64;
  constexpr std::uint64_t kTextBytes = 128;  // an estimate
  for (const Column& column : arrays_)
    row_bytes += column.texts ? kTextBytes : DataTypeBytes(column.form.dtype);
  const std::uint64_t block = std::clamp<std::uint64_t>(memory_bytes / row_bytes, 1024, 1 << 20);
  std::vector<VertexId> vertices;
  Block rows_of_block;
  std::string line;
  for (std::uint64_t first = 0; first < rows(); first += vertices.size()) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "exporting vertices", .done = first, .total = rows()}));
    vertices.clear();
    for (std::uint64_t i = first; i < std::min(rows(), first + block); ++i)
      vertices.push_back(live_.At(i));
    RHIZOME_RETURN_IF_ERROR(Read(vertices, rows_of_block));
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      RHIZOME_RETURN_IF_ERROR(Format(vertices[i], i, rows_of_block, line));
      RHIZOME_RETURN_IF_ERROR(put(line));
    }
  }
  return Status::Ok();
}

}  // namespace rhizome
