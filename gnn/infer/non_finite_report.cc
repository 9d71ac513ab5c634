#include "gnn/infer/non_finite_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "cache/blocks/non_finite_rows.h"
#include "gnn/infer/input_arrays.h"
#include "storage/array/array_versions.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Appends the rows found in an array to the report, if there are any.
Status AddTo(std::vector<InferReport::NonFinite>& report, std::string_view name,
             const GraphSnapshot& graph, const NonFiniteRows& found) {
  if (found.rows == 0) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(ExternalId first, graph.ExternalIdOf(*found.first));
  report.push_back({.array = std::string(name), .rows = found.rows, .first = std::move(first)});
  return Status::Ok();
}

}  // namespace

Result<std::vector<InferReport::NonFinite>> ReportNonFinite(const GraphSnapshot& graph,
                                                            std::string_view name,
                                                            const WrittenArray& made,
                                                            const LayerwiseOptions& options,
                                                            const JobControl& control) {
  std::vector<InferReport::NonFinite> report;
  RHIZOME_ASSIGN_OR_RETURN(const auto array, ChunkArray::Open(graph.store().fs(), made.root,
                                                              made.arrays.front(), made.files));
  RHIZOME_ASSIGN_OR_RETURN(const NonFiniteRows of_result,
                           FindNonFinite(graph, *array, /*delta=*/nullptr, control));
  RHIZOME_RETURN_IF_ERROR(AddTo(report, name, graph, of_result));
  if (report.empty()) return report;  // all such rows belong to deleted vertices
  for (const std::string& one : FeatureArrays(options.features, options.inputs)) {
    RHIZOME_ASSIGN_OR_RETURN(const NonFiniteRows of_features,
                             FindNonFinite(graph, one, control, options.inputs));
    RHIZOME_RETURN_IF_ERROR(AddTo(report, one, graph, of_features));
  }
  return report;
}

std::string DescribeNonFinite(const std::vector<InferReport::NonFinite>& found,
                              const std::vector<std::string>& features, std::uint64_t vertices) {
  if (found.empty()) return {};
  const InferReport::NonFinite& result = found.front();
  std::string text =
      fmt::format("{} of {} rows of {} have NaN or an infinite value, the first is of vertex {}; ",
                  result.rows, vertices, ShownName(result.array), ToString(result.first));
  if (found.size() == 1) {
    std::vector<std::string> shown;
    for (const std::string& one : features) shown.push_back(ShownName(one));
    return text + fmt::format(
                      "all values of array {} are finite; check it for huge values, or train again "
                      "with a smaller learning rate",
                      fmt::join(shown, ", "));
  }
  const InferReport::NonFinite& given = found[1];
  return text + fmt::format(
                    "array {} has such values for {} of the vertices, the first is {}; correct its "
                    "rows and run this again",
                    ShownName(given.array), given.rows, ToString(given.first));
}

std::optional<ExternalId> FirstNonFinite(const GraphSnapshot& graph, const std::string& array,
                                         std::span<const FeatureInput> inputs,
                                         const JobControl& control) {
  const Result<NonFiniteRows> found = FindNonFinite(graph, array, control, inputs);
  if (!found || !found->first) return std::nullopt;
  const Result<ExternalId> id = graph.ExternalIdOf(*found->first);
  if (!id) return std::nullopt;
  return *id;
}

}  // namespace internal
}  // namespace rhizome
