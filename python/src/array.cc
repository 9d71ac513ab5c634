#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "handle.h"
#include "job.h"
#include "numpy.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "storage/array/array_facts.h"
#include "storage/array/chunk_writer.h"

namespace rhizome::python {
namespace {

/// An array of vertices of a graph, identified by a reference such as "emb" or "emb@3". It follows
/// the name: after a refresh or a compaction it is the array that the name then refers to.
/// Read (1) resolves dtype and width; (2) resolves the ids; (3) allocates or checks the output; (4)
/// reads from the service's cache if the array has one, else from the snapshot.
class PyArray {
 public:
  PyArray(const PyGraph& graph, std::string name) : graph_(graph), name_(std::move(name)) {
    const auto fixed = graph_.Snapshot();
    FactsOf(*fixed);
    // An array added after the graph was opened has no cache.
    const auto rows = graph_.handle()->Use()->Rows(name_);
    if (rows && !graph_.is_snapshot()) cache_ = *rows;
  }

  nb::object Read(nb::handle ids, nb::handle out) const {
    const auto service = graph_.handle()->Use();  // keeps the cache alive
    const auto fixed = graph_.Snapshot();
    const Facts facts = FactsOf(*fixed);
    if (IsOneId(ids)) {
      const VertexId vertex = VertexOfKey(*fixed, ids);
      auto row = NewRow(facts.dtype, facts.dim);
      ReadInto(*fixed, {&vertex, 1}, row.values);
      return WithoutNulls(std::move(row.array), facts.null);
    }
    const Ids vertices(ids, fixed->vertex_count());
    if (!out.is_none()) {
      ReadInto(*fixed, vertices.span(), WritableRows(out, facts.dtype, vertices.size(), facts.dim));
      return nb::borrow(out);
    }
    auto rows = NewRows(facts.dtype, vertices.size(), facts.dim);
    ReadInto(*fixed, vertices.span(), rows.values);
    return WithoutNulls(std::move(rows.array), facts.null);
  }

  /// Returns the array's current entry in the manifest.
  ArrayEntry entry() const {
    const auto fixed = graph_.Snapshot();
    return EntryIn(fixed->store().manifest());
  }

  /// Returns the folder of the Zarr array.
  std::string folder() const {
    const auto fixed = graph_.Snapshot();
    const ArrayEntry& entry = EntryIn(fixed->store().manifest());
    return (fixed->store().GenerationFolder() / ArrayFolder(entry.name, entry.form)).string();
  }

  /// Counts the rows that were written after the array's files.
  std::size_t changed_rows() const {
    const auto fixed = graph_.Snapshot();
    return fixed->ChangedRows(EntryIn(fixed->store().manifest())).size();
  }

  const std::string& name() const { return name_; }
  const PyGraph& graph() const { return graph_; }
  /// number of vertices, including deleted ones
  std::size_t size() const { return graph_.Use()->vertex_count(); }

 private:
  /// The fields of the entry that a read needs, and the version of the manifest that they are from.
  struct Facts {
    std::uint64_t generation = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t version = 0;
    DataType dtype = DataType::kInvalid;
    std::size_t dim = 0;
    std::optional<std::int64_t> null = {};
  };

  const Facts& FactsOf(const GraphSnapshot& fixed) const {
    const Manifest& manifest = fixed.store().manifest();
    if (facts_.generation != manifest.generation || facts_.version != manifest.version) {
      const ArrayEntry& entry = EntryIn(manifest);
      facts_ = {manifest.generation, manifest.version, entry.dtype, entry.dim,
                NullOf(entry.attributes)};
    }
    return facts_;
  }

  const ArrayEntry& EntryIn(const Manifest& manifest) const {
    const ArrayEntry* entry = manifest.FindArray(name_);
    if (entry == nullptr)
      Raise(Status::NotFound("there is no array '" + name_ +
                             "'; existing arrays: " + ListedArrays(manifest)));
    if (IsOfEdges(*entry))
      Raise(Status::InvalidArgument("'" + name_ + "' is not an array of vertices"));
    return *entry;
  }

