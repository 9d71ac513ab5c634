#include "index/ingest/node_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "index/input/convert.h"
#include "storage/array/array_facts.h"
#include "storage/array/text_files.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kFeatures = "feat";
constexpr std::string_view kAll = "all";
constexpr std::uint8_t kNotInASet = 255;

bool HasNumbers(const ArrayInput& column) {
  return !column.write_texts && TypeOf(column.attributes).empty() && column.dim == 1;
}

/// Reads the values of one column as doubles, with NaN for null.
Status ReadNumbers(const ArrayInput& column, std::span<const VertexId> vertices,
                   std::vector<double>& out) {
  DataType dtype = column.dtype;
  std::vector<std::byte> values(vertices.size() * DataTypeBytes(dtype));
  RHIZOME_RETURN_IF_ERROR(column.read_rows(vertices, values));
  std::vector<std::size_t> nulls;
  if (const auto null = NullOf(column.attributes)) {
    std::vector<std::int64_t> wide(vertices.size());
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(wide));
    static_cast<void>(ConvertElements(dtype, values, DataType::kInt64, bytes));  // always fits
    for (std::size_t i = 0; i < wide.size(); ++i) {
      if (wide[i] != *null) continue;
      nulls.push_back(i);
      wide[i] = 0;
    }
    values.assign(bytes.begin(), bytes.end());
    dtype = DataType::kInt64;
  }
  out.resize(vertices.size());
  if (ConvertElements(dtype, values, DataType::kFloat64, std::as_writable_bytes(std::span(out))))
    return Status::InvalidArgument(
        fmt::format("`feature_columns`: the column '{}' has an integer that no float holds exactly",
                    column.name));
  for (const std::size_t i : nulls) out[i] = std::numeric_limits<double>::quiet_NaN();
  return Status::Ok();
}

/// Returns one array of all columns, in their order.
ArrayInput Combine(std::vector<ArrayInput> columns) {
  ArrayInput features;
  features.name = kFeatures;
  features.dtype = DataType::kFloat32;
  features.dim = columns.size();
  // std::function copies its target, so the columns are in a shared pointer.
  features.read_rows = [columns =
                            std::make_shared<const std::vector<ArrayInput>>(std::move(columns))](
                           std::span<const VertexId> vertices, std::span<std::byte> out) -> Status {
    std::vector<double> numbers;
    for (std::size_t c = 0; c < columns->size(); ++c) {
      RHIZOME_RETURN_IF_ERROR(ReadNumbers((*columns)[c], vertices, numbers));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto number = static_cast<float>(numbers[i]);
        std::memcpy(&out[(i * columns->size() + c) * sizeof(number)], &number, sizeof(number));
      }
    }
    return Status::Ok();
  };
  return features;
}

/// Moves the feature columns from `arrays` into one array.
Status CombineFeatures(IngestContext& context, std::vector<ArrayInput>& arrays) {
  const std::vector<std::string>& wanted = context.options.feature_columns;
  if (wanted.empty()) return Status::Ok();
  const bool all = wanted.front() == kAll;
  std::vector<ArrayInput> columns;
  std::vector<ArrayInput> others;
  std::string names;
  for (ArrayInput& array : arrays) {
    const bool named = std::find(wanted.begin(), wanted.end(), array.name) != wanted.end();
    const bool special = array.name == "label" || array.name == "split";
    if (named && !HasNumbers(array))
      return Status::InvalidArgument(fmt::format(
          "`feature_columns`: the column '{}' has texts or times, but features are numbers",
          array.name));
    const bool taken = named || (all && !special && HasNumbers(array));
    if (taken) names += (names.empty() ? "" : ", ") + array.name;
    (taken ? columns : others).push_back(std::move(array));
  }
  arrays = std::move(others);
  if (columns.empty())
    return Status::InvalidArgument("`feature_columns=all`: the node file has no column of numbers");
  context.AddNotes({fmt::format("the array feat has the columns {}", names)});
  arrays.push_back(Combine(std::move(columns)));
  return Status::Ok();
}

