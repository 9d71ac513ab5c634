#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gnn/models/model.h"
#include "gnn/passes/attention_aggregation.h"
#include "gnn/passes/scratch_array.h"

namespace rhizome {
inline namespace internal {

/// The scratch arrays of a job, by name.
using FullArrays = std::map<std::string, std::unique_ptr<ScratchArray>>;

/// Kinds of scratch arrays of a layer. FullNetwork describes their contents.
inline constexpr const char* kPrepared = "prepared";
inline constexpr const char* kSums = "sums";
inline constexpr const char* kHidden = "hidden";
inline constexpr const char* kGradient = "gradient";
inline constexpr const char* kSumsGradient = "sums-gradient";
inline constexpr const char* kOwnGradient = "own-gradient";

/// Returns the name of the array of kind `what` of a layer. Layers count from 0, names from 1: the
/// sums of layer 0 are "sums-1".
std::string NameOfArray(const char* what, std::uint32_t layer);

/// Returns whether the backward pass computes the gradient of a layer's sums and aggregates it over
/// the reverse lists. A first layer that aggregates the features unchanged needs no such gradient.
bool WantsSumsGradient(const Model& model, std::uint32_t layer);

/// Returns whether a layer aggregates by maximum.
bool TakesMax(const Layer& layer);

/// Returns the heads of an attention layer.
GatherHeads HeadsOf(const Layer& layer);

/// Returns the number of columns of the rows that a layer aggregates.
std::int64_t GatheredRowColumns(const Layer& layer);

/// Return the number of columns of a layer's stored sums and of their gradients. For maxima with
/// gradients both include the winners, the rows that attain the maxima (AggregationKind::kMax). For
/// attention see GatherHeads.
std::int64_t SumsColumns(const Model& model, std::uint32_t layer);
std::int64_t SumsGradientColumns(const Model& model, std::uint32_t layer);

/// Returns the shapes of the arrays that an epoch writes for a graph of `rows` vertices, in chunks
/// of `chunk_rows` rows. The index of a shape in the result is the id of the array.
std::vector<ScratchShape> ArraysOf(const Model& model, std::uint64_t rows,
                                   std::uint64_t chunk_rows);

/// Returns whether the sums of a layer can be recomputed in the backward pass, with one more
/// aggregation of the rows of the previous layer, instead of being stored by the forward pass.
bool CanRecomputeSums(const Model& model, std::uint32_t layer);

}  // namespace internal
}  // namespace rhizome
