#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// The vertices that the ends of validation edges are ranked among: a sample of a vertex type.
struct ValidCandidates {
  TypeId type = 0;
  std::vector<VertexId> vertices;
};

/// The validation set of a training on links.
/// Memory: 24 bytes for each edge.
struct ValidLinks {
  std::vector<VertexPair> edges;
  std::vector<ValidCandidates> candidates;  ///< by type, ascending
  std::string hash;                         ///< of the edges; empty: there is no validation set
};

/// Reads the file LinkTrainOptions::valid, and draws candidates for the vertex types of its ends:
/// up to 512 of a type, which depend on LearningOptions::seed and the graph. Returns an empty set
/// if there is no file. Errors: kInvalidArgument, the file has no edges; errors of LinkFiles::Open.
Result<ValidLinks> ReadValidLinks(const TrainOptions& options,
                                  const std::shared_ptr<const GraphSnapshot>& graph);

}  // namespace internal
}  // namespace rhizome
