#include "gnn/train/loss_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "rhizome/graph_scan.h"

namespace rhizome {
inline namespace internal {
namespace {

// The product of two values above this bound, or the sum of products below the other, is close to
// the ends of float32 (1e-38 to 3e38).
constexpr float kHuge = 1e18F;
constexpr float kTiny = 1e-30F;
constexpr std::uint64_t kBlockRows = 4096;

/// The value with the largest magnitude, and where it is.
struct Largest {
  float value = 0;
  VertexId vertex = 0;
  std::uint64_t column = 0;
};

Result<Largest> LargestFeature(const GraphSnapshot& graph, const std::string& features) {
  Largest largest;
  RHIZOME_ASSIGN_OR_RETURN(ArrayScan scan, ArrayScan::Open(graph, features));
  if (scan.entry().dtype != DataType::kFloat32) return largest;
  const std::uint64_t dim = scan.entry().dim;
  ArrayScan::Block block;
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const bool more, scan.Next(kBlockRows, block));
    if (!more) return largest;
    for (std::size_t i = 0; i < block.vertices.size() * dim; ++i) {
      float value = 0;
      std::memcpy(&value, block.rows.data() + i * sizeof(value), sizeof(value));
      if (std::fabs(value) > std::fabs(largest.value))
        largest = {value, block.vertices[i / dim], i % dim};
    }
  }
}

struct WeightRange {
  float least = 0;  // magnitude of the smallest weight other than 0
  float most = 0;
};

Result<WeightRange> RangeOfWeights(const GraphSnapshot& graph) {
  WeightRange range;
  RHIZOME_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(graph));
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto edge, scan.Next());
    if (!edge) return range;
    const float weight = std::fabs(edge->weight);
    if (weight == 0) continue;
    range.least = range.least == 0 ? weight : std::min(range.least, weight);
    range.most = std::max(range.most, weight);
  }
}

}  // namespace

std::optional<std::string> ExtremeInputs(const GraphSnapshot& graph, const std::string& features,
                                         bool weighted) {
  const auto largest = LargestFeature(graph, features);
  if (largest && std::fabs(largest->value) > kHuge) {
    const auto id = graph.ExternalIdOf(largest->vertex);
    return fmt::format(
        "array {} has the value {:g} in column {} of vertex {}; scale its values, or use "
        "`normalize_features`",
        features, largest->value, largest->column,
        id ? ToString(*id) : std::to_string(largest->vertex));
  }
  if (!weighted) return std::nullopt;
  const auto range = RangeOfWeights(graph);
  if (!range || range->most == 0 || (range->most < kHuge && range->least > kTiny))
    return std::nullopt;
  return fmt::format(
      "the edge weights are between {:g} and {:g}, and float32 cannot hold their sums or "
      "quotients; "
      "scale them to about 1, or use `edge_weights=ignore`",
      range->least, range->most);
}

}  // namespace internal
}  // namespace rhizome
