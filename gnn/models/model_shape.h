#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gnn/models/model_options.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// The key of the model's description in the metadata of its safetensors file.
inline constexpr std::string_view kModelMetadataKey = "rhizome";

/// The start of the names of a decoder's tensors in a model file.
inline constexpr std::string_view kDecoderPrefix = "decoder.";

/// The part after the last layer: one linear layer, two layers, or nothing (the last layer computes
/// the scores).
enum class HeadKind : std::uint8_t { kLinear, kMlp, kNone };

/// The input of the vertices of one type.
struct TypedInput {
  std::string array;     ///< the array that the model was trained on; empty: no features
  std::int64_t dim = 0;  ///< its columns; 0: no features
};

/// Limit of all widths.
inline constexpr std::int64_t kMaxModelWidth = 1 << 20;

/// Option of every network: the function after the input layer (inputs.h). Model files and reports
/// have it only for networks with inputs by type.
inline constexpr const char* kInputActivation = "input-activation";

/// A network with its widths: `spec.layers` layers inputs -> hidden -> ... -> hidden (layer.h),
/// then the head, hidden -> classes. Without a head the last layer is hidden -> classes. The
/// embedding of a vertex is the last layer's output, so that it depends on every hop; the scores
/// are the head's output.
struct ModelShape {
  ModelSpec spec;
  std::int64_t inputs = 0;  ///< columns that the first layer reads; `hidden` with inputs by type
  std::int64_t classes = 0;

  /// Names of the vertex types, of inputs by type and of kinds with weights by type; and names of
  /// the edge types, of such kinds. In the graph's order. Empty: the network ignores types.
  std::vector<std::string> vertex_types = {};
  std::vector<std::string> relations = {};

  /// Whether edges of the two directions are different relations: edges of out-lists have
  /// the number of their type plus relations.size().
  bool by_side = false;

  /// [vertex_types]; empty: all vertices have rows of `inputs` columns.
  std::vector<TypedInput> typed_inputs = {};

  /// Returns the number of relations that have weights, for kinds with weights by type: at least 1.
  std::int64_t relation_count() const {
    const auto names = static_cast<std::int64_t>(relations.empty() ? 1 : relations.size());
    return by_side ? 2 * names : names;
  }

  /// Returns the number of vertex types that have weights, for kinds with weights by type: at least
  /// 1.
  std::int64_t vertex_type_count() const {
    return static_cast<std::int64_t>(vertex_types.empty() ? 1 : vertex_types.size());
  }

  bool typed() const { return !vertex_types.empty() || !relations.empty(); }
};

/// Checks the ranges of all settings and completes the options. Errors: kInvalidArgument, naming
/// the setting that is out of range.
Result<ModelOptions> CheckShape(const ModelShape& shape);

HeadKind HeadOf(const ModelOptions& options);

/// Returns the values of all options that apply to the shape, which CheckShape accepts.
std::map<std::string, std::string> OptionsOf(const ModelShape& shape);

/// Encodes a shape that CheckShape accepts as the JSON text of a model file: format 2, or format 3
/// if it has types.
std::string EncodeModelShape(const ModelShape& shape);

/// Describes a shape for comparison with the shape of an earlier run: in format 1 if it can express
/// the shape, so that it matches runs from before format 2; otherwise like EncodeModelShape.
std::string DescribeModelShape(const ModelShape& shape);

/// Decodes the JSON text of a model file: format 2, or 3 with types, or format 1, which had two
/// kinds without options. Errors: kCorruption, naming the field; kUnsupported, a later format, or
/// an unknown kind or option.
Result<ModelShape> DecodeModelShape(std::string_view json);

}  // namespace internal
}  // namespace rhizome
