#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "handle.h"
#include "rhizome/index/bulk_ids.h"
#include "rhizome/index/change_feed.h"
#include "rhizome/index/graph_lookup.h"
#include "rhizome/storage/array_facts.h"
#include "rhizome/storage/array_versions.h"

namespace rhizome::python {
namespace {

/// The name by which users ask for a stored array; nothing for what is the engine's own, for arrays
/// of edges, and for versions that have an array's name already.
std::optional<std::string> ShownArray(const Manifest& manifest, const ArrayEntry& entry) {
  if (IsOfEdges(entry) || entry.name.ends_with(kSidecarSuffix) || entry.name.ends_with(".stale"))
    return std::nullopt;
  const auto version = SplitVersion(entry.name);
  if (!version) return entry.name;
  if (manifest.FindArray(version->first) != &entry) return std::nullopt;
  return std::string(version->first);
}

std::vector<std::string> ArraysOf(const Manifest& manifest) {
  std::vector<std::string> names;
  for (const ArrayEntry& entry : manifest.arrays)
    if (const auto name = ShownArray(manifest, entry)) names.push_back(*name);
  return names;
}

PyGraph Open(const std::string& path, bool writable, std::uint64_t memory_bytes) {
  ServiceOptions options;
  options.mode = writable ? Store::Mode::kWrite : Store::Mode::kRead;
  options.memory_budget_bytes = memory_bytes;
  auto service = Unlocked([&]() -> Result<std::unique_ptr<GraphService>> {
    {
      RHIZOME_ASSIGN_OR_RETURN(const auto store,
                               Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
      options.arrays = ArraysOf(store->manifest());
    }
    return GraphService::Open(FileSystem::Posix(), path, options);
  });
  return PyGraph(std::make_shared<Handle>(Take(std::move(service), About::kStore)));
}

/// Calls `call` with the manifest that `graph` sees.
template <typename Call>
auto WithManifest(const PyGraph& graph, Call&& call) {
  if (!graph.is_snapshot()) return call(graph.Live()->store().manifest());
  return call(graph.Snapshot()->store().manifest());
}

nb::object ArraysAsTuples(const PyGraph& graph) {
  return WithManifest(graph, [](const Manifest& manifest) {
    nb::list arrays;
    for (const ArrayEntry& entry : manifest.arrays) {
      const auto name = ShownArray(manifest, entry);
      if (!name) continue;
      const auto stored = SplitVersion(entry.name);
      nb::list versions;
      if (stored)
        for (const std::uint64_t version : VersionsOf(manifest, stored->first))
          versions.append(version);
      arrays.append(nb::make_tuple(
          *name, nb::make_tuple(entry.rows, entry.dim), std::string(DataTypeName(entry.dtype)),
          std::string(ArrayLayoutName(entry.layout)), nb::tuple(versions)));
    }
    return nb::object(arrays);
  });
}

std::uint64_t CountEdges(const PyGraph& graph) {
  const auto used = graph.Use();
  return Take(Unlocked([&] { return used->CountEdges(); }));
}

Result<VertexId> FindOne(const Graph& graph, const ExternalId& id) {
  if (const auto* text = std::get_if<std::string>(&id)) return graph.FindText(*text);
  return graph.Find(id);
}

nb::object FindMany(const PyGraph& graph, const nb::iterable& ids) {
  std::vector<ExternalId> wanted;
  if (nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> numbers;
      nb::try_cast(ids, numbers, false)) {
    wanted.assign(numbers.data(), numbers.data() + numbers.size());
  } else {
    for (const nb::handle id : ids) wanted.push_back(IdOf(id));
  }
  std::vector<VertexId> found;
  const auto used = graph.Use();
  Check(Unlocked([&]() -> Status {
    found.reserve(wanted.size());
    for (const ExternalId& id : wanted) {
      RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, FindOne(*used, id));
      found.push_back(vertex);
    }
    return Status::Ok();
  }));
  return ToNumpy(std::move(found));
}

/// Finds one id, or as many as there are in `ids`.
nb::object Find(const PyGraph& graph, nb::handle ids) {
  if (IsOneId(ids)) return nb::int_(Take(FindOne(*graph.Use(), IdOf(ids))));
  if (!nb::isinstance<nb::iterable>(ids))
    throw nb::type_error("ids are a str, an int, or several of them in a row");
  return FindMany(graph, nb::borrow<nb::iterable>(ids));
}

/// Returns the vertex that one id of the user's names.
VertexId VertexOf(const Graph& graph, nb::handle id) { return Take(FindOne(graph, IdOf(id))); }

nb::list ExternalIdsAsList(const PyGraph& graph, nb::handle ids) {
  const auto used = graph.Use();
  const Ids vertices(ids, used->vertex_count());
  const ExternalIds found = Take(Unlocked([&] { return ExternalIdsOf(*used, vertices.span()); }));
  nb::list result;
  for (const std::int64_t id : found.integers) result.append(id);
  for (const std::string& id : found.texts) result.append(nb::str(id.data(), id.size()));
  return result;
}

/// The parts of a neighbour list; an array that says nothing is None.
using Columns = std::tuple<nb::object, nb::object, nb::object>;

Columns NeighborsOfOne(const PyGraph& graph, nb::handle id, const std::string& direction) {
  const auto used = graph.Use();
  const VertexId vertex = VertexOf(*used, id);
  const auto list = Take(Unlocked([&] { return used->Neighbors(vertex, DirectionOf(direction)); }));
  std::vector<VertexId> ids(list.size());
  std::vector<TypeId> types(list.size());
  std::vector<float> weights(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    ids[i] = list[i].vertex;
    types[i] = list[i].type;
    weights[i] = list[i].weight;
  }
  const bool typed = used->edge_types().size() > 1;
  const bool weighted =
      WithManifest(graph, [](const Manifest& manifest) { return manifest.info.weighted; });
  return {ToNumpy(std::move(ids)), typed ? ToNumpy(std::move(types)) : nb::none(),
          weighted ? ToNumpy(std::move(weights)) : nb::none()};
}

std::tuple<nb::object, nb::object, nb::object, nb::object> NeighborsOfMany(
    const PyGraph& graph, nb::handle ids, const std::string& direction) {
  const auto used = graph.Use();
  const Ids vertices(ids, used->vertex_count());
  const Direction wanted = DirectionOf(direction);
  NeighborLists lists;
  std::vector<std::int64_t> offsets;
  Check(Unlocked([&]() -> Status {
    RHIZOME_RETURN_IF_ERROR(LookUpNeighbors(*used, vertices.span(), wanted, lists));
    offsets.assign(lists.offsets.begin(), lists.offsets.end());
    return Status::Ok();
  }));
  const bool typed = !lists.types.empty(), weighted = !lists.weights.empty();
  return {ToNumpy(std::move(offsets)), ToNumpy(std::move(lists.vertices)),
          typed ? ToNumpy(std::move(lists.types)) : nb::none(),
          weighted ? ToNumpy(std::move(lists.weights)) : nb::none()};
}

nb::object Neighbors(const PyGraph& graph, nb::handle ids, const std::string& direction) {
  if (IsOneId(ids)) return nb::cast(NeighborsOfOne(graph, ids, direction));
  return nb::cast(NeighborsOfMany(graph, ids, direction));
}

/// One array of vertices of a graph, by a reference such as "emb" or "emb@3".
class PyArray {
 public:
  PyArray(const PyGraph& graph, std::string name) : graph_(&graph), name_(std::move(name)) {
    entry();
  }

