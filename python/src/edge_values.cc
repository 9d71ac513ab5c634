#include <nanobind/stl/string.h>

#include <algorithm>

#include "handle.h"
#include "numpy.h"
#include "rhizome/index/edge_times.h"

namespace rhizome::python {
namespace {

/// Returns an attribute of all edges, int64, by their numbers (EdgeNumbering): those of the
/// generation, then those written since, as they lie in the lists of `direction`.
nb::object EdgeValues(const PyGraph& graph, const std::string& attribute,
                      const std::string& direction) {
  const auto snapshot = graph.Snapshot();
  const Direction walked = DirectionOf(direction);
  return Take(Unlocked([&]() -> Result<NewArray<std::int64_t>> {
           RHIZOME_ASSIGN_OR_RETURN(const auto values, LoadEdgeTimes(*snapshot, attribute));
           std::vector<std::span<const std::int64_t>> parts;
           for (std::uint32_t p = 0; p < snapshot->partition_count(); ++p)
             parts.push_back(values->OfPartition(p));
           parts.push_back(values->OfDelta(walked));
           std::size_t size = 0;
           for (const auto part : parts) size += part.size();
           NewArray<std::int64_t> all(size);
           auto end = all.span().begin();
           for (const auto part : parts) end = std::copy(part.begin(), part.end(), end);
           return all;
         }))
      .ToNumpy();
}

}  // namespace

void BindEdgeValues(nb::module_& module) {
  module.def("edge_values", &EdgeValues, nb::arg("graph"), nb::arg("attribute"),
             nb::arg("direction"),
             nb::sig("def edge_values(graph: Graph, attribute: str, direction: str) -> "
                     "numpy.ndarray"));
}

}  // namespace rhizome::python
