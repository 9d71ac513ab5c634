#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "handle.h"
#include "index/input/number.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/write_batch.h"

namespace rhizome::python {
namespace {

/// Converts a value of an edge attribute: integers to int64, all other numbers to double.
EdgeValue ValueOf(nb::handle value) {
  if (PyFloat_Check(value.ptr()) || !PyIndex_Check(value.ptr())) return nb::cast<double>(value);
  return std::get<std::int64_t>(IdOf(value));
}

EdgeFields FieldsOf(std::string type, double weight, const nb::sequence& attributes) {
  if (VanishesInFloat32(weight))
    throw nb::value_error(("the weight " + nb::cast<std::string>(nb::repr(nb::float_(weight))) +
                           " " + std::string(kVanishes))
                              .c_str());
  EdgeFields fields{.type = std::move(type), .weight = static_cast<float>(weight)};
  for (const nb::handle value : attributes) fields.attributes.push_back(ValueOf(value));
  return fields;
}

using Column = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu, nb::ro>;

EdgeValue ValueAt(const Column& values, std::size_t i) {
  if (values.dtype() == nb::dtype<std::int64_t>())
    return static_cast<const std::int64_t*>(values.data())[i];
  return static_cast<const double*>(values.data())[i];
}

void CheckSame(std::size_t found, std::size_t wanted, const char* what) {
  if (found == wanted) return;
  throw nb::value_error(("there are " + std::to_string(wanted) + " sources, and " +
                         std::to_string(found) + " " + what)
                            .c_str());
}

/// A batch that is being filled, and the handle of the store that it is written to. Write (1) moves
/// the batch out; (2) commits it without the GIL; (3) restores it on error.
class PyBatch {
 public:
  explicit PyBatch(const PyGraph& graph) : handle_(graph.handle()) {
    if (!graph.Live()->store().writable())
      Raise(Status::InvalidArgument("the store is open for reading: open it with mode=\"w\""));
  }

  void PutVertex(nb::handle id, const std::string& type) { batch_.PutVertex(IdOf(id), type); }
  void DeleteVertex(nb::handle id) { batch_.DeleteVertex(IdOf(id)); }
  void PutEdge(nb::handle src, nb::handle dst, std::string type, double weight,
               nb::sequence attributes) {
    batch_.PutEdge(IdOf(src), IdOf(dst), FieldsOf(std::move(type), weight, attributes));
  }
  void UpsertEdge(nb::handle src, nb::handle dst, std::string type, double weight,
                  nb::sequence attributes) {
    batch_.UpsertEdge(IdOf(src), IdOf(dst), FieldsOf(std::move(type), weight, attributes));
  }

  /// Puts an edge for each pair of ids. `weights` is float32 [n]; `attributes` has one array [n]
  /// per attribute, int64 or float64. rhizome.Batch.put_edges has converted them.
  void PutEdges(nb::handle src, nb::handle dst, const std::string& type, const Column& weights,
                const std::vector<Column>& attributes) {
    const std::vector<ExternalId> sources = NamesOf(src), targets = NamesOf(dst);
    CheckSame(targets.size(), sources.size(), "targets");
    CheckSame(weights.size(), sources.size(), "weights");
    for (const Column& values : attributes)
      CheckSame(values.size(), sources.size(), "values of an attribute");
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EdgeFields fields{.type = type, .weight = static_cast<const float*>(weights.data())[i]};
      for (const Column& values : attributes) fields.attributes.push_back(ValueAt(values, i));
      batch_.PutEdge(sources[i], targets[i], std::move(fields));
    }
  }

  void DeleteEdge(nb::handle src, nb::handle dst, const std::string& type) {
    batch_.DeleteEdge(IdOf(src), IdOf(dst), type);
  }

