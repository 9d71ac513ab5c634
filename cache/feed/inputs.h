#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The array with the features of each vertex type.
struct InputArrays {
  std::vector<FeatureInput> of_types;  ///< one for each of Graph::vertex_types, in their order
  std::vector<std::string> notes;      ///< sentences about types that got no array by default

  /// Returns the array that all types have; empty if there are several, or a type has none.
  std::string shared() const;
};

/// Whether rows that are learned, "learned:DIM" instead of the name of an array, are accepted.
enum class LearnedInputs : std::uint8_t { kRefuse, kAccept };

/// Returns the columns of learned rows; nullopt: `array` is the name of an array, or empty.
std::optional<std::uint64_t> LearnedColumns(std::string_view array);

/// Returns the name of the array that receives the learned rows of a vertex type.
std::string LearnedArray(std::string_view vertex_type);

/// Completes the arrays that a user gave for some vertex types. A type that is not in `given` gets
/// the only array of floats that is bound to it; else the array of floats that all types have
/// (`feat` if there are several); else none, with a note. Arrays that `infer` computed, and
/// versions of arrays, are never chosen.
/// Errors: kInvalidArgument, an unknown type, a type that is given twice, an array that is bound to
/// another type, that belongs to edges, or whose dtype is no number; a number of learned columns
/// that is out of range; kNotFound, no such array; kUnsupported, learned rows, which `learned`
/// refuses.
Result<InputArrays> ResolveInputs(const GraphSnapshot& graph, std::span<const FeatureInput> given,
                                  LearnedInputs learned = LearnedInputs::kRefuse);

/// Checks that an array that is given for all vertices has rows for all of them; a missing array
/// is no error. Errors: kInvalidArgument, it is bound to one of several types.
Status CheckSharedInput(const GraphSnapshot& graph, const std::string& array);

/// Returns the distinct arrays of `inputs`, in order of first use, without empty names and learned
/// rows.
std::vector<std::string> ArraysOf(std::span<const FeatureInput> inputs);

}  // namespace internal
}  // namespace rhizome
