#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core.h"
#include "numpy.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/sampler_options.h"

namespace rhizome::python {

/// The arguments of a sampler that are one each; Graph.sampler and Loader check and name them.
struct SamplerArguments {
  std::vector<std::int64_t> fanouts;
  std::vector<std::vector<std::int64_t>> typed_fanouts;  ///< instead, [hops, edge types]
  std::vector<std::string> meta_path;
  std::string direction;  ///< "out", "in" or "both"
  bool replace = false;
  bool weighted = false;
  bool disjoint = false;
  bool again = false;
  bool edge_ids = false;
  bool last = false;
  bool induced = false;
  std::string times;         ///< the edge attribute that has them; empty: none
  std::string vertex_times;  ///< the array that has those of vertices; empty: none
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
};

/// Returns the options that the arguments name, for a graph. Needs no GIL. Throws ValueError for
/// what is no direction. Errors: kNotFound, no such edge type, attribute or
/// array; kInvalidArgument, times of both kinds; those of LoadEdgeTimes and LoadVertexTimes.
Result<SamplerOptions> SamplerOptionsOf(const GraphSnapshot& graph,
                                        const SamplerArguments& arguments);

using Numbers = NewArray<std::int64_t>;

/// Times of seeds, as they are given: [seeds].
using Times = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Copies numbers into memory for a NumPy array.
template <typename To, typename From>
NewArray<To> Copy(const std::vector<From>& from) {
  NewArray<To> to(from.size());
  std::copy(from.begin(), from.end(), to.span().begin());
  return to;
}

/// Returns how far it is from each offset to the next.
inline Numbers Steps(std::span<const std::uint64_t> offsets) {
  Numbers steps(offsets.size() - 1);
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps.span()[i] = static_cast<std::int64_t>(offsets[i + 1] - offsets[i]);
  return steps;
}

}  // namespace rhizome::python
