#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

#include "handle.h"
#include "job.h"
#include "numpy.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_types.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"

namespace rhizome::python {
namespace {

/// Returns the name by which users request a stored array; nullopt for internal arrays, arrays of
/// edges, and versions of an array that is already shown.
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

/// A StorePoint as a Python tuple, in the order of rhizome._types.Point.
using PointTuple = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t,
                              std::uint64_t, std::uint64_t, std::string>;

StorePoint PointOf(const PointTuple& tuple) {
  const auto& [store, generation, version, base, first, sequence, text] = tuple;
  const std::optional<StateId> state = StateId::Parse(text);
  if (!state) throw nb::value_error("the state of a point has 64 hex digits, or none");
  return {.store = Take(StoreId::Parse(store)),
          .generation = generation,
          .manifest_version = version,
          .base_sequence = base,
          .first_commit = first,
          .sequence = sequence,
          .state = *state};
}

PointTuple PointAsTuple(const PyGraph& graph) {
  const StorePoint point = graph.Snapshot()->point();
  return {point.store.ToString(), point.generation, point.manifest_version, point.base_sequence,
          point.first_commit,     point.sequence,   point.state.ToString()};
}

/// Opens a store: (1) converts the options; (2) opens it once to list its arrays, so that the
/// service caches them; (3) opens the service; (4) wraps it in a handle. `topology` is "auto",
/// "memory", "disk" or "lazy". `log` is None, or is called with each line of at least `log_level`.
PyGraph Open(const std::string& path, bool writable, std::uint64_t memory_bytes,
             const std::string& topology, nb::object log, const std::string& log_level,
             const std::optional<PointTuple>& at, double wait_seconds) {
  ServiceOptions options;
  if (at) options.at = PointOf(*at);
  options.mode = writable ? Store::Mode::kWrite : Store::Mode::kRead;
  options.memory_budget_bytes = memory_bytes;
  if (topology == "memory") options.topology = TopologyPlace::kMemory;
  if (topology == "disk") options.topology = TopologyPlace::kDirect;
  if (topology == "lazy") options.topology = TopologyPlace::kLazy;
  std::shared_ptr<LogSink> sink;
  if (!log.is_none()) {
    sink = LogSink::Make(std::move(log));
    options.log = sink->callback();
    for (const LogLevel level :
         {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError})
      if (LogLevelName(level) == log_level) options.log_level = level;
  }
  const auto open = [&](const JobControl& control) -> Result<std::unique_ptr<GraphService>> {
    options.wait = {.seconds = wait_seconds, .control = &control};
    {
      RHIZOME_ASSIGN_OR_RETURN(
          const auto store,
          Store::Open(FileSystem::Posix(), path, Store::Mode::kRead, {.at = options.at}));
      options.arrays = ArraysOf(store->manifest());
    }
    return GraphService::Open(FileSystem::Posix(), path, options);
  };
  try {
    auto service = RunJob(nb::none(), About::kStore, open);
    return PyGraph(std::make_shared<Handle>(std::move(service), sink));
  } catch (...) {
    if (sink != nullptr) sink->Deliver();
    throw;
  }
}

/// Returns (source, destination) for each edge type, as indices of vertex types; None: several.
nb::list EdgeEndsAsTuples(const PyGraph& graph) {
  const auto used = graph.Use();
  const auto type = [](TypeId end) {
    return end == kSeveralTypes ? nb::none() : nb::object(nb::int_(end));
  };
  nb::list ends;
  for (const EdgeEnds& one : Unlocked([&] { return used->edge_ends(); }))
    ends.append(nb::make_tuple(type(one.source), type(one.destination)));
  return ends;
}

nb::list ArraysAsTuples(const PyGraph& graph) {
  const auto fixed = graph.Snapshot();
  const Manifest& manifest = fixed->store().manifest();
  nb::list arrays;
  for (const ArrayEntry& entry : manifest.arrays) {
    const auto name = ShownArray(manifest, entry);
    if (!name) continue;
    nb::list versions;
    if (const auto stored = SplitVersion(entry.name))
      for (const std::uint64_t version : VersionsOf(manifest, stored->first))
        versions.append(version);
    nb::dict aliases;
    if (const ArraySeries* series = manifest.FindSeries(*name))
      for (const ArrayAlias& alias : series->aliases)
        aliases[nb::str(alias.name.data(), alias.name.size())] = alias.history.back();
    std::string vertex_type;  // empty: of all types
    for (const auto& [key, value] : entry.attributes)
      if (key == "vertex_type") vertex_type = value;
    arrays.append(nb::make_tuple(
        *name, nb::make_tuple(entry.rows, entry.dim), nb::borrow(NumpyType(entry.dtype)),
        std::string(ArrayLayoutName(entry.layout)), nb::tuple(versions), aliases, vertex_type));
  }
  return arrays;
}

std::uint64_t CountEdges(const PyGraph& graph) {
  const auto used = graph.Use();
  return Take(Unlocked([&] { return used->CountEdges(); }));
}

/// External ids, all integers or all texts. Keeps their memory alive.
class NamedVertices {
 public:
  /// Throws TypeError for other types, and for a mixture.
  explicit NamedVertices(nb::handle ids) {
    if (nb::try_cast(ids, array_, false)) {
      span_.integers = {array_.data(), array_.size()};
      return;
    }
    list_ = InPython([&] { return nb::steal(PySequence_List(ids.ptr())); });
    if (!list_.is_valid()) throw nb::python_error();
    for (const nb::handle id : nb::borrow<nb::list>(list_)) Add(id);
    if (!integers_.empty() && !texts_.empty())
      throw nb::type_error("ids are all str or all int, for a store has one kind of them");
    span_ = {.integers = integers_, .texts = texts_};
  }
  NamedVertices(const NamedVertices&) = delete;
  NamedVertices& operator=(const NamedVertices&) = delete;

