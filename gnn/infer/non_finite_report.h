#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rhizome/cache/layer_output.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Finds the rows of an inference's result that have a value that is NaN or infinite, and, if there
/// are some, those of its features. `name`: of the result, as users know it. Reads the arrays.
/// Errors: those of reading; kInterrupted.
Result<std::vector<InferReport::NonFinite>> ReportNonFinite(const GraphSnapshot& graph,
                                                            std::string_view name,
                                                            const WrittenArray& made,
                                                            const std::string& features,
                                                            const JobControl& control);

/// Says it in a sentence: how many rows of how many `vertices`, the first of them, and what to do.
std::string DescribeNonFinite(const std::vector<InferReport::NonFinite>& found,
                              const std::string& features, std::uint64_t vertices);

/// Returns the external id of the first vertex of an array that has a value that is NaN or
/// infinite, or nothing if there is none or the array cannot be read.
std::optional<ExternalId> FirstNonFinite(const GraphSnapshot& graph, const std::string& array,
                                         const JobControl& control);

}  // namespace rhizome::inline internal
