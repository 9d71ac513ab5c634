#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core.h"
#include "numpy.h"
#include "rhizome/graph.h"
#include "rhizome/sampler.h"

namespace rhizome::python {

/// Scalar arguments of a sampler. Graph.sampler and Loader validate them and report errors by their
/// names.
struct SamplerArguments {
  std::vector<std::int64_t> fanouts;
  std::vector<std::vector<std::int64_t>> typed_fanouts;  ///< replaces fanouts, [hops, edge types]
  std::vector<std::string> meta_path;
  std::string direction;  ///< "out", "in" or "both"
  bool replace = false;
  bool weighted = false;
  bool disjoint = false;
  bool again = false;
  bool edge_ids = false;
  bool last = false;
  bool induced = false;
  std::string times;         ///< edge attribute with the times; empty if not given
  std::string vertex_times;  ///< array with the times of vertices; empty if not given
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
};

/// Converts the arguments to the options of a sampler for a graph. Needs no GIL. Throws ValueError
/// for an invalid direction. Errors: kNotFound, no such edge type, attribute or array;
/// kInvalidArgument, times of both kinds; any error of LoadEdgeTimes or LoadVertexTimes.
Result<SamplerOptions> SamplerOptionsOf(const GraphSnapshot& graph,
                                        const SamplerArguments& arguments);

using Numbers = NewArray<std::int64_t>;

/// Times of the seeds, as passed by the caller: [seeds].
using Times = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Copies numbers into memory for a NumPy array.
template <typename To, typename From>
NewArray<To> Copy(const std::vector<From>& from) {
  NewArray<To> to(from.size());
  std::copy(from.begin(), from.end(), to.span().begin());
  return to;
}

/// Returns the differences between consecutive offsets.
inline Numbers Steps(std::span<const std::uint64_t> offsets) {
  Numbers steps(offsets.size() - 1);
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps.span()[i] = static_cast<std::int64_t>(offsets[i + 1] - offsets[i]);
  return steps;
}

}  // namespace rhizome::python