  const IdSpan& span() const { return span_; }

 private:
  void Add(nb::handle id) {
    if (!PyUnicode_Check(id.ptr())) {
      integers_.push_back(std::get<std::int64_t>(IdOf(id)));
      return;
    }
    texts_.push_back(TextOfId(id));
  }

  nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> array_;
  nb::object list_;
  std::vector<std::int64_t> integers_;
  std::vector<std::string_view> texts_;  // point into list_
  IdSpan span_;
};

/// Finds one id, or each id of a sequence.
nb::object Find(const PyGraph& graph, nb::handle ids) {
  const auto used = graph.Use();
  if (IsOneId(ids)) return nb::int_(VertexOf(*used, ids));
  if (PyBytes_Check(ids.ptr()) || !nb::isinstance<nb::iterable>(ids))
    throw nb::type_error("ids are a str, an int, or several of them in a row");
  const NamedVertices wanted(ids);
  auto found = NewColumn<VertexId>(wanted.span().size());
  Check(Unlocked([&] { return FindAll(*used, wanted.span(), found.values); }));
  return found.array;
}

nb::list ExternalIdsAsList(const PyGraph& graph, nb::handle ids) {
  const auto used = graph.Use();
  const Ids vertices(ids, used->vertex_count());
  const ExternalIds found = Take(Unlocked([&] { return ExternalIdsOf(*used, vertices.span()); }));
  nb::list result;
  for (const std::int64_t id : found.integers) result.append(id);
  for (const std::string& id : found.texts) result.append(nb::str(id.data(), id.size()));
  return result;
}

/// Creates a NamedTuple of rhizome._types from its fields.
nb::object Named(PyObject* type, const nb::tuple& fields) {
  static PyObject* const make =
      nb::object(nb::module_::import_("builtins").attr("tuple").attr("__new__")).release().ptr();
  return nb::handle(make)(nb::handle(type), fields);
}

/// Returns one field of `list` as an array.
template <typename T>
nb::object ColumnOf(const std::vector<Neighbor>& list, T Neighbor::*field) {
  auto column = NewColumn<T>(list.size());
  std::transform(list.begin(), list.end(), column.values.begin(),
                 [&](const Neighbor& one) { return one.*field; });
  return std::move(column.array);
}

nb::object NeighborsOfOne(const PyGraph& graph, nb::handle id, Direction direction) {
  static PyObject* const type = Kept("rhizome._types", "Neighbors");
  const auto fixed = graph.Snapshot();
  const VertexId vertex = VertexOf(*fixed, id);
  const auto list = Take(Unlocked([&] { return fixed->Neighbors(vertex, direction); }));
  const PyGraph::Columns& has = graph.ColumnsOf(*fixed);
  return Named(type, nb::make_tuple(ColumnOf(list, &Neighbor::vertex),
                                    has.types ? ColumnOf(list, &Neighbor::type) : nb::none(),
                                    has.weights ? ColumnOf(list, &Neighbor::weight) : nb::none()));
}

nb::object NeighborsOfMany(const PyGraph& graph, nb::handle ids, Direction direction) {
  static PyObject* const type = Kept("rhizome._types", "NeighborLists");
  const auto fixed = graph.Snapshot();
  const Ids vertices(ids, fixed->vertex_count());
  NeighborLists lists;
  if (vertices.size() < kManyItems) {
    Check(Unlocked([&] { return LookUpNeighbors(*fixed, vertices.span(), direction, lists); }));
  } else {
    static_cast<void>(RunJob(nb::none(), About::kContents, [&](const JobControl& control) {
      return Completed(
          LookUpNeighbors(*fixed, vertices.span(), direction, lists, {.control = &control}));
    }));
  }
  const PyGraph::Columns& has = graph.ColumnsOf(*fixed);
  return Named(type,
               nb::make_tuple(ToNumpy(std::move(lists.offsets)), ToNumpy(std::move(lists.vertices)),
                              has.types ? ToNumpy(std::move(lists.types)) : nb::none(),
                              has.weights ? ToNumpy(std::move(lists.weights)) : nb::none()));
}

nb::object Neighbors(const PyGraph& graph, nb::handle ids, const std::string& direction) {
  const Direction wanted = DirectionOf(direction);
  return IsOneId(ids) ? NeighborsOfOne(graph, ids, wanted) : NeighborsOfMany(graph, ids, wanted);
}

nb::object Degrees(const PyGraph& graph, nb::handle ids, const std::string& direction) {
  const Direction wanted = DirectionOf(direction);
  const auto fixed = graph.Snapshot();
  const Ids vertices(ids, fixed->vertex_count());
  auto degrees = NewColumn<std::int64_t>(vertices.size());
  Check(Unlocked([&]() -> Status {
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      RHIZOME_ASSIGN_OR_RETURN(const auto degree, fixed->Degree(vertices.span()[i], wanted));
      degrees.values[i] = static_cast<std::int64_t>(degree);
    }
    return Status::Ok();
  }));
  return degrees.array;
}

nb::object TypesOfVertices(const PyGraph& graph, nb::handle ids) {
  const auto fixed = graph.Snapshot();
  const Ids vertices(ids, fixed->vertex_count());
  auto types = NewColumn<TypeId>(vertices.size());
  Check(Unlocked([&] { return TypesOf(*fixed, vertices.span(), types.values); }));
  return types.array;
}

/// Returns the vertices of a type, or all, without deleted ones, ascending.
nb::object VerticesOf(const PyGraph& graph, std::optional<TypeId> type) {
  const auto fixed = graph.Snapshot();
  std::vector<VertexId> found;
  Check(Unlocked([&]() -> Status {
    const auto bound = static_cast<VertexId>(fixed->vertex_count());
    for (VertexId vertex = 0; vertex < bound; ++vertex) {
      RHIZOME_ASSIGN_OR_RETURN(const TypeId of_vertex, fixed->TypeOf(vertex));
      if (of_vertex == type.value_or(of_vertex) && !fixed->IsDeleted(vertex))
        found.push_back(vertex);
    }
    return Status::Ok();
  }));
  return ToNumpy(std::move(found));
}

/// Returns the attributes of edges: name, dtype, number of values per edge, and what they mean.
nb::list EdgeAttributes(const PyGraph& graph) {
  nb::list attributes;
  for (const EdgeAttributeInfo& info : graph.Use()->edge_attributes()) {
    nb::dict meaning;
    for (const auto& [key, value] : info.attributes)
      meaning[nb::str(key.data(), key.size())] = nb::str(value.data(), value.size());
    attributes.append(
        nb::make_tuple(info.name, nb::borrow(NumpyType(info.dtype)), info.dim, meaning));
  }
  return attributes;
}

/// Returns the nearest vertices and their scores. `to` is a float32 row or an external id.
nb::tuple Similar(const PyGraph& graph, nb::handle to, const std::string& array, std::uint64_t k,
                  nb::object progress) {
  const auto fixed = graph.Snapshot();
  std::vector<ScoredVertex> nearest;
  if (IsOneId(to)) {
    const VertexId vertex = VertexOf(*fixed, to);
    nearest = RunJob(std::move(progress), About::kContents, [&](const JobControl& control) {
      return NearestVertices(*fixed, array, vertex, k, control);
    });
  } else {
    const auto row =
        nb::cast<nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(to, false);
    nearest = RunJob(std::move(progress), About::kContents, [&](const JobControl& control) {
      return NearestRows(*fixed, array, {row.data(), row.size()}, k, control);
    });
  }
  auto vertices = NewColumn<VertexId>(nearest.size());
  nb::list scores;
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    vertices.values[i] = nearest[i].vertex;
    scores.append(nearest[i].score);
  }
  return nb::make_tuple(vertices.array, scores);
}

}  // namespace

