#include "sampler.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "cache/lists/direct_neighbors.h"
#include "handle.h"
#include "job.h"
#include "numpy.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/neighbor_sampling.h"
#include "rhizome/sampler.h"

namespace rhizome::python {
namespace {

/// A sampler with its snapshot, and samples whose memory is reused by later calls.
/// Threads: any; each concurrent call uses a separate sample.
class Sampling {
 public:
  Sampling(std::shared_ptr<const GraphSnapshot> graph, std::unique_ptr<Sampler> sampler)
      : graph_(std::move(graph)),
        sampler_(std::move(sampler)),
        numbers_(*graph_),
        typed_(graph_->edge_types().size() > 1) {}

  const GraphSnapshot& graph() const { return *graph_; }
  const Sampler& sampler() const { return *sampler_; }
  const EdgeNumbering& numbers() const { return numbers_; }
  bool typed() const { return typed_; }

  // Calls never wait for the lock: a thread may have held it when the process was forked.
  SampledSubgraph Borrow() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || kept_.empty()) return {};
    SampledSubgraph sample = std::move(kept_.back());
    kept_.pop_back();
    return sample;
  }
  void GiveBack(SampledSubgraph sample) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && kept_.size() < kMaxKept) kept_.push_back(std::move(sample));
  }

 private:
  static constexpr std::size_t kMaxKept = 8;

  const std::shared_ptr<const GraphSnapshot> graph_;
  const std::unique_ptr<Sampler> sampler_;
  const EdgeNumbering numbers_;
  const bool typed_;
  std::mutex mutex_;
  std::vector<SampledSubgraph> kept_;
};

/// Returns the edges as [2, edges]: the sampled neighbours, then the vertices for which they were
/// sampled.
Numbers EdgeIndexOf(const SampledSubgraph& sub, Frontier frontier) {
  const std::size_t edges = sub.neighbors.size();
  Numbers index(2 * edges);
  const auto ends = std::copy(sub.neighbors.begin(), sub.neighbors.end(), index.span().begin());
  const auto at = [&](std::uint64_t offset) { return ends + static_cast<std::ptrdiff_t>(offset); };
  for (std::size_t hop = 0; hop + 1 < sub.hop_lists.size(); ++hop)
    for (std::uint64_t list = sub.hop_lists[hop]; list < sub.hop_lists[hop + 1]; ++list)
      std::fill(at(sub.offsets[list]), at(sub.offsets[list + 1]),
                static_cast<std::int64_t>(sub.VertexOfList(hop, list, frontier)));
  return index;
}

/// Returns the number of edges sampled in each hop.
Numbers EdgesOfHops(const SampledSubgraph& sub) {
  std::vector<std::uint64_t> bounds;
  for (const std::uint64_t list : sub.hop_lists) bounds.push_back(sub.offsets[list]);
  return Steps(bounds);
}

/// A subgraph as NumPy arrays.
struct Sample {
  Numbers vertices;
  Numbers edge_index;
  Numbers seeds;
  Numbers vertices_of_hop;
  Numbers edges_of_hop;
  NewArray<TypeId> types;
  NewArray<float> weights;
  Numbers edge_ids;
  Numbers seed_of;
  Numbers offsets;
  Numbers hop_lists;
};

Result<Sample> Convert(const Sampling& sampling, const SampledSubgraph& sub, Frontier frontier) {
  Numbers vertices(sub.rows.size());
  RHIZOME_RETURN_IF_ERROR(VerticesAt(sampling.graph(), sub.rows, vertices.span()));
  Numbers edge_ids(sub.edges.size());
  std::transform(sub.edges.begin(), sub.edges.end(), edge_ids.span().begin(),
                 [&](const EdgeId& edge) { return sampling.numbers().Of(edge); });
  return Sample{.vertices = std::move(vertices),
                .edge_index = EdgeIndexOf(sub, frontier),
                .seeds = Copy<std::int64_t>(sub.seed_locals),
                .vertices_of_hop = Steps(sub.hop_offsets),
                .edges_of_hop = EdgesOfHops(sub),
                .types = Copy<TypeId>(sub.types),
                .weights = Copy<float>(sub.weights),
                .edge_ids = std::move(edge_ids),
                .seed_of = Copy<std::int64_t>(sub.seed_of),
                .offsets = Copy<std::int64_t>(sub.offsets),
                .hop_lists = Copy<std::int64_t>(sub.hop_lists)};
}

