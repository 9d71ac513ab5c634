#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/gnn/gather_attention.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/scratch_array.h"

namespace rhizome::inline internal {

/// The scratch arrays of a job, by name.
using FullArrays = std::map<std::string, std::unique_ptr<ScratchArray>>;

/// The kinds of arrays of a layer; FullNetwork says what they hold.
inline constexpr const char* kPrepared = "prepared";
inline constexpr const char* kSums = "sums";
inline constexpr const char* kHidden = "hidden";
inline constexpr const char* kGradient = "gradient";
inline constexpr const char* kSumsGradient = "sums-gradient";
inline constexpr const char* kOwnGradient = "own-gradient";

/// Returns the name of such an array of a layer, which is counted from 0.
std::string NameOfArray(const char* what, std::uint32_t layer);

/// Whether the gradients of a layer's sums are wanted, to be gathered.
bool WantsSumsGradient(const Model& model, std::uint32_t layer);

/// Whether a layer takes maxima.
bool TakesMax(const Layer& layer);

/// The heads of a layer that attends.
GatherHeads HeadsOf(const Layer& layer);

/// Returns the columns of the rows that a layer gathers.
std::int64_t GatheredRowColumns(const Layer& layer);

/// Returns the columns of a layer's stored sums, and of their gradients. Of maxima whose gradients
/// are wanted the winners are stored beside them (GatherBy::kMax), and in the gradients again; for
/// attention see GatherHeads.
std::int64_t SumsColumns(const Model& model, std::uint32_t layer);
std::int64_t SumsGradientColumns(const Model& model, std::uint32_t layer);

/// Returns the shapes of the arrays that an epoch of a network writes for a graph of `rows` rows,
/// in chunks of `chunk_rows`; the id of each is its place.
std::vector<ScratchShape> ArraysOf(const Model& model, std::uint64_t rows,
                                   std::uint64_t chunk_rows);

/// Returns whether the sums of a layer need not be kept from the way forward to the way back, as
/// one more gathering of an array gives them again: one that the way back needs anyway.
bool CanRecomputeSums(const Model& model, std::uint32_t layer);

}  // namespace rhizome::inline internal
