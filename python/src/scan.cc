#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include "handle.h"
#include "numpy.h"
#include "rhizome/graph_scan.h"

namespace rhizome::python {
namespace {

/// Iterates over the vertices of a graph in blocks.
class PyVertexScan {
 public:
  PyVertexScan(const PyGraph& graph, std::uint64_t most)
      : most_(most), scan_(graph.handle(), Open(*graph.Snapshot())) {}

  /// Returns vertex ids, external ids, and types. Throws StopIteration at the end.
  nb::tuple Next() const {
    const auto scan = scan_.Use();
    std::vector<VertexId> vertices;
    std::vector<ExternalId> ids;
    std::vector<TypeId> types;
    Status status;
    scan->Unlocked([&](VertexScan& all) {
      while (vertices.size() < most_) {
        auto entry = all.Next();
        if (!entry) break;
        vertices.push_back(entry->vertex);
        ids.push_back(std::move(entry->id));
        types.push_back(entry->type);
      }
      status = all.status();
    });
    Check(status);
    if (vertices.empty()) throw nb::stop_iteration();
    nb::list names;
    for (const ExternalId& id : ids) names.append(ToPython(id));
    return nb::make_tuple(ToNumpy(std::move(vertices)), names, ToNumpy(std::move(types)));
  }

 private:
  using Scan = OneAtATime<VertexScan>;

  static std::shared_ptr<Scan> Open(const GraphSnapshot& graph) {
    return std::make_shared<Scan>(Unlocked([&] { return VertexScan(graph); }));
  }

  std::uint64_t most_;
  Handle::Lease<Scan> scan_;
};

/// Iterates over the edges of a graph in blocks.
class PyEdgeScan {
 public:
  PyEdgeScan(const PyGraph& graph, std::uint64_t most, bool pairs_once)
      : most_(most), scan_(graph.handle(), Open(*graph.Snapshot(), pairs_once)) {
    scan_.Use()->Unlocked([&](const EdgeScan& all) {
      typed_ = all.graph().edge_types().size() > 1;
      weighted_ = all.graph().info().weighted;
    });
  }

  /// Returns sources, targets, types and weights. Throws StopIteration at the end.
  nb::tuple Next() const {
    const auto scan = scan_.Use();
    std::vector<VertexId> src, dst;
    std::vector<TypeId> types;
    std::vector<float> weights;
    Check(scan->Unlocked([&](EdgeScan& all) -> Status {
      while (src.size() < most_) {
        RHIZOME_ASSIGN_OR_RETURN(const auto edge, all.Next());
        if (!edge) break;
        src.push_back(edge->src);
        dst.push_back(edge->dst);
        if (typed_) types.push_back(edge->type);
        if (weighted_) weights.push_back(edge->weight);
      }
      return Status::Ok();
    }));
    if (src.empty()) throw nb::stop_iteration();
    return nb::make_tuple(ToNumpy(std::move(src)), ToNumpy(std::move(dst)),
                          typed_ ? ToNumpy(std::move(types)) : nb::none(),
                          weighted_ ? ToNumpy(std::move(weights)) : nb::none());
  }

 private:
  using Scan = OneAtATime<EdgeScan>;

  static std::shared_ptr<Scan> Open(const GraphSnapshot& graph, bool pairs_once) {
    return std::make_shared<Scan>(
        Take(Unlocked([&] { return EdgeScan::Open(graph, {.pairs_once = pairs_once}); })));
  }

  std::uint64_t most_;
  Handle::Lease<Scan> scan_;
  bool typed_ = false;
  bool weighted_ = false;
};

}  // namespace

void BindScan(nb::module_& module) {
  nb::class_<PyVertexScan>(module, "VertexScan")
      .def(nb::init<const PyGraph&, std::uint64_t>(), nb::arg("graph"), nb::arg("most"))
      .def(
          "__iter__", [](nb::handle scan) { return nb::borrow(scan); },
          nb::sig("def __iter__(self) -> VertexScan"))
      .def("__next__", &PyVertexScan::Next,
           nb::sig("def __next__(self) -> tuple[typing.Any, ...]"));
  nb::class_<PyEdgeScan>(module, "EdgeScan")
      .def(nb::init<const PyGraph&, std::uint64_t, bool>(), nb::arg("graph"), nb::arg("most"),
           nb::arg("pairs_once"))
      .def(
          "__iter__", [](nb::handle scan) { return nb::borrow(scan); },
          nb::sig("def __iter__(self) -> EdgeScan"))
      .def("__next__", &PyEdgeScan::Next, nb::sig("def __next__(self) -> tuple[typing.Any, ...]"));
}

}  // namespace rhizome::python