std::string ListedArrays(const Manifest& manifest) {
  std::string names;
  for (const std::string& name : ArraysOf(manifest)) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

VertexId VertexOf(const Graph& graph, nb::handle id) {
  const ExternalId name = IdOf(id);
  const auto* text = std::get_if<std::string>(&name);
  return Take(text != nullptr ? graph.FindText(*text) : graph.Find(name));
}

void BindGraph(nb::module_& module) {
  nb::class_<PyGraph>(module, "Graph")
      .def_static("open", &Open, nb::arg("path"), nb::arg("writable"), nb::arg("memory_bytes"),
                  nb::arg("topology"), nb::arg("log").none(), nb::arg("log_level"),
                  nb::arg("at").none(), nb::arg("wait_seconds"))
      .def_prop_ro("schema",
                   [](const PyGraph& graph) { return SchemaText(SchemaOf(*graph.Snapshot())); })
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
           [](const PyGraph& graph) {
             auto snapshot = graph.Snapshot();
             return PyGraph(Handle::ForSnapshot(graph.handle()), std::move(snapshot));
           })
      .def_prop_ro("fixed",
                   [](const PyGraph& graph) {
                     return graph.is_snapshot() || graph.handle()->Use()->store().fixed();
                   })
      .def_prop_ro("partitions",
                   [](const PyGraph& graph) { return graph.Snapshot()->partition_count(); })
      .def_prop_ro("symmetric",
                   [](const PyGraph& graph) { return graph.Snapshot()->info().symmetric; })
      .def_prop_ro("point", &PointAsTuple)
      .def("refresh",
           [](const PyGraph& graph) {
             const auto service = graph.Live();
             if (service->store().fixed())
               throw nb::value_error("a graph that was opened at a point never changes");
             Check(Unlocked([&] { return service->graph().Refresh(); }));
           })
      .def_prop_ro("vertex_bound", [](const PyGraph& graph) { return graph.Use()->vertex_count(); })
      .def_prop_ro("num_vertices",
                   [](const PyGraph& graph) { return graph.Use()->live_vertex_count(); })
      .def_prop_ro("num_edges", &CountEdges)
      .def_prop_ro("topology_on_disk",
                   [](const PyGraph& graph) {
                     return graph.handle()->Use()->memory().topology != TopologyPlace::kMemory;
                   })
      .def_prop_ro("sequence", [](const PyGraph& graph) { return graph.Use()->sequence(); })
      .def_prop_ro("vertex_types", [](const PyGraph& graph) { return graph.Use()->vertex_types(); })
      .def_prop_ro("edge_types", [](const PyGraph& graph) { return graph.Use()->edge_types(); })
      .def_prop_ro("edge_ends", &EdgeEndsAsTuples,
                   nb::sig("def edge_ends(self) -> list[tuple[int | None, int | None]]"))
      .def(
          "arrays", &ArraysAsTuples,
          nb::sig("def arrays(self) -> list[tuple[str, tuple[int, int], str, str, tuple[int, ...], "
                  "dict[str, int], str]]"))
      .def("find", &Find, nb::arg("ids").none(),
           nb::sig("def find(self, ids: object) -> typing.Any"))
      .def("external_ids", &ExternalIdsAsList, nb::arg("ids").none(),
           nb::sig("def external_ids(self, ids: object) -> list[int | str]"))
      .def("neighbors", &Neighbors, nb::arg("ids").none(), nb::arg("direction"),
           nb::sig("def neighbors(self, ids: object, direction: str) -> typing.Any"))
      .def("degrees", &Degrees, nb::arg("ids").none(), nb::arg("direction"),
           nb::sig("def degrees(self, ids: object, direction: str) -> numpy.ndarray"))
      .def("types_of", &TypesOfVertices, nb::arg("ids").none(),
           nb::sig("def types_of(self, ids: object) -> numpy.ndarray"))
      .def("vertices_of", &VerticesOf, nb::arg("type").none(),
           nb::sig("def vertices_of(self, type: int | None) -> numpy.ndarray"))
      .def(
          "edge_attributes", &EdgeAttributes,
          nb::sig("def edge_attributes(self) -> list[tuple[str, typing.Any, int, dict[str, str]]]"))
      .def("similar", &Similar, nb::arg("to").none(), nb::arg("array"), nb::arg("k"),
           nb::arg("progress").none(),
           nb::sig("def similar(self, to: object, array: str, k: int, progress: object) -> "
                   "tuple[numpy.ndarray, list[float]]"))
      .def("metrics", [](const PyGraph& graph) { return graph.handle()->Use()->MetricsAsText(); });
}

}  // namespace rhizome::python
