#pragma once

#include "rhizome/cache/loader.h"
#include "rhizome/gnn/layerwise_run.h"

namespace rhizome::inline internal {

/// The baseline that layerwise inference is measured against: minibatches of `tuning.block_rows`
/// vertices in row order, each with its whole sampled neighbourhood, so that a vertex near many
/// targets is computed again for each. Same kernels, same output array. Reads the features (layout
/// kRow) row by row through the cache: the report's requests and reads count rows, in one entry.
/// Errors: as RunLayerwise; kInvalidArgument, features not in layout kRow.
Result<LayerwiseResult> RunSamplewise(const LayerwiseInput& input, const LayerwiseOptions& options,
                                      const JobControl& control);

}  // namespace rhizome::inline internal