  void ReadInto(const GraphSnapshot& fixed, std::span<const VertexId> vertices,
                std::span<std::byte> out) const {
    if (cache_ == nullptr) {
      const std::size_t row_bytes = out.size() / std::max<std::size_t>(vertices.size(), 1);
      InPieces(vertices.size(), [&](std::size_t first, std::size_t size) {
        return fixed.ReadRows(name_, vertices.subspan(first, size),
                              out.subspan(first * row_bytes, size * row_bytes));
      });
      return;
    }
    // Not in pieces, so that all rows are of one commit.
    if (vertices.size() < kManyItems) {
      Check(Unlocked([&] { return cache_->Read(vertices, out); }));
      return;
    }
    static_cast<void>(RunJob(nb::none(), About::kContents, [&](const JobControl& control) {
      return Completed(cache_->Read(vertices, out, {.control = &control}));
    }));
  }

  /// Returns the vertex of one key: an external id if it is a str, else a vertex id. Throws
  /// IndexError for a number that is no vertex id.
  static VertexId VertexOfKey(const GraphSnapshot& fixed, nb::handle key) {
    if (PyUnicode_Check(key.ptr())) return VertexOf(fixed, key);
    if (PyBool_Check(key.ptr())) throw nb::type_error("a vertex id is an int, not a bool");
    const Py_ssize_t id = InPython([&] { return PyNumber_AsSsize_t(key.ptr(), PyExc_IndexError); });
    if (id == -1 && PyErr_Occurred()) throw nb::python_error();
    const std::uint64_t bound = fixed.vertex_count();
    if (static_cast<std::uint64_t>(id) < bound) return id;
    std::string message =
        "vertex id " + std::to_string(id) + " is not in [0, " + std::to_string(bound) + ")";
    if (fixed.info().id_kind == ExternalIdKind::kInteger)
      message += "; brackets take vertex ids, and find() converts external ids to them";
    throw nb::index_error(message.c_str());
  }

  PyGraph graph_;
  std::string name_;
  const RowLookup* cache_ = nullptr;  // owned by the service
  mutable Facts facts_;
};

/// Iterates over the rows of an array in blocks.
class PyArrayScan {
 public:
  PyArrayScan(const PyArray& array, std::uint64_t most)
      : most_(most), scan_(array.graph().handle(), Open(*array.graph().Snapshot(), array.name())) {}

  /// Returns the next vertex ids and their rows. Throws StopIteration at the end.
  nb::tuple Next() const {
    const auto scan = scan_.Use();
    ArrayScan::Block block;
    DataType dtype = DataType::kInvalid;
    std::size_t dim = 0;
    std::optional<std::int64_t> null;
    const bool more = Take(scan->Unlocked([&](ArrayScan& rows) {
      dtype = rows.entry().dtype;
      dim = rows.entry().dim;
      null = NullOf(rows.entry().attributes);
      return rows.Next(most_, block);
    }));
    if (!more) throw nb::stop_iteration();
    const auto rows = NewRows(dtype, block.vertices.size(), dim);
    Unlocked([&] { std::copy(block.rows.begin(), block.rows.end(), rows.values.begin()); });
    return nb::make_tuple(ToNumpy(std::move(block.vertices)), WithoutNulls(rows.array, null));
  }

 private:
  using Scan = OneAtATime<ArrayScan>;

  static std::shared_ptr<Scan> Open(const GraphSnapshot& graph, const std::string& name) {
    return std::make_shared<Scan>(Take(Unlocked([&] { return ArrayScan::Open(graph, name); })));
  }

