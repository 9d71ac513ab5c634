#include "rhizome/loader.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <optional>

#include "handle.h"
#include "job.h"
#include "numpy.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/policy.h"
#include "sampler.h"
#include "storage/base/process.h"

namespace rhizome::python {
namespace {

/// Scalar arguments of a loader. rhizome.Loader validates them and reports errors by their names.
struct LoaderArguments {
  SamplerArguments sampler;
  std::string features;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< instead: arrays by vertex type
  bool normalize = false;
  std::string labels;  ///< empty if there are no labels
  nb::object seeds = nb::none();
  nb::object seed_times = nb::none();
  std::string seed_time_array;
  nb::object pairs = nb::none();  ///< replaces seeds: int64 [m, 3]
  std::uint64_t negatives = 0;
  std::string negative_sources;
  bool keep_seed_edges = false;
  std::string split;     ///< replaces seeds: name of the array
  std::uint8_t set = 0;  ///< number of the set in that array
  std::uint64_t batch_size = 0;
  bool shuffle = false;
  bool drop_last = false;
  std::uint32_t rank = 0, ranks = 1;
  std::uint32_t epochs = 0;  ///< 0: no limit
  std::uint64_t first = 0;
  std::uint64_t memory_bytes = 0;
  std::string policy;
  std::uint32_t superbatch = 0;  ///< 0: chosen automatically
};

/// Converts rows (source, destination, edge type), whose numbers rhizome.Loader has checked.
std::vector<VertexPair> PairsFrom(nb::handle array) {
  const auto rows =
      nb::cast<nb::ndarray<const std::int64_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>>(
          array, false);
  std::vector<VertexPair> pairs(rows.shape(0));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::int64_t* const row = rows.data() + 3 * i;
    pairs[i] = {row[0], row[1], static_cast<TypeId>(row[2])};
  }
  return pairs;
}

LoaderOptions OptionsOf(const GraphSnapshot& graph, const LoaderArguments& arguments) {
  LoaderOptions options;
  options.sampler = Take(Unlocked([&] { return SamplerOptionsOf(graph, arguments.sampler); }));
  options.features = arguments.features;
  for (const auto& [type, array] : arguments.inputs)
    options.inputs.push_back({.vertex_type = type, .array = array});
  options.normalize = arguments.normalize;
  options.labels = arguments.labels;
  if (!arguments.seeds.is_none()) {
    const Ids seeds(arguments.seeds, graph.vertex_count());
    options.seeds.assign(seeds.span().begin(), seeds.span().end());
  }
  if (!arguments.seed_times.is_none()) {
    const auto times = nb::cast<Times>(arguments.seed_times, false);
    options.seed_times.assign(times.data(), times.data() + times.size());
  }
  options.seed_time_array = arguments.seed_time_array;
  if (!arguments.pairs.is_none()) options.pairs = PairsFrom(arguments.pairs);
  options.negatives = arguments.negatives;
  options.negative_sources = arguments.negative_sources;
  options.keep_seed_edges = arguments.keep_seed_edges;
  options.split = arguments.split;
  options.set = static_cast<Split>(arguments.set);
  options.batch_size = arguments.batch_size;
  options.shuffle = arguments.shuffle;
  options.drop_last = arguments.drop_last;
  options.rank = arguments.rank;
  options.ranks = arguments.ranks;
  options.epochs = arguments.epochs;
  options.first = arguments.first;
  options.memory_bytes = arguments.memory_bytes;
  const auto policy = ParsePolicy(arguments.policy);
  if (!policy) throw nb::value_error(("policy: there is no '" + arguments.policy + "'").c_str());
  options.feed.cache = *policy;
  options.feed.superbatch = arguments.superbatch;
  options.job = "python";
  return options;
}

/// A loader with the objects that must outlive it. It is shared by its Python object and by arrays
/// that are views of its rows. In a forked child it belongs to the parent and is never destroyed.
struct Loading {
  /// Result of a call of Next, and the report after it.
  struct Next {
    Result<std::optional<Minibatch>> minibatch;
    LoaderReport report;
  };

