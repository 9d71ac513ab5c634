#include "rhizome/index/sampler.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "handle.h"
#include "rhizome/cache/direct_neighbors.h"
#include "rhizome/index/bulk_ids.h"

namespace rhizome::python {
namespace {

/// A sampler with the snapshot that it works on, which turns rows into vertex ids.
struct Sampling {
  std::shared_ptr<const GraphSnapshot> graph;
  std::unique_ptr<Sampler> sampler;
};

/// A subgraph in the form that Python takes.
struct Sample {
  std::vector<VertexId> vertices;
  std::vector<std::int64_t>
      edges;  ///< [2, edges]: neighbours, then the vertices they were drawn for
  std::vector<std::int64_t> seeds;
  std::vector<std::int64_t> vertices_of_hop;
  std::vector<std::int64_t> edges_of_hop;
  std::vector<TypeId> types;
  std::vector<float> weights;
};

Result<Sample> Convert(const Sampling& sampling, SampledSubgraph sub, Frontier frontier) {
  Sample sample;
  sample.vertices.resize(sub.rows.size());
  RHIZOME_RETURN_IF_ERROR(VerticesAt(*sampling.graph, sub.rows, sample.vertices));
  const std::size_t hops = sub.hop_lists.size() - 1;
  sample.edges = std::move(sub.neighbors);
  const std::size_t count = sample.edges.size();
  sample.edges.resize(2 * count);
  for (std::size_t hop = 0; hop < hops; ++hop) {
    for (std::uint64_t list = sub.hop_lists[hop]; list < sub.hop_lists[hop + 1]; ++list)
      std::fill(sample.edges.begin() + static_cast<std::ptrdiff_t>(count + sub.offsets[list]),
                sample.edges.begin() + static_cast<std::ptrdiff_t>(count + sub.offsets[list + 1]),
                static_cast<std::int64_t>(sub.VertexOfList(hop, list, frontier)));
    sample.edges_of_hop.push_back(static_cast<std::int64_t>(sub.offsets[sub.hop_lists[hop + 1]] -
                                                            sub.offsets[sub.hop_lists[hop]]));
  }
  for (std::size_t hop = 0; hop <= hops; ++hop)
    sample.vertices_of_hop.push_back(
        static_cast<std::int64_t>(sub.hop_offsets[hop + 1] - sub.hop_offsets[hop]));
  sample.seeds = std::move(sub.seed_locals);
  sample.types = std::move(sub.types);
  sample.weights = std::move(sub.weights);
  return sample;
}

class PySampler {
 public:
  PySampler(const PyGraph& graph, std::vector<std::int64_t> fanouts, const std::string& direction,
            bool replace, bool weighted, bool disjoint, bool again, std::uint64_t seed,
            std::uint32_t threads)
      : PySampler(graph, SamplerOptions{
                             .fanouts = std::move(fanouts),
                             .direction = DirectionOf(direction),
                             .replace = replace,
                             .seed = seed,
                             .threads = threads,
                             .weighted = weighted,
                             .disjoint = disjoint,
                             .frontier = again ? Frontier::kAgain : Frontier::kOnce,
                         }) {}

  nb::tuple Draw(nb::handle seeds, std::uint64_t batch) const {
    const auto sampling = sampling_.Use();
    const Ids vertices(seeds, sampling->graph->vertex_count());
    Sample sample = Take(Unlocked([&]() -> Result<Sample> {
      RHIZOME_ASSIGN_OR_RETURN(SampledSubgraph sub,
                               sampling->sampler->Sample(vertices.span(), batch));
      return Convert(*sampling, std::move(sub), frontier_);
    }));
    const std::size_t edges = sample.edges.size() / 2;
    const bool typed = !sample.types.empty(), weighted = !sample.weights.empty();
    return nb::make_tuple(
        ToNumpy(std::move(sample.vertices)), ToNumpy(std::move(sample.edges), {2, edges}),
        ToNumpy(std::move(sample.seeds)), ToNumpy(std::move(sample.vertices_of_hop)),
        ToNumpy(std::move(sample.edges_of_hop)),
        typed ? ToNumpy(std::move(sample.types)) : nb::none(),
        weighted ? ToNumpy(std::move(sample.weights)) : nb::none());
  }

 private:
  PySampler(const PyGraph& graph, const SamplerOptions& options)
      : frontier_(options.frontier), sampling_(graph.handle(), Make(graph, options)) {}

  static std::shared_ptr<Sampling> Make(const PyGraph& graph, const SamplerOptions& options) {
    auto snapshot = graph.Snapshot();
    const bool on_disk = graph.handle()->Use()->memory().topology == TopologyPlace::kDirect;
    return Take(Unlocked([&]() -> Result<std::shared_ptr<Sampling>> {
      std::shared_ptr<const NeighborSource> lists;
      if (on_disk) {
        RHIZOME_ASSIGN_OR_RETURN(lists, DirectNeighbors::Open(*snapshot, options.direction, nullptr,
                                                              DirectNeighborsOptions{}));
      }
      RHIZOME_ASSIGN_OR_RETURN(auto sampler, Sampler::Create(*snapshot, options, std::move(lists)));
      return std::make_shared<Sampling>(Sampling{std::move(snapshot), std::move(sampler)});
    }));
  }

  Frontier frontier_;
  Handle::Lease<Sampling> sampling_;
};

}  // namespace

void BindSampler(nb::module_& module) {
  nb::class_<PySampler>(module, "Sampler")
      .def(nb::init<const PyGraph&, std::vector<std::int64_t>, const std::string&, bool, bool, bool,
                    bool, std::uint64_t, std::uint32_t>(),
           nb::arg("graph"), nb::arg("fanouts"), nb::arg("direction"), nb::arg("replace"),
           nb::arg("weighted"), nb::arg("disjoint"), nb::arg("again"), nb::arg("seed"),
           nb::arg("threads"))
      .def("sample", &PySampler::Draw, nb::arg("seeds"), nb::arg("batch"),
           nb::sig("def sample(self, seeds: object, batch: int) -> tuple[typing.Any, ...]"));
}

}  // namespace rhizome::python
