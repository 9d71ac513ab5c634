#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/blocks/layer_output.h"
#include "gnn/infer/layerwise_options.h"
#include "rhizome/graph.h"
#include "rhizome/infer_options.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Finds the rows of an inference's result that contain NaN or infinite values and, if there are
/// any, the rows of its features (options.features or options.inputs) that do. `name`: name of the
/// result as users know it. Reads the arrays. Errors: any error of reading; kInterrupted.
Result<std::vector<InferReport::NonFinite>> ReportNonFinite(const GraphSnapshot& graph,
                                                            std::string_view name,
                                                            const WrittenArray& made,
                                                            const LayerwiseOptions& options,
                                                            const JobControl& control);

/// Describes the findings in a sentence: how many of the `vertices` rows, the first of them, and
/// the remedy.
std::string DescribeNonFinite(const std::vector<InferReport::NonFinite>& found,
                              const std::vector<std::string>& features, std::uint64_t vertices);

/// Returns the external id of the first vertex whose row of `array` contains NaN or an infinite
/// value; nullopt if there is none or the array cannot be read. `inputs`: as for FindNonFinite.
std::optional<ExternalId> FirstNonFinite(const GraphSnapshot& graph, const std::string& array,
                                         std::span<const FeatureInput> inputs,
                                         const JobControl& control);

}  // namespace internal
}  // namespace rhizome
