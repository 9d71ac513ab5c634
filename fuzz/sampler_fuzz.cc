#include <algorithm>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "input.h"
#include "rhizome/sampler.h"
#include "sampler_checker.h"
#include "sampler_shapes.h"
#include "seeds.h"

namespace {

using namespace rhizome;
using fuzzing::Checker;
using fuzzing::Shape;

std::int64_t TakeFanout(fuzzing::Input& input) {
  const std::uint8_t byte = input.Byte();
  if (byte >= 250) return byte == 250 ? kMaxFanout : byte == 251 ? kMaxFanout + 1 : -2;
  return byte >= 200 ? kAllNeighbors : byte % 12;
}

SamplerOptions TakeOptions(fuzzing::Input& input, const Shape& shape) {
  SamplerOptions options;
  const std::size_t hops = input.Byte() % 4;
  const std::uint8_t kinds = input.Byte();
  const bool by_type = (kinds & 7) == 7;
  for (std::size_t h = 0; h < hops; ++h) {
    if (!by_type) options.fanouts.push_back(TakeFanout(input));
    if (!by_type) continue;
    auto& fanouts = options.typed_fanouts.emplace_back();
    for (std::size_t t = 0; t < shape.graph->edge_types().size(); ++t)
      fanouts.push_back(TakeFanout(input));
  }
  if ((kinds & 7) == 6)
    for (std::size_t h = 0; h < hops; ++h)
      options.meta_path.push_back(static_cast<TypeId>(input.Byte() % 5));
  options.replace = (kinds & 8) != 0;
  options.frontier = (kinds & 64) != 0 ? Frontier::kAgain : Frontier::kOnce;
  if ((kinds & 128) != 0) options.times = shape.times;
  const std::uint8_t more = input.Byte();
  // Options that exclude each other are combined only in a few inputs.
  const bool careless = more >= 240;
  options.weighted = (kinds & 16) != 0 && (shape.weighted || careless);
  options.disjoint = (kinds & 32) != 0 || (options.times != nullptr && !careless);
  options.direction = (more & 1) != 0 ? Direction::kOut : Direction::kIn;
  options.edge_ids = (more & 2) != 0;
  const bool last = options.times != nullptr && !options.weighted && !options.replace;
  if ((more & 12) == 12 && (last || careless)) options.temporal_pick = TemporalPick::kLast;
  options.threads = careless ? 0 : 1 + (more >> 4 & 1);
  options.seed = input.Byte();
  return options;
}

bool Same(const SampledSubgraph& a, const SampledSubgraph& b) {
  return std::tie(a.rows, a.hop_offsets, a.offsets, a.neighbors, a.edges, a.hop_lists) ==
         std::tie(b.rows, b.hop_offsets, b.offsets, b.neighbors, b.edges, b.hop_lists);
}

/// Returns the rows of the neighbours that were drawn for a seed, without its edges of a pair.
std::vector<Row> DrawnForSeed(const SampledSubgraph& sample, std::size_t v, Row a, Row b) {
  const Row row = sample.rows[v];
  std::vector<Row> drawn;
  for (std::uint64_t e = sample.offsets[v]; e < sample.offsets[v + 1]; ++e) {
    const Row neighbor = sample.rows[static_cast<std::size_t>(sample.neighbors[e])];
    const bool of_pair = (row == a && neighbor == b) || (row == b && neighbor == a);
    if (!of_pair) drawn.push_back(neighbor);
  }
  return drawn;
}

/// Samples without the edges between two vertices: the draws for the seeds must be the same without
/// these edges, and have none of them.
void CheckLeftOut(const Sampler& sampler, const Shape& shape, const SampledSubgraph& whole,
                  std::span<const VertexId> seeds, std::span<const std::int64_t> times,
                  std::uint64_t batch, const VertexPair& pair) {
  SampledSubgraph without;
  RHIZOME_CHECK(
      sampler.SampleInto(seeds, times, batch, std::span<const VertexPair>(&pair, 1), without).ok());
  const Row a = *shape.graph->RowOf(pair.src), b = *shape.graph->RowOf(pair.dst), none = -1;
  if (whole.offsets.size() <= whole.hop_offsets[1]) return;  // no hops
  for (std::size_t v = 0; v < whole.hop_offsets[1]; ++v) {
    const std::vector<Row> kept = DrawnForSeed(without, v, none, none);
    RHIZOME_CHECK(kept == DrawnForSeed(whole, v, a, b));
    RHIZOME_CHECK(kept == DrawnForSeed(without, v, a, b));
  }
}

}  // namespace

// Samples with arbitrary options from a small graph, with or without a delta. The options must be
// rejected, or the sample must agree with the options and with the edges of the graph, and must not
// depend on the number of threads.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzzing::Input input({data, size});
  const Shape& shape = fuzzing::ShapeOf(input.Byte() % fuzzing::kShapes);
  SamplerOptions options = TakeOptions(input, shape);
  std::vector<VertexId> seeds(input.Byte() % 6);
  std::vector<std::int64_t> times(options.times == nullptr ? 0 : seeds.size());
  for (VertexId& seed : seeds) {
    const std::uint8_t byte = input.Byte();
    seed =
        byte == 255 ? -1 : static_cast<VertexId>(byte % (shape.vertices() + (byte > 240 ? 1 : 0)));
  }
  for (std::int64_t& time : times) time = input.Byte() % 10 - 1;
  // Such a fanout is rejected, or needs more memory than the fuzzer has.
  for (const std::int64_t fanout : options.fanouts)
    if (options.replace && fanout == kMaxFanout) return 0;
  for (const auto& hop : options.typed_fanouts)
    for (const std::int64_t fanout : hop)
      if (options.replace && fanout == kMaxFanout) return 0;
  const auto sampler = Sampler::Create(*shape.graph, options);
  if (!sampler) {
    RHIZOME_CHECK(sampler.error().code() == StatusCode::kInvalidArgument);
    return 0;
  }
  const auto sample = (*sampler)->Sample(seeds, times, size);
  if (!sample) {
    RHIZOME_CHECK(sample.error().code() == StatusCode::kInvalidArgument);
    return 0;
  }
  Checker(shape, options, *sample, times).Run(seeds);
  options.threads = options.threads % 3 + 1;
  const auto other = Sampler::Create(*shape.graph, options);
  RHIZOME_CHECK(other.has_value());
  const auto again = (*other)->Sample(seeds, times, size);
  RHIZOME_CHECK(again.has_value() && Same(*sample, *again));
  const auto vertex = [&] { return static_cast<VertexId>(input.Byte() % shape.vertices()); };
  const VertexId src = seeds.empty() ? vertex() : seeds[input.Byte() % seeds.size()];
  CheckLeftOut(**sampler, shape, *sample, seeds, times, size, {.src = src, .dst = vertex()});
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < 200; ++i) {
    Seed seed(24);
    for (std::uint8_t& byte : seed) byte = static_cast<std::uint8_t>(random());
    seeds.push_back(std::move(seed));
  }
  return seeds;
}