  OwnerProcess owner;
  JobControl control;
  std::shared_ptr<const GraphSnapshot> graph;
  std::unique_ptr<Loader> loader;

  // Guarded by the GIL.
  std::future<Next> next;  ///< current call, or one whose result a signal left unclaimed
  bool awaited = false;    ///< a Python thread is waiting for it
  LoaderReport report;

  ~Loading() {
    control.Cancel();
    if (next.valid()) next.wait();
  }
};

/// Drops a reference to a loader. If it is the last one, the loader's threads are joined without
/// the GIL.
void Drop(std::shared_ptr<Loading> loading) {
  if (!loading->owner.here()) {
    new std::shared_ptr<Loading>(std::move(loading));
    return;
  }
  Unlocked([&] { loading.reset(); });
}

/// The rows of a minibatch, owned by arrays that are views of them.
struct LentRows {
  std::shared_ptr<Loading> loading;
  FeatureRows rows;

  static void Return(void* lent) noexcept {
    auto* self = static_cast<LentRows*>(lent);
    if (!self->loading->owner.here()) return;  // belongs to the parent
    Unlocked([&] { self->rows = {}; });
    Drop(std::move(self->loading));
    delete self;
  }
};

/// Runs `task` on a separate thread and returns its future.
template <typename Task>
auto Begin(Task&& task) {
  try {
    return std::async(std::launch::async, std::forward<Task>(task));
  } catch (const std::system_error&) {
    Raise(Status::OutOfMemory("the system gives no thread for the loader"));
  }
}

std::shared_ptr<Loading> OpenLoader(const PyGraph& graph, const LoaderArguments& arguments) {
  graph.handle()->CheckHere("a loader of the graph");
  auto loading = std::make_shared<Loading>();
  loading->graph = graph.Snapshot();
  const LoaderOptions options = OptionsOf(*loading->graph, arguments);
  auto opening = Begin([&] { return Loader::Open(*loading->graph, options, loading->control); });
  try {
    Await(opening);
  } catch (...) {
    loading->control.Cancel();
    Unlocked([&] { opening.wait(); });
    throw;
  }
  loading->loader = Take(opening.get());
  return loading;
}

/// Returns the edges as [2, edges]: the sampled neighbours, then the vertices for which they were
/// sampled.
NewArray<std::int64_t> EdgeIndexOf(const Minibatch& minibatch) {
  NewArray<std::int64_t> index(2 * minibatch.neighbors.size());
  const auto ends =
      std::copy(minibatch.neighbors.begin(), minibatch.neighbors.end(), index.span().begin());
  const std::vector<std::uint32_t>& offsets = minibatch.offsets;
  std::uint64_t first = 0;  // first list of the hop
  std::size_t hop = 0;
  for (std::size_t list = 0; list + 1 < offsets.size(); ++list) {
    while (hop + 1 < minibatch.hop_lists.size() && list == minibatch.hop_lists[hop + 1])
      first = minibatch.hop_lists[++hop];
    std::fill(ends + offsets[list], ends + offsets[list + 1],
              static_cast<std::int64_t>(list - first));
  }
  return index;
}

/// Returns the number of edges sampled in each hop.
NewArray<std::int64_t> EdgesOfHops(const Minibatch& minibatch) {
  const std::vector<std::uint64_t>& bounds =
      minibatch.hop_lists.empty() ? minibatch.hop_offsets : minibatch.hop_lists;
  const std::size_t hops = minibatch.hop_offsets.size() - 2;
  NewArray<std::int64_t> counts(hops);
  const auto edges_before = [&](std::uint64_t list) {
    return minibatch.offsets[std::min<std::uint64_t>(list, minibatch.offsets.size() - 1)];
  };
  for (std::size_t hop = 0; hop < hops; ++hop)
    counts.span()[hop] = static_cast<std::int64_t>(edges_before(bounds[hop + 1])) -
                         static_cast<std::int64_t>(edges_before(bounds[hop]));
  return counts;
}

/// Returns the ends of the pairs as [pairs, 2], local numbers.
NewArray<std::int64_t> PairEnds(const Minibatch& minibatch) {
  NewArray<std::int64_t> ends(2 * minibatch.pairs.size());
  for (std::size_t i = 0; i < minibatch.pairs.size(); ++i) {
    ends.span()[2 * i] = minibatch.pairs[i].src;
    ends.span()[2 * i + 1] = minibatch.pairs[i].dst;
  }
  return ends;
}

NewArray<TypeId> PairTypes(const Minibatch& minibatch) {
  NewArray<TypeId> types(minibatch.pairs.size());
  std::transform(minibatch.pairs.begin(), minibatch.pairs.end(), types.span().begin(),
                 [](const MinibatchPair& pair) { return pair.type; });
  return types;
}

/// Returns the negatives as [2, pairs, each], local numbers, side by side. A minibatch has them by
/// the vertex type of the replaced end, in the order of the pairs.
NewArray<std::int64_t> NegativesOf(const GraphSnapshot& graph, const Minibatch& minibatch,
                                   std::uint64_t each) {
  NewArray<std::int64_t> all(2 * minibatch.pairs.size() * each);
  auto out = all.span().begin();
  for (std::size_t side = 0; side < 2 && each > 0; ++side) {
    std::map<TypeId, std::pair<const MinibatchNegatives*, std::uint64_t>> next;
    for (const MinibatchNegatives& of_type : minibatch.negatives[side])
      next[of_type.type] = {&of_type, 0};
    for (const MinibatchPair& pair : minibatch.pairs) {
      const VertexId end = minibatch.vertices[side == 0 ? pair.src : pair.dst];
      auto& [of_type, used] =
          next.at(next.size() == 1 ? next.begin()->first : Take(graph.TypeOf(end)));
      out = std::copy_n(of_type->vertices.begin() + static_cast<std::ptrdiff_t>(used), each, out);
      used += each;
    }
  }
  return all;
}

/// A minibatch as NumPy arrays, without its feature rows.
struct Parts {
  NewArray<std::int64_t> vertices, edge_index, hops, edge_hops, edge_ids, seed_of, seed_times,
      labels, pairs, negatives;
  NewArray<TypeId> types, vertex_types, pair_types;
  NewArray<float> weights;
};

Parts PartsOf(const Loading& loading, const Minibatch& minibatch, std::uint64_t negatives) {
  NewArray<std::int64_t> edge_ids(minibatch.edges.size());
  const EdgeNumbering numbers(*loading.graph);
  std::transform(minibatch.edges.begin(), minibatch.edges.end(), edge_ids.span().begin(),
                 [&](const EdgeId& edge) { return numbers.Of(edge); });
  return {.vertices = Copy<std::int64_t>(minibatch.vertices),
          .edge_index = EdgeIndexOf(minibatch),
          .hops = Steps(minibatch.hop_offsets),
          .edge_hops = EdgesOfHops(minibatch),
          .edge_ids = std::move(edge_ids),
          .seed_of = Copy<std::int64_t>(minibatch.seed_of),
          .seed_times = Copy<std::int64_t>(minibatch.seed_times),
          .labels = Copy<std::int64_t>(minibatch.labels),
          .pairs = PairEnds(minibatch),
          .negatives = NegativesOf(*loading.graph, minibatch, negatives),
          .types = Copy<TypeId>(minibatch.types),
          .vertex_types = Copy<TypeId>(minibatch.vertex_types),
          .pair_types = PairTypes(minibatch),
          .weights = Copy<float>(minibatch.weights)};
}

/// Indices of some rows; absent: all rows, in order.
using Picked = std::optional<std::vector<std::uint32_t>>;

/// Copies rows from the cache into a new array.
nb::object CopyOf(const FeatureRows& features, const Picked& picked = std::nullopt) {
  const std::size_t count = picked ? picked->size() : features.rows();
  auto [array, bytes] = NewRows(features.type(), count, features.dim());
  Unlocked([&, &bytes = bytes] {
    const std::size_t size = features.row_bytes();
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(bytes.data() + i * size, features.row(picked ? (*picked)[i] : i).data(), size);
  });
  return array;
}

/// Returns a view of the cache that keeps the rows and the loader alive.
nb::object TableOf(LentRows* lent) {
  const nb::capsule owner(lent, &LentRows::Return);
  const FeatureRows& rows = lent->rows;
  const std::size_t shape[2] = {rows.table().size() / std::max<std::size_t>(rows.row_bytes(), 1),
                                rows.dim()};
  const auto half =
      nb::dlpack::dtype{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(
      rows.table().data(), 2, shape, owner, nullptr,
      rows.type() == DataType::kFloat16 ? half : nb::dtype<float>()));
}

nb::object PlacesOf(const FeatureRows& rows, const Picked& picked = std::nullopt) {
  NewArray<std::int64_t> places(picked ? picked->size() : rows.rows());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t row = picked ? (*picked)[i] : i;
    places.span()[i] = rows.place().empty() ? static_cast<std::int64_t>(row) : rows.place()[row];
  }
  return std::move(places).ToNumpy();
}

