#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rhizome/gnn/model_options.h"
#include "rhizome/gnn/model_spec.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The key of the model's description in the metadata of its safetensors file.
inline constexpr std::string_view kModelMetadataKey = "rhizome";

/// The part after the last layer: nothing (it makes the scores itself), one linear layer, or two.
enum class HeadKind : std::uint8_t { kLinear, kMlp, kNone };

/// A network with its widths: `spec.layers` layers inputs -> hidden -> ... -> hidden (layer.h),
/// then the head, hidden -> classes. Without a head the last layer is hidden -> classes. The
/// embedding of a vertex is the last layer's output, so that it has seen every hop; its scores are
/// the head of that.
struct ModelShape {
  ModelSpec spec;
  std::int64_t inputs = 0;
  std::int64_t classes = 0;
};

/// Checks the ranges of all settings and completes the options. Errors: kInvalidArgument, naming
/// the one that is out of range.
Result<ModelOptions> CheckShape(const ModelShape& shape);

HeadKind HeadOf(const ModelOptions& options);

/// Encodes a shape, which CheckShape accepts, as the JSON text of a model file (format 2), and
/// decodes this and format 1, which had two kinds without options. Errors: kCorruption, naming the
/// field; kUnsupported, a later format or another kind of network.
std::string EncodeModelShape(const ModelShape& shape);

/// Describes a shape for jobs that compare it with that of an earlier run: in format 1 if that can
/// say it, so that runs of before format 2 are still known, else as EncodeModelShape.
std::string DescribeModelShape(const ModelShape& shape);
Result<ModelShape> DecodeModelShape(std::string_view json);

}  // namespace rhizome::inline internal
