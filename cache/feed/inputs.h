#pragma once

#include <span>
#include <string>
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

/// Completes the arrays that a user gave for some vertex types. A type that is not in `given` gets
/// the only array of floats that is bound to it; else the array of floats that all types have
/// (`feat` if there are several); else none, with a note. Arrays that `infer` computed, and
/// versions of arrays, are never chosen.
/// Errors: kInvalidArgument, an unknown type, a type that is given twice, an array that is bound to
/// another type, that belongs to edges, or whose dtype is no number; kNotFound, no such array.
Result<InputArrays> ResolveInputs(const GraphSnapshot& graph, std::span<const FeatureInput> given);

/// Checks that an array that is given for all vertices has rows for all of them; a missing array
/// is no error. Errors: kInvalidArgument, it is bound to one of several types.
Status CheckSharedInput(const GraphSnapshot& graph, const std::string& array);

/// Returns the distinct arrays of `inputs`, in order of first use, without empty names.
std::vector<std::string> ArraysOf(std::span<const FeatureInput> inputs);

}  // namespace internal
}  // namespace rhizome