  ArrayEntry entry() const {
    return WithManifest(*graph_, [&](const Manifest& manifest) {
      const ArrayEntry* entry = manifest.FindArray(name_);
      if (entry == nullptr)
        Raise(Status::NotFound("no array '" + name_ + "'; the graph's attribute `arrays` has " +
                               "the names that there are"));
      if (IsOfEdges(*entry))
        Raise(Status::InvalidArgument("'" + name_ + "' is not an array of vertices"));
      return *entry;
    });
  }

  nb::object Read(nb::handle ids, nb::handle out) const {
    const auto graph = graph_->Use();
    const ArrayEntry array = entry();
    if (IsOneId(ids)) {
      const VertexId vertex = VertexOf(*graph, ids);
      auto [rows, bytes] = NewRows(array.dtype, 1, array.dim);
      ReadInto({&vertex, 1}, bytes);
      return rows[0];
    }
    const Ids vertices(ids, graph->vertex_count());
    if (!out.is_none()) {
      ReadInto(vertices.span(), WritableRows(out, array.dtype, vertices.size(), array.dim));
      return nb::borrow(out);
    }
    auto [rows, bytes] = NewRows(array.dtype, vertices.size(), array.dim);
    ReadInto(vertices.span(), bytes);
    return rows;
  }

  const std::string& name() const { return name_; }

