#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "handle.h"
#include "job.h"
#include "numpy.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/sampler.h"
#include "storage/array/array_facts.h"

namespace rhizome::python {
namespace {

using EdgeNumbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Reads a column of edges by edge number, [n, values of the column].
nb::object EdgeRows(const PyGraph& graph, const std::string& name, nb::handle edges,
                    nb::handle out) {
  const auto snapshot = graph.Snapshot();
  const EdgeAttributeInfo column = Take(FindEdgeColumn(*snapshot, name));
  // The engine checks the numbers and names the first invalid one.
  const auto numbers = nb::cast<EdgeNumbers>(edges, false);
  const std::span<const std::int64_t> wanted(numbers.data(), numbers.size());
  nb::object rows = nb::borrow(out);
  std::span<std::byte> values;
  std::optional<std::int64_t> null;
  if (out.is_none()) {
    Filled<std::byte> made = NewRows(column.dtype, wanted.size(), column.dim);
    rows = std::move(made.array);
    values = made.values;
    null = NullOf(column.attributes);
  } else {
    values = WritableRows(out, column.dtype, wanted.size(), column.dim);
  }
  const std::size_t row_bytes = column.dim * DataTypeBytes(column.dtype);
  InPieces(wanted.size(), [&](std::size_t first, std::size_t size) {
    return ReadEdgeRows(*snapshot, name, wanted.subspan(first, size),
                        values.subspan(first * row_bytes, size * row_bytes));
  });
  return WithoutNulls(std::move(rows), null);
}

/// Returns an attribute of all edges of the generation, int64, ordered by edge number.
nb::object EdgeValues(const PyGraph& graph, const std::string& attribute) {
  const auto snapshot = graph.Snapshot();
  return Take(Unlocked([&]() -> Result<NewArray<std::int64_t>> {
           RHIZOME_ASSIGN_OR_RETURN(const auto values, LoadEdgeTimes(*snapshot, attribute));
           NewArray<std::int64_t> all(snapshot->generation_edge_count());
           auto end = all.span().begin();
           for (std::uint32_t p = 0; p < snapshot->partition_count(); ++p)
             end = std::ranges::copy(values->OfPartition(p), end).out;
           return all;
         }))
      .ToNumpy();
}

}  // namespace

void BindEdgeValues(nb::module_& module) {
  module.def("edge_values", &EdgeValues, nb::arg("graph"), nb::arg("attribute"),
             nb::sig("def edge_values(graph: Graph, attribute: str) -> numpy.ndarray"));
  module.def("edge_rows", &EdgeRows, nb::arg("graph"), nb::arg("name"), nb::arg("edges"),
             nb::arg("out").none(),
             nb::sig("def edge_rows(graph: Graph, name: str, edges: numpy.ndarray, "
                     "out: numpy.ndarray | None) -> numpy.ndarray"));
}

}  // namespace rhizome::python