/// Returns (table, place): row i is table[place[i]].
nb::object ViewOf(std::shared_ptr<Loading> loading, FeatureRows features) {
  auto* lent = new LentRows{std::move(loading), std::move(features)};
  nb::object table = TableOf(lent);
  return nb::make_tuple(std::move(table), PlacesOf(lent->rows));
}

/// Returns the rows of an input that belong to vertices of a type.
std::vector<std::uint32_t> RowsOfType(const Minibatch& minibatch, const MinibatchInput& input,
                                      TypeId type) {
  std::vector<std::uint32_t> rows;
  const std::vector<TypeId>& types = minibatch.vertex_types;
  for (std::size_t i = 0; i < input.features.rows(); ++i) {
    const std::size_t vertex = input.vertices.empty() ? i : input.vertices[i];
    if (types.empty() || types[vertex] == type) rows.push_back(static_cast<std::uint32_t>(i));
  }
  return rows;
}

/// Returns the rows by the name of a vertex type, as CopyOf or ViewOf do. Types without an array
/// are left out.
nb::dict RowsByType(const std::shared_ptr<Loading>& loading, Minibatch& minibatch, bool zero_copy) {
  const std::vector<FeatureInput>& wanted = loading->loader->inputs();
  if (minibatch.inputs.empty()) {  // all types share an array
    minibatch.inputs.push_back({.array = wanted.front().array});
    minibatch.inputs.front().features = std::move(minibatch.features);
  }
  nb::dict result;
  for (MinibatchInput& input : minibatch.inputs) {
    std::vector<std::pair<TypeId, Picked>> parts;
    Unlocked([&] {
      for (std::size_t type = 0; type < wanted.size(); ++type) {
        const auto id = static_cast<TypeId>(type);
        if (wanted[type].array == input.array)
          parts.emplace_back(id, RowsOfType(minibatch, input, id));
      }
    });
    LentRows* lent = nullptr;
    nb::object table;
    if (zero_copy) {
      lent = new LentRows{loading, std::move(input.features)};
      table = TableOf(lent);
    }
    for (const auto& [type, picked] : parts) {
      result[wanted[type].vertex_type.c_str()] =
          zero_copy ? nb::object(nb::make_tuple(table, PlacesOf(lent->rows, picked)))
                    : CopyOf(input.features, picked);
    }
  }
  return result;
}