/// Returns the vertices that get a set: those with a label, or all if there are no labels.
Result<std::vector<VertexId>> VerticesToSplit(std::span<const ArrayInput> arrays,
                                              std::uint64_t vertex_count) {
  std::vector<VertexId> vertices(vertex_count);
  std::iota(vertices.begin(), vertices.end(), VertexId{0});
  const auto labels = std::find_if(arrays.begin(), arrays.end(), [](const ArrayInput& array) {
    return array.name == "label" && array.dtype == DataType::kInt64 && array.dim == 1;
  });
  if (labels == arrays.end()) return vertices;
  std::vector<std::int64_t> classes(vertex_count);
  RHIZOME_RETURN_IF_ERROR(labels->read_rows(vertices, std::as_writable_bytes(std::span(classes))));
  std::erase_if(vertices, [&](VertexId v) { return classes[static_cast<std::size_t>(v)] < 0; });
  return vertices;
}

/// Returns the array `split`, in which the sets have the given shares, rounded.
Result<ArrayInput> RandomSplit(const IngestOptions& options, std::span<const ArrayInput> arrays,
                               std::uint64_t vertex_count) {
  RHIZOME_ASSIGN_OR_RETURN(std::vector<VertexId> vertices, VerticesToSplit(arrays, vertex_count));
  const std::uint64_t seed = options.build.partition.seed;
  const auto draw = [&](VertexId v) { return SplitMix64(seed, static_cast<std::uint64_t>(v)); };
  std::sort(vertices.begin(), vertices.end(),
            [&](VertexId a, VertexId b) { return draw(a) < draw(b); });
  std::vector<std::uint8_t> sets(vertex_count, kNotInASet);
  double share = 0;
  std::size_t begin = 0;
  for (std::uint8_t set = 0; set < options.random_split.size(); ++set) {
    share += options.random_split[set];
    const auto end = std::min<std::size_t>(
        static_cast<std::size_t>(std::llround(share * static_cast<double>(vertices.size()))),
        vertices.size());
    for (; begin < end; ++begin) sets[static_cast<std::size_t>(vertices[begin])] = set;
  }
  return ColumnArray("split", DataType::kUint8, std::move(sets));
}

}  // namespace

Result<std::vector<ArrayInput>> NodeArrays(IngestContext& context, NodeTable& nodes,
                                           std::span<const VertexId> vertices,
                                           std::uint64_t vertex_count) {
  std::vector<ArrayInput> arrays;
  for (NodeColumn& column : nodes.columns)
    arrays.push_back(std::move(column).ToArray(vertices, vertex_count));
  nodes.columns.clear();
  RHIZOME_RETURN_IF_ERROR(CombineFeatures(context, arrays));
  if (!context.options.random_split.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(ArrayInput split, RandomSplit(context.options, arrays, vertex_count));
    arrays.push_back(std::move(split));
  }
  return arrays;
}

Status CheckFeatureColumns(const IngestOptions& options) {
  if (options.feature_columns.empty()) return Status::Ok();
  if (!options.nodes)
    return Status::InvalidArgument("`feature_columns` are columns of the node file; give one");
  if (options.feature_columns == std::vector<std::string>{std::string(kAll)}) return Status::Ok();
  const std::vector<std::string> names = TypedNodeColumns(options);
  for (const std::string& name : options.feature_columns)
    if (std::find(names.begin(), names.end(), name) == names.end() || name == "label")
      return Status::InvalidArgument(
          fmt::format("`feature_columns`: the node file has no column '{}' of values; its columns "
                      "are {}",
                      name, fmt::join(options.node_columns, ", ")));
  return Status::Ok();
}

Status CheckRandomSplit(const IngestOptions& options) {
  const std::vector<double>& shares = options.random_split;
  if (shares.empty()) return Status::Ok();
  const bool sound = shares.size() == 3 &&
                     std::all_of(shares.begin(), shares.end(),
                                 [](double share) { return share >= 0 && share <= 1; }) &&
                     std::accumulate(shares.begin(), shares.end(), 0.0) <= 1 + 1e-9;
  if (sound) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "`random_split={}` must be three shares, of training, validation and test, whose sum is at "
      "most 1, such as 0.8,0.1,0.1",
      fmt::join(shares, ",")));
}

}  // namespace internal
}  // namespace rhizome
