#include "index/ingest/typed_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/array/array_facts.h"
#include "storage/array/array_rules.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/type_names.h"

namespace rhizome {
inline namespace internal {

namespace {

// Less is not worth a note.
constexpr std::uint64_t kNotedBytes = std::uint64_t{1} << 20;

std::string Size(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// Returns the rows that an array's files hold, of any type.
std::uint64_t StoredRows(const Manifest& manifest, const ArrayEntry& array) {
  std::uint64_t rows = 0;
  for (const std::uint64_t chunk : ListedChunks(array, manifest.files))
    rows += std::min(array.chunk_rows, array.rows - chunk * array.chunk_rows);
  return rows;
}

}  // namespace

Result<TypedRows> TypedRows::Make(const IngestOptions& options,
                                  std::span<const VertexId> vertex_of_accepted,
                                  const GraphInput& input) {
  TypedRows result;
  const std::vector<std::string>& names = input.vertex_type_names;
  for (const ArrayFile& file : options.arrays) {
    const std::string& type = file.vertex_type;
    if (type.empty() || result.Has(type)) continue;
    const auto at = std::find(names.begin(), names.end(), type);
    if (at == names.end())
      return Fail(Status::InvalidArgument(
          fmt::format("array '{}' is for the vertex type '{}', which the input does not have; its "
                      "types: {}",
                      file.name, type, ListOfNames(names))));
    if (names.size() == 1) continue;
    if (!options.nodes && options.vertex_ranges.empty())
      return Fail(Status::InvalidArgument(fmt::format(
          "array '{}' is for the vertex type '{}', but nothing says which of its vertices has "
          "which row; give a nodes file with a column of types",
          file.name, type)));
    const auto number = static_cast<TypeId>(at - names.begin());
    auto vertices = std::make_shared<std::vector<VertexId>>();
    const auto add = [&](VertexId vertex) {
      if (input.vertex_type[static_cast<std::size_t>(vertex)] == number)
        vertices->push_back(vertex);
    };
    if (options.nodes) {
      for (const VertexId vertex : vertex_of_accepted) add(vertex);
    } else {
      for (std::uint64_t v = 0; v < input.vertex_count; ++v) add(static_cast<VertexId>(v));
    }
    result.vertices_[type] = std::move(vertices);
  }
  return result;
}

std::shared_ptr<const std::vector<std::int64_t>> TypedRows::RowsOf(
    const std::string& type, std::uint64_t vertex_count) const {
  auto rows = std::make_shared<std::vector<std::int64_t>>(vertex_count, -1);
  const std::vector<VertexId>& vertices = *vertices_.at(type);
  for (std::size_t i = 0; i < vertices.size(); ++i)
    (*rows)[static_cast<std::size_t>(vertices[i])] = static_cast<std::int64_t>(i);
  return rows;
}

Status TypedRows::CheckRows(std::span<const ArrayRows> arrays, std::uint64_t expected,
                            bool nodes) const {
  for (const ArrayRows& array : arrays) {
    if (array.vertex_type.empty()) continue;
    if (!Has(array.vertex_type)) {
      RHIZOME_RETURN_IF_ERROR(CheckArrayRows(array, expected, nodes));
      continue;
    }
    const std::uint64_t count = vertices_.at(array.vertex_type)->size();
    if (array.rows == count || (!array.exact_rows && array.rows < count)) continue;
    return Status::InvalidArgument(fmt::format(
        "array '{}': {} has {}{} rows, but there are {} vertices of type '{}'", array.name,
        array.path, array.exact_rows ? "" : "at least ", array.rows, count, array.vertex_type));
  }
  return Status::Ok();
}

std::uint64_t TypedRows::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [type, vertices] : vertices_) bytes += vertices->capacity() * sizeof(VertexId);
  return bytes;
}

void BindToTypes(const IngestOptions& options, const TypedRows& rows, GraphInput& input) {
  for (const ArrayFile& file : options.arrays) {
    for (ArrayInput& array : input.arrays) {
      if (array.name != file.name) continue;
      std::erase_if(array.attributes,
                    [](const auto& fact) { return fact.first == kVertexTypeAttribute; });
      if (!rows.Has(file.vertex_type)) continue;
      array.attributes.emplace_back(kVertexTypeAttribute, file.vertex_type);
      std::sort(array.attributes.begin(), array.attributes.end());
    }
  }
}

std::map<std::string, std::uint64_t> CountTypes(const GraphInput& input) {
  std::map<std::string, std::uint64_t> counts;
  for (const TypeId type : input.vertex_type) ++counts[input.vertex_type_names[type]];
  return counts;
}

std::vector<std::string> NotesOnMixedChunks(const Manifest& manifest,
                                            const std::map<std::string, std::uint64_t>& counts) {
  std::vector<std::string> notes;
  for (const ArrayEntry& array : manifest.arrays) {
    const auto of_type = counts.find(std::string(BoundType(array)));
    if (of_type == counts.end() || array.name.ends_with(kSidecarSuffix)) continue;
    const std::uint64_t needed = of_type->second * array.row_bytes();
    const std::uint64_t stored = StoredRows(manifest, array) * array.row_bytes();
    if (stored < 2 * needed || stored - needed < kNotedBytes) continue;
    const bool groups = manifest.info.order == "pds" || manifest.info.order == "ps";
    notes.push_back(fmt::format(
        "array '{}' has chunks of {} for rows of {}, because the order of the rows mixes vertices "
        "of type '{}' with others; {}",
        array.name, Size(stored), Size(needed), of_type->first,
        groups ? "a smaller `chunk_rows` stores less" : "`order=pds` stores less"));
  }
  return notes;
}

}  // namespace internal
}  // namespace rhizome
