#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "handle.h"
#include "index/input/number.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/write_batch.h"

namespace rhizome::python {
namespace {

/// Converts a value of an edge attribute: integers to int64, all other numbers to double, a str to
/// a text. None is not given.
EdgeValue ValueOf(nb::handle value) {
  if (value.is_none()) return {};
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  if (!PyFloat_Check(value.ptr()) && PyIndex_Check(value.ptr()))
    return std::get<std::int64_t>(IdOf(value));
  double number = 0;
  if (!nb::try_cast(value, number))
    throw nb::type_error("the value of an edge attribute must be an int, a float or a str");
  return number;
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

/// The values of an attribute of many edges: numbers, texts, or nothing if neither is given.
class Values {
 public:
  explicit Values(nb::handle values) {
    if (nb::isinstance<nb::list>(values))
      texts_ = nb::cast<std::vector<std::string>>(values);
    else if (!values.is_none())
      numbers_ = nb::cast<Column>(values, false);
  }

  EdgeValue At(std::size_t i) const {
    if (texts_) return (*texts_)[i];
    if (!numbers_) return {};
    if (numbers_->dtype() == nb::dtype<std::int64_t>())
      return static_cast<const std::int64_t*>(numbers_->data())[i];
    return static_cast<const double*>(numbers_->data())[i];
  }

  /// Returns the number of values; `otherwise` if none are given.
  std::size_t size(std::size_t otherwise) const {
    return texts_ ? texts_->size() : numbers_ ? numbers_->size() : otherwise;
  }

 private:
  std::optional<Column> numbers_;
  std::optional<std::vector<std::string>> texts_;
};

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

  void PutVertex(nb::handle id, const std::string& type) { Filling().PutVertex(IdOf(id), type); }
  void DeleteVertex(nb::handle id) { Filling().DeleteVertex(IdOf(id)); }
  void PutEdge(nb::handle src, nb::handle dst, std::string type, double weight,
               nb::sequence attributes) {
    Filling().PutEdge(IdOf(src), IdOf(dst), FieldsOf(std::move(type), weight, attributes));
  }
  void UpsertEdge(nb::handle src, nb::handle dst, std::string type, double weight,
                  nb::sequence attributes) {
    Filling().UpsertEdge(IdOf(src), IdOf(dst), FieldsOf(std::move(type), weight, attributes));
  }

  /// Puts an edge for each pair of ids. `codes` is None, or int64 [n] with an index of `types` for
  /// each edge; `weights` is float32 [n]; `attributes` has one array [n] per value of an edge,
  /// int64 or float64, or a list of n texts, or None: not given. rhizome.Batch.put_edges has
  /// converted them. `upsert`: each edge replaces those between its ends of its type.
  void PutEdges(nb::handle src, nb::handle dst, const std::vector<std::string>& types,
                nb::handle codes, const Column& weights, const nb::list& attributes, bool upsert) {
    WriteBatch& batch = Filling();
    const std::vector<ExternalId> sources = NamesOf(src), targets = NamesOf(dst);
    std::optional<Column> type_of;
    if (!codes.is_none()) type_of = nb::cast<Column>(codes, false);
    CheckSame(targets.size(), sources.size(), "targets");
    CheckSame(weights.size(), sources.size(), "weights");
    if (type_of) CheckSame(type_of->size(), sources.size(), "types");
    std::vector<Values> columns;
    for (const nb::handle values : attributes) {
      columns.emplace_back(values);
      CheckSame(columns.back().size(sources.size()), sources.size(), "values of an attribute");
    }
    const auto* const code_of =
        type_of ? static_cast<const std::int64_t*>(type_of->data()) : nullptr;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const std::size_t type = code_of == nullptr ? 0 : static_cast<std::size_t>(code_of[i]);
      EdgeFields fields{.type = types.at(type),
                        .weight = static_cast<const float*>(weights.data())[i]};
      for (const Values& values : columns) fields.attributes.push_back(values.At(i));
      if (upsert)
        batch.UpsertEdge(sources[i], targets[i], std::move(fields));
      else
        batch.PutEdge(sources[i], targets[i], std::move(fields));
    }
  }