 private:
  void ReadInto(std::span<const VertexId> vertices, std::span<std::byte> out) const {
    if (graph_->is_snapshot()) {
      const auto snapshot = graph_->Snapshot();
      return Check(Unlocked([&] { return snapshot->ReadRows(name_, vertices, out); }));
    }
    const auto service = graph_->Live();
    Check(Unlocked([&]() -> Status {
      // An array that came after the opening has no cache.
      if (const auto rows = service->Rows(name_)) return (*rows)->Read(vertices, out);
      return service->graph().ReadRows(name_, vertices, out);
    }));
  }

  const PyGraph* graph_;  // kept by Python (keep_alive)
  std::string name_;
};

std::string_view KindName(Change::Kind kind) {
  switch (kind) {
    case Change::Kind::kVertexType:
      return "vertex_type";
    case Change::Kind::kEdgeType:
      return "edge_type";
    case Change::Kind::kDeleteVertex:
      return "delete_vertex";
    case Change::Kind::kPutVertex:
      return "put_vertex";
    case Change::Kind::kDeleteEdges:
      return "delete_edges";
    case Change::Kind::kPutEdge:
      return "put_edge";
    case Change::Kind::kPutRow:
      return "put_row";
  }
  return "unknown";
}

/// The changes of a graph after a commit, some at a time.
class PyChanges {
 public:
  PyChanges(const PyGraph& graph, std::uint64_t after, std::uint64_t last)
      : feed_(graph.handle(), OpenFeed(graph, after, last)) {}

  /// Returns the next changes as tuples; none at the end.
  nb::list Next(std::size_t most) const {
    const auto feed = feed_.Use();
    std::vector<Change> changes;
    Check(Unlocked([&]() -> Status {
      while (changes.size() < most) {
        Change change;
        RHIZOME_ASSIGN_OR_RETURN(const bool more, feed->Next(change));
        if (!more) break;
        changes.push_back(std::move(change));
      }
      return Status::Ok();
    }));
    nb::list result;
    for (const Change& change : changes) result.append(AsTuple(change));
    return result;
  }

 private:
  static std::shared_ptr<ChangeFeed> OpenFeed(const PyGraph& graph, std::uint64_t after,
                                              std::uint64_t last) {
    const auto used = graph.Use();
    return Take(Unlocked([&] { return ChangeFeed::Open(*used, {.after = after, .last = last}); }));
  }

  static nb::tuple AsTuple(const Change& change) {
    const bool edge =
        change.kind == Change::Kind::kPutEdge || change.kind == Change::Kind::kDeleteEdges;
    const bool type =
        change.kind == Change::Kind::kVertexType || change.kind == Change::Kind::kEdgeType;
    const bool row = change.kind == Change::Kind::kPutRow;
    const auto* bytes = reinterpret_cast<const char*>(change.row.data());
    return nb::make_tuple(
        change.commit, std::string(KindName(change.kind)),
        type ? nb::object(nb::none()) : ToPython(change.id),
        edge ? ToPython(change.neighbor_id) : nb::none(), change.type, change.name,
        change.kind == Change::Kind::kPutEdge ? nb::object(nb::float_(change.weight)) : nb::none(),
        row ? nb::object(nb::bytes(bytes, change.row.size())) : nb::none());
  }

