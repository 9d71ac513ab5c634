#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rhizome/gnn/model_spec.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The key of the model's description in the metadata of its safetensors file.
inline constexpr std::string_view kModelMetadataKey = "rhizome";

/// A network with its widths: `spec.layers` message-passing layers
/// inputs -> hidden -> ... -> hidden, each followed by ReLU, then one linear layer
/// hidden -> classes (the head). The embedding of a vertex is the last message-passing layer's
/// output, so that it has seen every hop; its scores are the head of that.
struct ModelShape {
  ModelSpec spec;
  std::int64_t inputs = 0;
  std::int64_t classes = 0;

  /// Returns the number of columns that message-passing layer `layer` (0-based) reads.
  std::int64_t LayerInputs(std::uint32_t layer) const { return layer == 0 ? inputs : spec.hidden; }
};

/// Checks the ranges of all settings. Errors: kInvalidArgument, naming the one that is out of
/// range.
Status CheckShape(const ModelShape& shape);

/// Encodes a shape as the JSON text of a model file, and decodes it. Errors: kCorruption, naming
/// the field; kUnsupported, another format or kind of network.
std::string EncodeModelShape(const ModelShape& shape);
Result<ModelShape> DecodeModelShape(std::string_view json);

}  // namespace rhizome::inline internal