/// Python binding of the sampler. Draw (1) samples into a reused subgraph without the GIL; (2)
/// converts it to arrays; (3) returns them as a tuple, with None for columns that the graph or the
/// options do not provide.
class PySampler {
 public:
  PySampler(const PyGraph& graph, const SamplerArguments& arguments)
      : frontier_(arguments.again ? Frontier::kAgain : Frontier::kOnce),
        edge_ids_(arguments.edge_ids),
        disjoint_(arguments.disjoint),
        edges_per_seed_(EdgesPerSeed(arguments)),
        sampling_(graph.handle(), Make(graph, arguments)) {}

  /// `times` is None, or int64 of one dimension.
  nb::tuple Draw(nb::handle seeds, std::uint64_t batch, nb::handle times) const {
    const auto sampling = sampling_.Use();
    const Ids vertices(seeds, sampling->graph().vertex_count());
    std::optional<Times> at;
    if (!times.is_none()) at = nb::cast<Times>(times, false);
    const auto seed_times =
        at ? std::span(at->data(), at->size()) : std::span<const std::int64_t>();
    const auto draw = [sampling, batch, frontier = frontier_](
                          std::span<const VertexId> seeds_of_call,
                          std::span<const std::int64_t> times_of_call) -> Result<Sample> {
      SampledSubgraph sub = sampling->Borrow();
      RHIZOME_RETURN_IF_ERROR(
          sampling->sampler().SampleInto(seeds_of_call, times_of_call, batch, sub));
      auto converted = Convert(*sampling, sub, frontier);
      sampling->GiveBack(std::move(sub));
      return converted;
    };
    const auto is_long = static_cast<double>(vertices.size()) * edges_per_seed_ > kManyEdges;
    Sample sample = Take(
        is_long
            ? Abandonable([draw, copy = std::vector(vertices.span().begin(), vertices.span().end()),
                           copied_times = std::vector(seed_times.begin(), seed_times.end())] {
                return draw(copy, copied_times);
              })
            : Unlocked([&] { return draw(vertices.span(), seed_times); }));
    const std::size_t edges = sample.edge_index.size() / 2;
    const auto optional = [](bool wanted, auto&& array) {
      return wanted ? std::move(array).ToNumpy() : nb::object(nb::none());
    };
    return nb::make_tuple(
        std::move(sample.vertices).ToNumpy(), std::move(sample.edge_index).ToNumpy({2, edges}),
        std::move(sample.seeds).ToNumpy(), std::move(sample.vertices_of_hop).ToNumpy(),
        std::move(sample.edges_of_hop).ToNumpy(),
        optional(sampling->typed(), std::move(sample.types)),
        optional(sampling->graph().info().weighted, std::move(sample.weights)),
        optional(edge_ids_, std::move(sample.edge_ids)),
        optional(disjoint_, std::move(sample.seed_of)), std::move(sample.offsets).ToNumpy(),
        std::move(sample.hop_lists).ToNumpy());
  }

 private:
  static std::shared_ptr<Sampling> Make(const PyGraph& graph, const SamplerArguments& arguments) {
    auto snapshot = graph.Snapshot();
    const bool on_disk = graph.handle()->Use()->memory().topology == TopologyPlace::kDirect;
    return Take(Unlocked([&]() -> Result<std::shared_ptr<Sampling>> {
      RHIZOME_ASSIGN_OR_RETURN(const SamplerOptions options,
                               SamplerOptionsOf(*snapshot, arguments));
      std::shared_ptr<const NeighborSource> lists;
      if (on_disk) {
        RHIZOME_ASSIGN_OR_RETURN(lists, DirectNeighbors::Open(*snapshot, options.direction, nullptr,
                                                              DirectNeighborsOptions{}));
      }
      RHIZOME_ASSIGN_OR_RETURN(auto sampler, Sampler::Create(*snapshot, options, std::move(lists)));
      return std::make_shared<Sampling>(std::move(snapshot), std::move(sampler));
    }));
  }