/// Python binding of the loader. Next (1) waits for a minibatch; (2) converts it to arrays without
/// the GIL; (3) copies the feature rows, or lends them as a view; (4) releases the rows to the
/// loader.
class PyLoader {
 public:
  PyLoader(const PyGraph& graph, const LoaderArguments& arguments)
      : edge_ids_(arguments.sampler.edge_ids),
        disjoint_(arguments.sampler.disjoint),
        temporal_(!arguments.sampler.times.empty() || !arguments.sampler.vertex_times.empty()),
        labels_(!arguments.labels.empty()),
        pairs_(!arguments.pairs.is_none()),
        negatives_(arguments.negatives),
        by_type_(!arguments.inputs.empty()),
        loading_(graph.handle(), OpenLoader(graph, arguments)) {}

  /// Returns the next minibatch as a tuple, or None at the end of an epoch.
  nb::object Next(bool zero_copy) const {
    const std::shared_ptr<Loading> loading = Here();
    std::optional<Minibatch> minibatch = Take(TakeNext(*loading));
    if (!minibatch) return nb::none();
    Parts parts = Unlocked([&] { return PartsOf(*loading, *minibatch, negatives_); });
    const auto number = std::pair(minibatch->epoch, minibatch->number);
    const std::size_t seeds = minibatch->seed_count, edges = minibatch->neighbors.size();
    const std::size_t pairs = minibatch->pairs.size();
    const std::uint64_t tag = minibatch->tag;
    const bool has_types = !minibatch->vertex_types.empty();
    nb::object rows = RowsOf(loading, *minibatch, zero_copy);
    Unlocked([&] { minibatch.reset(); });
    const auto optional = [](bool wanted, auto&& array) {
      return wanted ? std::move(array).ToNumpy() : nb::object(nb::none());
    };
    nb::object ends = nb::none(), negatives = nb::none();
    if (pairs_) ends = std::move(parts.pairs).ToNumpy({pairs, 2});
    if (negatives_ > 0)
      negatives =
          std::move(parts.negatives).ToNumpy({2, pairs, static_cast<std::size_t>(negatives_)});
    const bool typed = loading->graph->edge_types().size() > 1;
    return nb::make_tuple(std::move(parts.vertices).ToNumpy(),
                          std::move(parts.edge_index).ToNumpy({2, edges}), std::move(rows),
                          optional(labels_, std::move(parts.labels)), seeds,
                          std::move(parts.hops).ToNumpy(), std::move(parts.edge_hops).ToNumpy(),
                          optional(typed, std::move(parts.types)),
                          optional(loading->graph->info().weighted, std::move(parts.weights)),
                          optional(edge_ids_, std::move(parts.edge_ids)),
                          optional(disjoint_, std::move(parts.seed_of)),
                          optional(temporal_, std::move(parts.seed_times)),
                          optional(has_types, std::move(parts.vertex_types)), std::move(ends),
                          optional(pairs_, std::move(parts.pair_types)), std::move(negatives),
                          number.first, number.second, tag);
  }