  void DeleteEdge(nb::handle src, nb::handle dst, const std::string& type) {
    Filling().DeleteEdge(IdOf(src), IdOf(dst), type);
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
    Filling().PutRows(names, array, {static_cast<const std::byte*>(rows.data()), rows.nbytes()});
  }

  /// Puts the texts of row i of `rows`, a list of lists of str, for the i-th id, as PutRows does.
  void PutTexts(const std::string& array, nb::object ids,
                const std::vector<std::vector<std::string>>& rows) {
    const std::vector<ExternalId> names = NamesOf(ids);
    if (names.size() != rows.size())
      throw nb::value_error(("there are " + std::to_string(names.size()) + " ids, and " +
                             std::to_string(rows.size()) + " rows")
                                .c_str());
    WriteBatch& batch = Filling();
    for (std::size_t i = 0; i < names.size(); ++i) batch.PutTexts(names[i], array, rows[i]);
  }

  std::size_t size() const { return batch_.size(); }
  void Clear() { batch_.Clear(); }

  /// Refuses all operations from now on.
  void End() { ended_ = true; }
  bool ended() const { return ended_; }

  /// Returns the batch for an operation. Throws InvalidArgument after End.
  WriteBatch& Filling() {
    if (ended_)
      Raise(Status::InvalidArgument(
          "the block of this batch has ended, so nothing can be added to it; start another batch: "
          "with graph.batch() as b"));
    return batch_;
  }

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
  bool ended_ = false;
};

}  // namespace

void BindWriting(nb::module_& module) {
  nb::class_<PyBatch>(module, "Batch")
      .def(nb::init<const PyGraph&>(), nb::arg("graph"))
      .def("put_vertex", &PyBatch::PutVertex, nb::arg("id").none(), nb::arg("type"))
      .def("delete_vertex", &PyBatch::DeleteVertex, nb::arg("id").none())
      .def("put_edge", &PyBatch::PutEdge, nb::arg("src").none(), nb::arg("dst").none(),
           nb::arg("type"), nb::arg("weight"), nb::arg("attributes"),
           nb::sig("def put_edge(self, src: object, dst: object, type: str, weight: float, "
                   "attributes: collections.abc.Sequence[object]) -> None"))
      .def("upsert_edge", &PyBatch::UpsertEdge, nb::arg("src").none(), nb::arg("dst").none(),
           nb::arg("type"), nb::arg("weight"), nb::arg("attributes"),
           nb::sig("def upsert_edge(self, src: object, dst: object, type: str, weight: float, "
                   "attributes: collections.abc.Sequence[object]) -> None"))
      .def("put_edges", &PyBatch::PutEdges, nb::arg("src").none(), nb::arg("dst").none(),
           nb::arg("types"), nb::arg("codes").none(), nb::arg("weights"), nb::arg("attributes"),
           nb::arg("upsert"),
           nb::sig("def put_edges(self, src: object, dst: object, types: list[str], codes: "
                   "numpy.ndarray | None, weights: numpy.ndarray, "
                   "attributes: list[numpy.ndarray | list[str] | None], upsert: bool) -> None"))
      .def("delete_edge", &PyBatch::DeleteEdge, nb::arg("src").none(), nb::arg("dst").none(),
           nb::arg("type"))
      .def("put_rows", &PyBatch::PutRows, nb::arg("array"), nb::arg("ids").none(), nb::arg("rows"),
           nb::sig("def put_rows(self, array: str, ids: object, rows: numpy.ndarray) -> None"))
      .def("put_texts", &PyBatch::PutTexts, nb::arg("array"), nb::arg("ids").none(),
           nb::arg("rows"),
           nb::sig("def put_texts(self, array: str, ids: object, rows: list[list[str]]) -> None"))
      .def("__len__", &PyBatch::size)
      .def("end", &PyBatch::End)
      .def_prop_ro("ended", &PyBatch::ended)
      .def("check_filling", [](PyBatch& batch) { static_cast<void>(batch.Filling()); })
      .def("clear", &PyBatch::Clear)
      .def("write", &PyBatch::Write, nb::arg("sync"), nb::arg("create_types"),
           nb::arg("create_vertices"));
}

}  // namespace rhizome::python
