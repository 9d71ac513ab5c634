#include "cache/feed/input_division.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cache/feed/inputs.h"
#include "cache/feed/minibatch_sampler.h"

namespace rhizome {
inline namespace internal {
namespace {

Status CheckOptions(const FeedPipelineOptions& options) {
  const auto refuse = [](std::string_view what) {
    return Status::InvalidArgument(
        fmt::format("{} cannot be combined with an array of features for each vertex type; name "
                    "one array for all types (`features`)",
                    what));
  };
  if (!options.features.empty())
    return Status::InvalidArgument(
        "an array for all vertices and an array for each vertex type are given; give one of them");
  if (options.fetcher || options.over_ranks) return refuse("training over ranks");
  if (options.on_superbatch) return refuse("a cache on a device");
  return Status::Ok();
}

}  // namespace

Result<InputDivision> InputDivision::Create(const GraphSnapshot& graph,
                                            const FeedPipelineOptions& options) {
  InputDivision made;
  if (options.inputs.empty()) {
    made.arrays_ = {options.features};
    return made;
  }
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  made.by_type_ = true;
  made.arrays_ = ArraysOf(options.inputs);
  const bool learns = std::any_of(
      options.inputs.begin(), options.inputs.end(),
      [](const FeatureInput& input) { return LearnedColumns(input.array).has_value(); });
  if (made.arrays_.empty() && !learns)
    return Fail(Status::InvalidArgument(
        "no vertex type has features; name an array for at least one type (`features`)"));
  const std::vector<std::string> types = graph.vertex_types();
  made.array_of_type_.resize(types.size());
  for (const FeatureInput& input : options.inputs) {
    const auto type = std::find(types.begin(), types.end(), input.vertex_type);
    if (type == types.end())
      return Fail(Status::InvalidArgument(
          fmt::format("features: there is no vertex type '{}'; the types are {}", input.vertex_type,
                      fmt::join(types, ", "))));
    if (input.array.empty() || LearnedColumns(input.array)) continue;
    const auto array = std::find(made.arrays_.begin(), made.arrays_.end(), input.array);
    made.array_of_type_[static_cast<std::size_t>(type - types.begin())] =
        static_cast<std::size_t>(array - made.arrays_.begin());
  }
  return made;
}

std::vector<std::vector<std::uint32_t>> InputDivision::Divide(const Minibatch& minibatch) const {
  std::vector<std::vector<std::uint32_t>> vertices(arrays_.size());
  const std::vector<TypeId>& types = minibatch.vertex_types;
  for (std::size_t v = 0; v < minibatch.rows.size(); ++v) {
    const auto& array = array_of_type_[types.empty() ? 0 : types[v]];
    if (array) vertices[*array].push_back(static_cast<std::uint32_t>(v));
  }
  return vertices;
}

void InputDivision::AddStep(const Minibatch& minibatch, std::span<Trace> traces) const {
  if (!by_type_) return internal::AddStep(minibatch, traces.front());
  const auto vertices = Divide(minibatch);
  for (std::size_t a = 0; a < vertices.size(); ++a)
    traces[a].AddStep(RowsOf(minibatch, vertices[a]).rows);
}

RowsToRead RowsOf(const Minibatch& minibatch, std::span<const std::uint32_t> vertices) {
  RowsToRead read;
  read.rows.reserve(vertices.size());
  for (const std::uint32_t vertex : vertices) read.rows.push_back(minibatch.rows[vertex]);
  if (minibatch.seed_of.empty()) return read;
  DistinctRows distinct = DistinctRowsOf(read.rows);
  read.rows = std::move(distinct.rows);
  read.row_of = std::move(distinct.row_of);
  return read;
}

}  // namespace internal
}  // namespace rhizome