  std::uint64_t seed_count() const { return Here()->loader->seed_count(); }
  std::uint64_t minibatches_of_epoch() const { return Here()->loader->minibatches_of_epoch(); }
  std::int64_t classes() const { return Here()->loader->classes(); }
  std::vector<std::pair<std::string, std::string>> inputs() const {
    std::vector<std::pair<std::string, std::string>> arrays;
    for (const FeatureInput& input : Here()->loader->inputs())
      arrays.emplace_back(input.vertex_type, input.array);
    return arrays;
  }

  nb::dict Report() const {
    const LoaderReport report = Here()->report;
    nb::dict result;
    result["epoch"] = report.epoch;
    result["minibatches"] = report.minibatches;
    result["seeds"] = report.seeds;
    result["wait_seconds"] = report.wait_seconds;
    MinibatchCosts::Each([&](const char* name, const auto& figure) { result[name] = figure; },
                         report.costs);
    nb::dict reads;
    for (const InputReads& input : report.inputs) {
      nb::dict counts;
      RowReads::Each([&](const char* name, const auto& figure) { counts[name] = figure; },
                     input.reads);
      reads[input.array.c_str()] = counts;
    }
    result["reads"] = reads;
    return result;
  }

  nb::dict Memory() const {
    const LoaderMemory& memory = Here()->loader->memory();
    nb::dict result;
    result["held"] = memory.held;
    result["working"] = memory.working;
    result["schedules"] = memory.schedules;
    result["cache"] = memory.cache;
    result["neighbor_cache"] = memory.neighbor_cache;
    result["total"] = memory.total_bytes();
    result["superbatch"] = memory.superbatch;
    nb::dict caches;
    for (const InputMemory& input : memory.inputs) caches[input.array.c_str()] = input.cache;
    result["caches"] = caches;
    return result;
  }