  std::uint64_t most_;
  Handle::Lease<Scan> scan_;
};

/// Returns the rows of all vertices, for numpy.asarray.
nb::object AsNumpy(const PyArray& array, nb::handle dtype, nb::handle copy) {
  if (copy.is(Py_False))
    throw nb::value_error("the rows of an array are in files: they can only be copied");
  auto everyone = NewColumn<VertexId>(array.size());
  std::iota(everyone.values.begin(), everyone.values.end(), 0);
  const nb::object rows = array.Read(everyone.array, nb::none());
  return dtype.is_none() ? rows : rows.attr("astype")(dtype);
}

}  // namespace

void BindArray(nb::module_& module) {
  nb::class_<PyArrayScan>(module, "ArrayScan")
      .def(
          "__iter__", [](nb::handle scan) { return nb::borrow(scan); },
          nb::sig("def __iter__(self) -> ArrayScan"))
      .def("__next__", &PyArrayScan::Next,
           nb::sig("def __next__(self) -> tuple[numpy.ndarray, numpy.ndarray]"));
  nb::class_<PyArray>(module, "Array",
                      "An array with a row for each vertex, as ``graph[name]`` returns it.\n\n"
                      "Threads: any. It works as long as its graph is open.")
      .def(nb::init<const PyGraph&, std::string>(), nb::arg("graph"), nb::arg("name"))
      .def_prop_ro("name", &PyArray::name, "The name that it was asked for by.")
      .def_prop_ro(
          "dim", [](const PyArray& array) { return array.entry().dim; },
          "The number of values in a row.")
      .def_prop_ro(
          "dtype", [](const PyArray& array) { return nb::borrow(NumpyType(array.entry().dtype)); },
          nb::sig("def dtype(self) -> numpy.dtype"), "The ``numpy.dtype`` of its values.")
      .def_prop_ro(
          "layout",
          [](const PyArray& array) { return std::string(ArrayLayoutName(array.entry().layout)); },
          "'row', made for reading random rows, or 'chunk', made for scans.")
      .def_prop_ro(
          "folder", &PyArray::folder,
          "The folder of its files, a Zarr v3 array in the order of the disk; ``vertex_id``\n"
          "beside it says whose each row is (-1: of a vertex that was deleted).")
      .def_prop_ro(
          "changed_rows", &PyArray::changed_rows,
          "The number of rows that were written since its files were: they are not in these.")
      .def(
          "read",
          [](const PyArray& array, nb::handle ids, nb::handle out) { return array.Read(ids, out); },
          nb::arg("ids").none(), nb::arg("out") = nb::none(),
          nb::sig("def read(self, ids: object, out: numpy.ndarray | None = None) -> numpy.ndarray"),
          "Reads the rows of vertices, each verified against its checksum.\n\n"
          "``ids``: vertex ids, an integer array [n] (or a bool mask of all vertices); or one "
          "vertex\n"
          "id, an int, or one external id, a str, for which one row [dim] is returned.\n"
          "``out``: an array to read into, C-contiguous and of exactly this dtype and shape.\n"
          "Returns: ndarray [n, dim], which is a MaskedRows if the array has the attribute "
          "``null``;\n"
          "``out`` if it was given, with the stored values.\n"
          "Errors: IndexError, a vertex id that no vertex has; NotFound, an unknown external id;\n"
          "TypeError; ValueError, the shape of ``out``; Corruption; IoError.")
      .def(
          "__getitem__",
          [](nb::handle self, nb::handle key) -> nb::object {
            nb::ndarray<const VertexId, nb::ndim<1>, nb::c_contig, nb::device::cpu> ids;
            if (IsOneId(key) || nb::try_cast(key, ids, false))
              return nb::cast<const PyArray&>(self).Read(key, nb::none());
            return InPython([&]() -> nb::object {
              return nb::module_::import_("rhizome._array").attr("select")(self, key);
            });
          },
          nb::arg("key").none(), nb::sig("def __getitem__(self, key: object) -> typing.Any"),
          "Selects rows and columns as NumPy does.")
      .def(
          "batches",
          [](const PyArray& array, nb::handle rows) {
            return std::make_unique<PyArrayScan>(array, CountOf(rows, "rows", 1));
          },
          nb::arg("rows").none() = 65536,
          nb::sig("def batches(self, rows: int = 65536) -> ArrayScan"),
          "Iterates over all rows in the order of the disk, at one commit.\n\n"
          "``rows``: at most so many in a block.\n"
          "Yields: (vertex ids int64 [n], their rows [n, dim] as ``read`` returns them), without\n"
          "vertices that are deleted.\n"
          "Errors: NotFound; Corruption; IoError; ValueError, the graph was closed meanwhile.")
      .def("__len__", &PyArray::size)
      .def("__array__", &AsNumpy, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                   "numpy.ndarray"),
           "Reads the rows of all vertices, those of deleted ones too, for ``numpy.asarray``.")
      .def_prop_ro(
          "attributes",
          [](const PyArray& array) {
            nb::dict attributes;
            for (const auto& [key, value] : array.entry().attributes)
              attributes[nb::str(key.c_str(), key.size())] = nb::str(value.c_str(), value.size());
            return attributes;
          },
          nb::sig("def attributes(self) -> dict[str, str]"),
          "Facts that go with the array, such as the names of classes of ``label``.");
}

}  // namespace rhizome::python
