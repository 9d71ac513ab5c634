#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gnn/models/model_options.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// The key of the model's description in the metadata of its safetensors file.
inline constexpr std::string_view kModelMetadataKey = "rhizome";

/// The part after the last layer: one linear layer, two layers, or nothing (the last layer computes
/// the scores).
enum class HeadKind : std::uint8_t { kLinear, kMlp, kNone };

/// A network with its widths: `spec.layers` layers inputs -> hidden -> ... -> hidden (layer.h),
/// then the head, hidden -> classes. Without a head the last layer is hidden -> classes. The
/// embedding of a vertex is the last layer's output, so that it depends on every hop; the scores
/// are the head's output.
struct ModelShape {
  ModelSpec spec;
  std::int64_t inputs = 0;
  std::int64_t classes = 0;
};

/// Checks the ranges of all settings and completes the options. Errors: kInvalidArgument, naming
/// the setting that is out of range.
Result<ModelOptions> CheckShape(const ModelShape& shape);

HeadKind HeadOf(const ModelOptions& options);

/// Encodes a shape that CheckShape accepts as the JSON text of a model file (format 2).
std::string EncodeModelShape(const ModelShape& shape);

/// Describes a shape for comparison with the shape of an earlier run: in format 1 if it can express
/// the shape, so that it matches runs from before format 2; otherwise like EncodeModelShape.
std::string DescribeModelShape(const ModelShape& shape);
/// Decodes the JSON text of a model file: format 2, or format 1, which had two kinds without
/// options. Errors: kCorruption, naming the field; kUnsupported, a later format, or an unknown kind
/// or option.
Result<ModelShape> DecodeModelShape(std::string_view json);

}  // namespace internal
}  // namespace rhizome