 private:
  std::shared_ptr<Loading> Here() const {
    std::shared_ptr<Loading> loading = loading_.Use();
    Check(loading->owner.Check("the loader"));
    return loading;
  }

  nb::object RowsOf(const std::shared_ptr<Loading>& loading, Minibatch& minibatch,
                    bool zero_copy) const {
    if (by_type_) return RowsByType(loading, minibatch, zero_copy);
    if (zero_copy) return ViewOf(loading, std::move(minibatch.features));
    return CopyOf(minibatch.features);
  }

  /// Waits for the next minibatch, which is taken on a separate thread so that signals are handled.
  /// If a signal handler raises, the minibatch is not lost: the next call returns it.
  static Result<std::optional<Minibatch>> TakeNext(Loading& loading) {
    if (loading.awaited)
      throw std::runtime_error("another thread waits for a minibatch of this loader");
    if (!loading.next.valid()) {
      loading.next = Begin([&loader = *loading.loader] {
        auto minibatch = loader.Next();
        return Loading::Next{std::move(minibatch), loader.report()};
      });
    }
    loading.awaited = true;
    try {
      Await(loading.next);
    } catch (...) {
      loading.awaited = false;
      throw;
    }
    loading.awaited = false;
    Loading::Next next = loading.next.get();
    loading.report = next.report;
    return std::move(next.minibatch);
  }

  const bool edge_ids_, disjoint_, temporal_, labels_, pairs_;
  const std::uint64_t negatives_;
  const bool by_type_;
  Handle::Lease<Loading> loading_;
};

}  // namespace

void BindLoader(nb::module_& module) {
  using A = LoaderArguments;
  nb::class_<A>(module, "LoaderArguments")
      .def(nb::init<>())
      .def_rw("sampler", &A::sampler)
      .def_rw("features", &A::features)
      .def_rw("inputs", &A::inputs)
      .def_rw("normalize", &A::normalize)
      .def_rw("labels", &A::labels)
      .def_rw("seeds", &A::seeds, nb::arg().none())
      .def_rw("seed_times", &A::seed_times, nb::arg().none())
      .def_rw("seed_time_array", &A::seed_time_array)
      .def_rw("pairs", &A::pairs, nb::arg().none())
      .def_rw("negatives", &A::negatives)
      .def_rw("negative_sources", &A::negative_sources)
      .def_rw("keep_seed_edges", &A::keep_seed_edges)
      .def_rw("split", &A::split)
      .def_rw("set", &A::set)
      .def_rw("batch_size", &A::batch_size)
      .def_rw("shuffle", &A::shuffle)
      .def_rw("drop_last", &A::drop_last)
      .def_rw("rank", &A::rank)
      .def_rw("ranks", &A::ranks)
      .def_rw("epochs", &A::epochs)
      .def_rw("first", &A::first)
      .def_rw("memory_bytes", &A::memory_bytes)
      .def_rw("policy", &A::policy)
      .def_rw("superbatch", &A::superbatch);
  nb::class_<PyLoader>(module, "Loader")
      .def(nb::init<const PyGraph&, const LoaderArguments&>(), nb::arg("graph"),
           nb::arg("arguments"))
      .def("next", &PyLoader::Next, nb::arg("zero_copy"),
           nb::sig("def next(self, zero_copy: bool) -> tuple[typing.Any, ...] | None"))
      .def_prop_ro("seed_count", &PyLoader::seed_count)
      .def_prop_ro("minibatches_of_epoch", &PyLoader::minibatches_of_epoch)
      .def_prop_ro("classes", &PyLoader::classes)
      .def_prop_ro("inputs", &PyLoader::inputs)
      .def("report", &PyLoader::Report, nb::sig("def report(self) -> dict[str, typing.Any]"))
      .def("memory", &PyLoader::Memory, nb::sig("def memory(self) -> dict[str, typing.Any]"));
  module.def("policies", [] {
    std::vector<std::string> names;
    for (const PolicyKind kind : AllPolicies()) names.emplace_back(PolicyName(kind));
    return names;
  });
}

}  // namespace rhizome::python