  Handle::Lease<ChangeFeed> feed_;
};

void BindArray(nb::module_& module) {
  nb::class_<PyArray>(module, "Array",
                      "An array with a row for each vertex, as ``graph[name]`` returns it.\n\n"
                      "Threads: any. It works as long as its graph is open.")
      .def_prop_ro("name", &PyArray::name, "The name that it was asked for by.")
      .def_prop_ro(
          "shape",
          [](const PyArray& array) {
            const ArrayEntry entry = array.entry();
            return std::tuple(entry.rows, entry.dim);
          },
          "(rows, values in a row). Vertices that were added since the last compaction are not in\n"
          "the count, but may be read.")
      .def_prop_ro(
          "dtype",
          [](const PyArray& array) {
            return nb::module_::import_("numpy").attr("dtype")(
                std::string(DataTypeName(array.entry().dtype)));
          },
          nb::sig("def dtype(self) -> numpy.dtype"), "The ``numpy.dtype`` of its values.")
      .def_prop_ro(
          "layout",
          [](const PyArray& array) { return std::string(ArrayLayoutName(array.entry().layout)); },
          "'row', made for reading random rows, or 'chunk', made for scans.")
      .def(
          "read",
          [](const PyArray& array, nb::handle ids, nb::handle out) { return array.Read(ids, out); },
          nb::arg("ids"), nb::arg("out") = nb::none(),
          nb::sig("def read(self, ids: object, out: numpy.ndarray | None = None) -> numpy.ndarray"),
          "Reads the rows of vertices, each verified against its checksum.\n\n"
          "``ids``: vertex ids, an integer array [n] (or a bool mask of all vertices); or one id\n"
          "of the user's, a str or an int, for which one row [dim] is returned.\n"
          "``out``: an array to read into, C-contiguous and of just this dtype and shape.\n"
          "Returns: ndarray [n, dim]; ``out`` if it was given.\n"
          "Errors: IndexError, an id that no vertex has; TypeError; ValueError, the shape of\n"
          "``out``; NotFound; Corruption; IoError.")
      .def(
          "__getitem__",
          [](const PyArray& array, nb::handle ids) { return array.Read(ids, nb::none()); },
          nb::sig("def __getitem__(self, ids: object) -> numpy.ndarray"),
          "Does what ``read(ids)`` does.");
}

void BindChanges(nb::module_& module) {
  nb::class_<PyChanges>(module, "Changes")
      .def(nb::init<const PyGraph&, std::uint64_t, std::uint64_t>(), nb::arg("graph"),
           nb::arg("after"), nb::arg("last"))
      .def("next", &PyChanges::Next, nb::arg("most"),
           nb::sig("def next(self, most: int) -> list[tuple[typing.Any, ...]]"));
}

}  // namespace

void BindGraph(nb::module_& module) {
  BindArray(module);
  nb::class_<PyGraph>(module, "Graph")
      .def_static("open", &Open, nb::arg("path"), nb::arg("writable"), nb::arg("memory_bytes"))
      .def("close", [](PyGraph& graph) { graph.handle()->Close(); })
      .def_prop_ro("closed", [](const PyGraph& graph) { return graph.handle()->closed(); })
      .def_prop_ro(
          "path",
          [](const PyGraph& graph) { return graph.handle()->Use()->store().path().string(); })
      .def_prop_ro("is_snapshot", &PyGraph::is_snapshot)
      .def_prop_ro("writable",
                   [](const PyGraph& graph) {
                     return !graph.is_snapshot() && graph.Live()->store().writable();
                   })
      .def("snapshot",
           [](const PyGraph& graph) { return PyGraph(graph.handle(), graph.Snapshot()); })
      .def("refresh",
           [](const PyGraph& graph) {
             const auto service = graph.Live();
             Check(Unlocked([&] { return service->graph().Refresh(); }));
           })
      .def_prop_ro("vertex_bound", [](const PyGraph& graph) { return graph.Use()->vertex_count(); })
      .def_prop_ro("num_vertices",
                   [](const PyGraph& graph) { return graph.Use()->live_vertex_count(); })
      .def_prop_ro("num_edges", &CountEdges)
      .def_prop_ro("topology_on_disk",
                   [](const PyGraph& graph) {
                     return graph.handle()->Use()->memory().topology == TopologyPlace::kDirect;
                   })
      .def_prop_ro("sequence", [](const PyGraph& graph) { return graph.Use()->sequence(); })
      .def_prop_ro("vertex_types", [](const PyGraph& graph) { return graph.Use()->vertex_types(); })
      .def_prop_ro("edge_types", [](const PyGraph& graph) { return graph.Use()->edge_types(); })
      .def("arrays", &ArraysAsTuples,
           nb::sig(
               "def arrays(self) -> list[tuple[str, tuple[int, int], str, str, tuple[int, ...]]]"))
      .def(
          "array",
          [](const PyGraph& graph, std::string name) { return PyArray(graph, std::move(name)); },
          nb::arg("name"), nb::keep_alive<0, 1>())
      .def("find", &Find, nb::arg("ids"), nb::sig("def find(self, ids: object) -> typing.Any"))
      .def("external_ids", &ExternalIdsAsList, nb::arg("ids"),
           nb::sig("def external_ids(self, ids: object) -> list[int | str]"))
      .def("neighbors", &Neighbors, nb::arg("ids"), nb::arg("direction"),
           nb::sig("def neighbors(self, ids: object, direction: str) -> tuple[typing.Any, ...]"))
      .def("metrics", [](const PyGraph& graph) { return graph.handle()->Use()->MetricsAsText(); });
  BindChanges(module);
}

}  // namespace rhizome::python