  /// Returns an estimate of the number of edges that are drawn for one seed. A hop with all
  /// neighbours counts as kAllEstimate.
  static double EdgesPerSeed(const SamplerArguments& arguments) {
    double edges = 0, frontier = 1;
    const auto add = [&](double fanout) { edges += frontier *= std::max(fanout, 1.0); };
    const auto estimate = [](std::int64_t fanout) {
      return fanout == kAllNeighbors ? kAllEstimate : static_cast<double>(fanout);
    };
    for (const std::int64_t fanout : arguments.fanouts) add(estimate(fanout));
    for (const auto& hop : arguments.typed_fanouts) {
      double of_types = 0;
      for (const std::int64_t fanout : hop) of_types += estimate(fanout);
      add(of_types);
    }
    return edges;
  }

  static constexpr double kAllEstimate = 100;
  static constexpr double kManyEdges = 1e6;  // about 0.1 s

  Frontier frontier_;
  bool edge_ids_;
  bool disjoint_;
  double edges_per_seed_;
  Handle::Lease<Sampling> sampling_;
};

}  // namespace

Result<SamplerOptions> SamplerOptionsOf(const GraphSnapshot& graph,
                                        const SamplerArguments& arguments) {
  SamplerOptions options{
      .fanouts = arguments.fanouts,
      .direction = DirectionOf(arguments.direction),
      .replace = arguments.replace,
      .seed = arguments.seed,
      .threads = arguments.threads,
      .typed_fanouts = arguments.typed_fanouts,
      .weighted = arguments.weighted,
      .disjoint = arguments.disjoint,
      .frontier = arguments.again ? Frontier::kAgain : Frontier::kOnce,
      .induced = arguments.induced,
      .temporal_pick = arguments.last ? TemporalPick::kLast : TemporalPick::kUniform,
      .edge_ids = arguments.edge_ids,
  };
  for (const std::string& type : arguments.meta_path) {
    RHIZOME_ASSIGN_OR_RETURN(const TypeId id, FindEdgeType(graph, type));
    options.meta_path.push_back(id);
  }
  if (!arguments.vertex_times.empty()) {
    if (!arguments.times.empty())
      return Fail(Status::InvalidArgument("give times of edges or of vertices, not of both"));
    RHIZOME_ASSIGN_OR_RETURN(options.times,
                             LoadVertexTimes(graph, arguments.vertex_times, options.direction));
  }
  if (!arguments.times.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(options.times, LoadEdgeTimes(graph, arguments.times));
  }
  return options;
}

void BindSampler(nb::module_& module) {
  using A = SamplerArguments;
  nb::class_<A>(module, "SamplerArguments")
      .def(nb::init<>())
      .def_rw("fanouts", &A::fanouts)
      .def_rw("typed_fanouts", &A::typed_fanouts)
      .def_rw("meta_path", &A::meta_path)
      .def_rw("direction", &A::direction)
      .def_rw("replace", &A::replace)
      .def_rw("weighted", &A::weighted)
      .def_rw("disjoint", &A::disjoint)
      .def_rw("again", &A::again)
      .def_rw("edge_ids", &A::edge_ids)
      .def_rw("last", &A::last)
      .def_rw("induced", &A::induced)
      .def_rw("times", &A::times)
      .def_rw("vertex_times", &A::vertex_times)
      .def_rw("seed", &A::seed)
      .def_rw("threads", &A::threads);
  nb::class_<PySampler>(module, "Sampler")
      .def(nb::init<const PyGraph&, const SamplerArguments&>(), nb::arg("graph"),
           nb::arg("arguments"))
      .def("sample", &PySampler::Draw, nb::arg("seeds").none(), nb::arg("batch"),
           nb::arg("times").none(),
           nb::sig("def sample(self, seeds: object, batch: int, times: numpy.ndarray | None) -> "
                   "tuple[typing.Any, ...]"));
}

}  // namespace rhizome::python