  /// Puts row i of `rows`, which has the type and width of the array, for the i-th id. Ids are
  /// vertex ids in an array, or external ids in a list.
  void PutRows(const std::string& array, nb::object ids,
               const nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu, nb::ro>& rows) {
    const std::vector<ExternalId> names = NamesOf(ids);
    if (names.size() != rows.shape(0))
      throw nb::value_error(("there are " + std::to_string(names.size()) + " ids, and " +
                             std::to_string(rows.shape(0)) + " rows")
                                .c_str());
    batch_.PutRows(names, array, {static_cast<const std::byte*>(rows.data()), rows.nbytes()});
  }

  std::size_t size() const { return batch_.size(); }
  void Clear() { batch_.Clear(); }

  std::tuple<std::uint64_t, std::uint64_t> Write(bool sync, bool create_types,
                                                 bool create_vertices) {
    const auto service = handle_->Use();
    const WriteOptions options{
        .sync = sync, .create_types = create_types, .create_vertices = create_vertices};
    // The batch is moved out first, because another thread may fill it during the write.
    WriteBatch written = std::exchange(batch_, {});
    auto result = Unlocked([&] { return service->graph().Write(written, options); });
    if (!result) batch_ = std::move(written);
    const WriteResult done = Take(std::move(result));
    return {done.commit, done.vertices_added};
  }

 private:
  std::vector<ExternalId> NamesOf(nb::handle ids) const {
    std::vector<ExternalId> names;
    if (nb::isinstance<nb::list>(ids)) {
      for (const nb::handle id : nb::cast<nb::list>(ids)) names.push_back(IdOf(id));
      return names;
    }
    const auto service = handle_->Use();
    const Ids vertices(ids, service->graph().vertex_count());
    ExternalIds found =
        Take(Unlocked([&] { return ExternalIdsOf(service->graph(), vertices.span()); }));
    names.assign(found.integers.begin(), found.integers.end());
    std::move(found.texts.begin(), found.texts.end(), std::back_inserter(names));
    return names;
  }

  std::shared_ptr<Handle> handle_;
  WriteBatch batch_;
};

}  // namespace

void BindWriting(nb::module_& module) {
  nb::class_<PyBatch>(module, "Batch")
      .def(nb::init<const PyGraph&>(), nb::arg("graph"))
      .def("put_vertex", &PyBatch::PutVertex, nb::arg("id"), nb::arg("type"))
      .def("delete_vertex", &PyBatch::DeleteVertex, nb::arg("id"))
      .def("put_edge", &PyBatch::PutEdge, nb::arg("src"), nb::arg("dst"), nb::arg("type"),
           nb::arg("weight"), nb::arg("attributes"),
           nb::sig("def put_edge(self, src: object, dst: object, type: str, weight: float, "
                   "attributes: collections.abc.Sequence[float]) -> None"))
      .def("upsert_edge", &PyBatch::UpsertEdge, nb::arg("src"), nb::arg("dst"), nb::arg("type"),
           nb::arg("weight"), nb::arg("attributes"),
           nb::sig("def upsert_edge(self, src: object, dst: object, type: str, weight: float, "
                   "attributes: collections.abc.Sequence[float]) -> None"))
      .def("put_edges", &PyBatch::PutEdges, nb::arg("src"), nb::arg("dst"), nb::arg("type"),
           nb::arg("weights"), nb::arg("attributes"),
           nb::sig("def put_edges(self, src: object, dst: object, type: str, weights: "
                   "numpy.ndarray, attributes: list[numpy.ndarray]) -> None"))
      .def("delete_edge", &PyBatch::DeleteEdge, nb::arg("src"), nb::arg("dst"), nb::arg("type"))
      .def("put_rows", &PyBatch::PutRows, nb::arg("array"), nb::arg("ids"), nb::arg("rows"),
           nb::sig("def put_rows(self, array: str, ids: object, rows: numpy.ndarray) -> None"))
      .def("__len__", &PyBatch::size)
      .def("clear", &PyBatch::Clear)
      .def("write", &PyBatch::Write, nb::arg("sync"), nb::arg("create_types"),
           nb::arg("create_vertices"));
}

}  // namespace rhizome::python
