#include "cache/feed/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "cache/feed/feature_decoder.h"
#include "index/delta/stale_vertices.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The array that types share by default if several arrays are possible.
constexpr std::string_view kDefaultFeatures = "feat";

bool IsFloat(DataType dtype) {
  return dtype == DataType::kFloat32 || dtype == DataType::kFloat16 ||
         dtype == DataType::kBfloat16 || dtype == DataType::kFloat64;
}

/// Returns the arrays that may be chosen by default and are bound to `type` (empty: to no type).
std::vector<std::string> Candidates(const Manifest& manifest, std::string_view type) {
  std::vector<std::string> names;
  for (const ArrayEntry& entry : manifest.arrays) {
    if (IsFloat(entry.dtype) && !IsOfEdges(entry) && BoundType(entry) == type &&
        !SplitVersion(entry.name) && !OriginOf(entry))
      names.push_back(entry.name);
  }
  return names;
}

/// Returns the default array of a type: its only bound array, else the array that all types have.
std::string DefaultOf(const Manifest& manifest, const std::string& type,
                      std::vector<std::string>& notes) {
  const std::vector<std::string> bound = Candidates(manifest, type);
  if (bound.size() == 1) return bound.front();
  const std::vector<std::string> all = Candidates(manifest, {});
  if (all.size() == 1) return all.front();
  if (std::find(all.begin(), all.end(), kDefaultFeatures) != all.end())
    return std::string(kDefaultFeatures);
  std::vector<std::string> several = bound;
  several.insert(several.end(), all.begin(), all.end());
  if (several.empty()) {
    notes.push_back(fmt::format(
        "vertices of type {} have no features, because no array of floats has rows for them",
        type));
  } else {
    notes.push_back(fmt::format(
        "vertices of type {} have no features, because several arrays could serve: {}; name one of "
        "them for this type (`features`)",
        type, fmt::join(several, ", ")));
  }
  return {};
}

constexpr std::string_view kLearned = "learned:";
constexpr std::uint64_t kMaxLearnedColumns = 65536;

/// Checks the number of columns of learned rows.
Status CheckLearned(const FeatureInput& given, LearnedInputs learned) {
  if (learned == LearnedInputs::kRefuse)
    return Status::Unsupported(
        fmt::format("features of vertex type {}: `{}` is for training on minibatches; name the "
                    "array with the rows",
                    given.vertex_type, given.array));
  const std::uint64_t columns = *LearnedColumns(given.array);
  if (columns >= 1 && columns <= kMaxLearnedColumns) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("features of vertex type {}: {} must be learned:N with 1 to {} columns",
                  given.vertex_type, given.array, kMaxLearnedColumns));
}

/// Checks that an array can be the input of a type.
Status CheckArray(const GraphSnapshot& graph, const FeatureInput& given) {
  const auto array = graph.store().OpenArray(given.array);
  const std::string what = fmt::format("features of vertex type {}", given.vertex_type);
  if (!array) return array.error().WithContext(what);
  const ArrayEntry& entry = (*array)->entry();
  if (IsOfEdges(entry))
    return Status::InvalidArgument(
        fmt::format("{}: array {} has a row for each edge; name an array of vertices", what,
                    ShownName(entry.name)));
  const std::string_view type = BoundType(entry);
  if (!type.empty() && type != given.vertex_type)
    return Status::InvalidArgument(
        fmt::format("{}: array {} belongs to vertices of type {}; name another array, or none",
                    what, ShownName(entry.name), type));
  const auto decoder = FeatureDecoder::Create(entry, false);
  return decoder ? Status::Ok() : decoder.error().WithContext(what);
}

/// Returns the array given for each type, an index into `types`; nullopt: not given.
Result<std::vector<std::optional<std::string>>> GivenArrays(const std::vector<std::string>& types,
                                                            std::span<const FeatureInput> given) {
  std::vector<std::optional<std::string>> arrays(types.size());
  for (const FeatureInput& input : given) {
    const auto at = std::find(types.begin(), types.end(), input.vertex_type);
    if (at == types.end())
      return Fail(Status::InvalidArgument(
          fmt::format("features: there is no vertex type '{}'; the types are {}", input.vertex_type,
                      fmt::join(types, ", "))));
    std::optional<std::string>& array = arrays[static_cast<std::size_t>(at - types.begin())];
    const auto shown = [](const std::string& name) {
      return name.empty() ? std::string("none") : name;
    };
    if (array)
      return Fail(Status::InvalidArgument(
          fmt::format("features: vertex type {} is given twice, with {} and {}; give one array",
                      input.vertex_type, shown(*array), shown(input.array))));
    array = input.array;
  }
  return arrays;
}

}  // namespace

std::optional<std::uint64_t> LearnedColumns(std::string_view array) {
  if (!array.starts_with(kLearned)) return std::nullopt;
  const std::string_view digits = array.substr(kLearned.size());
  std::uint64_t columns = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), columns);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole ? columns : 0;
}

std::string LearnedArray(std::string_view vertex_type) {
  return fmt::format("learned_{}", vertex_type);
}

std::string InputArrays::shared() const {
  if (!of_types.empty() && LearnedColumns(of_types.front().array)) return {};
  const auto same = [this](const FeatureInput& input) {
    return input.array == of_types.front().array;
  };
  return !of_types.empty() && std::all_of(of_types.begin(), of_types.end(), same)
             ? of_types.front().array
             : std::string();
}

Result<InputArrays> ResolveInputs(const GraphSnapshot& graph, std::span<const FeatureInput> given,
                                  LearnedInputs learned) {
  const std::vector<std::string> types = graph.vertex_types();
  RHIZOME_ASSIGN_OR_RETURN(auto arrays, GivenArrays(types, given));
  InputArrays inputs;
  for (std::size_t type = 0; type < types.size(); ++type) {
    FeatureInput input{.vertex_type = types[type], .array = {}};
    input.array = arrays[type] ? *std::move(arrays[type])
                               : DefaultOf(graph.store().manifest(), types[type], inputs.notes);
    if (LearnedColumns(input.array))
      RHIZOME_RETURN_IF_ERROR(CheckLearned(input, learned));
    else if (!input.array.empty())
      RHIZOME_RETURN_IF_ERROR(CheckArray(graph, input));
    inputs.of_types.push_back(std::move(input));
  }
  return inputs;
}

Status CheckSharedInput(const GraphSnapshot& graph, const std::string& array) {
  const ArrayEntry* const entry = graph.store().manifest().FindArray(array);
  if (entry == nullptr || graph.vertex_types().size() < 2) return Status::Ok();
  const std::string_view type = BoundType(*entry);
  if (type.empty()) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "array {} has rows only for vertices of type {}; name the array of each vertex type", array,
      type));
}

std::vector<std::string> ArraysOf(std::span<const FeatureInput> inputs) {
  std::vector<std::string> arrays;
  for (const FeatureInput& input : inputs) {
    if (input.array.empty() || LearnedColumns(input.array)) continue;
    if (std::find(arrays.begin(), arrays.end(), input.array) == arrays.end())
      arrays.push_back(input.array);
  }
  return arrays;
}

}  // namespace internal
}  // namespace rhizome
