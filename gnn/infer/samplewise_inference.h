#pragma once

#include "rhizome/cache/loader.h"
#include "rhizome/gnn/layerwise_inference.h"

namespace rhizome {

/// The baseline for layerwise inference: minibatches of `block_rows` vertices in row order, each
/// with its whole sampled neighbourhood, so that a vertex near many targets is computed again for
/// each. It uses the same kernels and writes the same output array. Features (layout kRow) are read
/// row by row through the cache: the report's requests and reads count rows, in one entry.
/// Errors: as RunLayerwise; kInvalidArgument, features not in layout kRow.
Result<LayerwiseResult> RunSamplewise(const GraphSnapshot& graph, const Model& model,
                                      const ClassLabels* labels, const Path& scratch,
                                      const LayerwiseOptions& options, const JobControl& control);

}  // namespace rhizome
