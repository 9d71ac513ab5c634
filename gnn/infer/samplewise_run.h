#pragma once

#include "gnn/infer/layerwise_run.h"
#include "rhizome/infer_options.h"
#include "rhizome/loader.h"

namespace rhizome {
inline namespace internal {

/// Checks that no option requires layerwise inference. Errors: kInvalidArgument, naming the option.
Status CheckSamplewise(const InferOptions& options);

/// Baseline for layerwise inference: computes minibatches of `tuning.block_rows` vertices in row
/// order, each with its whole sampled neighbourhood, so that a vertex near many targets is computed
/// once for each of them. Uses the same kernels and writes the same output array. Reads the
/// features (layout kRow) row by row through the cache. In the report, requests and reads count
/// rows, in a single layer entry.
/// Errors: see RunLayerwise; kInvalidArgument, the features are not in layout kRow.
Result<LayerwiseResult> RunSamplewise(const LayerwiseInput& input, const LayerwiseOptions& options,
                                      const JobControl& control);

}  // namespace internal
}  // namespace rhizome
