// Draws neighbours over the lists of all partitions of a vertex together, which gives each
// partition its share by the multivariate hypergeometric law (multinomial with replacement); the
// keys of weighted draws are compared over all partitions. The delta is sampled as an additional
// partition (DeltaView), so that every edge of the merged graph has the probability that it will
// have after compaction. Random numbers are counter-based and keyed by seed, batch, hop, vertex id
// and, where relevant, edge type or seed index.

#include "rhizome/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "index/delta/graph_parts.h"
#include "index/sample/compressed_neighbors.h"
#include "index/sample/joined_neighbors.h"
#include "index/sample/sampler_impl.h"
#include "index/topology/vertex_order.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"

namespace rhizome {

namespace {

// Chunks in flight for each thread: enough that no thread waits for the numbering of the previous
// chunk.
constexpr std::size_t kChunksInFlight = 4;

// Maximum number of draws of one hop with replacement; without replacement the graph is the limit.
constexpr std::uint64_t kMaxDraws = std::uint64_t{1} << 32;

void Clear(SampledSubgraph& out) {
  out.rows.clear();
  out.hop_offsets.clear();
  out.seed_locals.clear();
  out.offsets.clear();
  out.neighbors.clear();
  out.types.clear();
  out.weights.clear();
  out.edges.clear();
  out.hop_lists.clear();
  out.seed_of.clear();
}

template <typename T>
void Append(const std::vector<T>& some, std::vector<T>& all) {
  all.insert(all.end(), some.begin(), some.end());
}

/// Returns the reader of the lists in memory, of one direction or of both.
Result<std::shared_ptr<const NeighborSource>> NeighborsOfSides(const GraphSnapshot& graph,
                                                               Direction direction) {
  const WalkedSides sides(graph, direction);
  RHIZOME_ASSIGN_OR_RETURN(auto first, ResidentNeighbors(graph, sides.direction(0)));
  if (sides.count() == 1) return first;
  RHIZOME_ASSIGN_OR_RETURN(auto second, ResidentNeighbors(graph, sides.direction(1)));
  return std::make_shared<JoinedNeighbors>(graph, std::move(first), std::move(second));
}

}  // namespace

// Samples a subgraph:
// 1. numbers the seeds;
// 2. runs one hop after another (RunHop) on the frontier of the previous hop. A hop draws entries
//    (Pick), looks up their neighbours (LookUp), drops those that are left out (Filter), adds
//    types, weights and edge ids (Annotate), and numbers the new vertices (Finish);
// 3. with `induced`, replaces the drawn edges by all edges between the vertices (Induce).
Status Sampler::Impl::Sample(const SampleRequest& request, SampledSubgraph& out) {
  Clear(out);
  if (sweeps()) {
    return SampleTogether({&request, 1}, [&out](std::size_t, SampledSubgraph& sampled) {
      out = std::move(sampled);
      return Status::Ok();
    });
  }
  RHIZOME_RETURN_IF_ERROR(CheckSeeds(request));
  std::unique_ptr<SampleScratch> scratch = scratches_.Take();
  Status status = NumberSeeds(request, *scratch, out);
  for (std::size_t h = 0; status.ok() && h < plan_.size(); ++h) {
    const auto begin = static_cast<std::ptrdiff_t>(FrontierOf(out, h));
    scratch->frontier.assign(out.rows.begin() + begin, out.rows.end());
    if (options_.disjoint) {
      scratch->subgraphs.assign(out.seed_of.begin() + begin, out.seed_of.end());
    }
    status = RunHop({.frontier = {.rows = scratch->frontier,
                                  .subgraphs = scratch->subgraphs,
                                  .subgraph_time = request.seed_times,
                                  .requests = plan_[h],
                                  .batch = request.batch,
                                  .hop = static_cast<std::uint32_t>(h)},
                     .scratch = *scratch,
                     .out = out});
  }
  if (status.ok() && options_.induced) status = Induce(*scratch, out);
  scratches_.GiveBack(std::move(scratch), out.rows);
  if (!status.ok()) {
    Clear(out);
    return status;
  }
  Complete(out);
  return Status::Ok();
}

/// Adds the empty lists of the vertices that were not expanded.
void Sampler::Impl::Complete(SampledSubgraph& out) const {
  if (options_.frontier == Frontier::kOnce) {
    out.offsets.resize(out.rows.size() + 1, out.neighbors.size());
  }
  RHIZOME_DCHECK(out.hop_offsets.size() == plan_.size() + 2 &&
                 out.hop_offsets.back() == out.rows.size());
  RHIZOME_DCHECK(std::is_sorted(out.hop_offsets.begin(), out.hop_offsets.end()));
  RHIZOME_DCHECK(!options_.disjoint || out.seed_of.size() == out.rows.size());
}

Status Sampler::Impl::CheckSeeds(const SampleRequest& request) const {
  const std::span<const VertexId> seeds = request.seeds;
  if (seeds.size() >= Numbering::kNone) {
    return Status::InvalidArgument(fmt::format(
        "{} seeds in one batch are too many: at most 2^32 - 2 are possible", seeds.size()));
  }
  if (request.seed_times.size() != (options_.times != nullptr ? seeds.size() : 0)) {
    return Status::InvalidArgument(
        fmt::format("{} seeds with {} times; a temporal sampler needs a time for each seed, and "
                    "any other needs none",
                    seeds.size(), request.seed_times.size()));
  }
  for (const VertexId seed : seeds) {
    if (static_cast<std::uint64_t>(seed) >= vertex_count_) {
      return Status::InvalidArgument(
          fmt::format("seed {}: vertex ids are in [0, {})", seed, vertex_count_));
    }
  }
  return Status::Ok();
}

/// Begins a subgraph: numbers its seeds, and sets the edges to leave out.
Status Sampler::Impl::NumberSeeds(const SampleRequest& request, SampleScratch& scratch,
                                  SampledSubgraph& out) const {
  const std::span<const VertexId> seeds = request.seeds;
  out.seed_locals.resize(seeds.size());
  std::vector<Row> rows(seeds.size());
  const GraphParts& parts = *graph_->parts();
  for (std::size_t i = 0; i < seeds.size(); ++i) rows[i] = parts.RowOf(seeds[i]);
  if (options_.disjoint) {
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      scratch.numbering.NumberIn(static_cast<std::uint32_t>(i), std::span(rows).subspan(i, 1),
                                 std::span(out.seed_locals).subspan(i, 1), out.rows, out.seed_of);
    }
  } else {
    scratch.numbering.Number(rows, out.seed_locals, out.rows);
  }
  out.hop_offsets = {0, out.rows.size()};
  out.hop_lists = {0};
  out.offsets = {0};
  return scratch.left_out.Set(parts, vertex_count_, request.left_out);
}

Status Sampler::Impl::CheckDraws(std::size_t hop, std::size_t vertices) const {
  if (!options_.replace) return Status::Ok();
  std::uint64_t of_one = 0;
  for (const ListRequest& request : plan_[hop]) {
    of_one += static_cast<std::uint64_t>(std::max<std::int64_t>(request.fanout, 0));
  }
  if (of_one == 0 || vertices <= kMaxDraws / of_one) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("hop {} would draw {} neighbours for each of {} vertices; at most 2^32 draws: "
                  "sample fewer seeds or neighbours",
                  hop, of_one, vertices));
}

Status Sampler::Impl::RunHop(const Hop& hop) {
  RHIZOME_RETURN_IF_ERROR(CheckDraws(hop.frontier.hop, hop.frontier.rows.size()));
  RHIZOME_RETURN_IF_ERROR(RunLists(hop));
  EndHop(hop.out);
  return Status::Ok();
}

void Sampler::Impl::EndHop(SampledSubgraph& out) const {
  out.hop_offsets.push_back(out.rows.size());
  out.hop_lists.push_back(out.offsets.size() - 1);
}

Status Sampler::Impl::RunLists(const Hop& hop) {
  if (hop.chunks() == 0) return Status::Ok();
  return source_->wants_whole_hops() ? RunWhole(hop) : RunChunks(hop);
}

// Replaces the drawn edges by all edges between the vertices of the sample. It processes some
// vertices at a time, because it reads whole lists and keeps only a small part of them.
Status Sampler::Impl::Induce(SampleScratch& scratch, SampledSubgraph& out) {
  constexpr std::size_t kVertices = 16 * kSampleGrain;
  out.neighbors.clear();
  out.types.clear();
  out.weights.clear();
  out.edges.clear();
  out.offsets = {0};
  for (std::size_t first = 0; first < out.rows.size(); first += kVertices) {
    const auto begin = out.rows.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t count = std::min(kVertices, out.rows.size() - first);
    scratch.frontier.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
    RHIZOME_RETURN_IF_ERROR(RunLists({.frontier = {.rows = scratch.frontier,
                                                   .subgraphs = {},
                                                   .subgraph_time = {},
                                                   .requests = {}},
                                      .scratch = scratch,
                                      .out = out,
                                      .induced = true}));
  }
  out.hop_lists.assign(std::max<std::size_t>(plan_.size(), 1) + 1, out.rows.size());
  out.hop_lists.front() = 0;
  return Status::Ok();
}

Status Sampler::Impl::RunChunks(const Hop& hop) {
  std::vector<SampleChunk>& chunks = hop.scratch.chunks;
  const std::size_t count = hop.chunks();
  if (options_.threads == 1 || count == 1) {
    if (chunks.empty()) chunks.resize(1);
    for (std::size_t c = 0; c < count; ++c) {
      RHIZOME_RETURN_IF_ERROR(RunChunk(hop, c, chunks[0]));
      RHIZOME_RETURN_IF_ERROR(Finish(hop, c, chunks[0]));
    }
    return Status::Ok();
  }
  const std::size_t in_flight = std::min<std::size_t>(count, options_.threads * kChunksInFlight);
  if (chunks.size() < in_flight) chunks.resize(in_flight);
  Status status;
  // Chunks finish in order, so chunks in flight never share memory.
  const auto draw = [&](std::size_t c) {
    SampleChunk& chunk = chunks[c % in_flight];
    chunk.status = RunChunk(hop, c, chunk);
  };
  const auto finish = [&](std::size_t c) {
    const SampleChunk& chunk = chunks[c % in_flight];
    status = chunk.status.ok() ? Finish(hop, c, chunk) : chunk.status;
    return status.ok();
  };
  arena_.execute([&] { ParallelInOrder(count, in_flight, draw, finish); });
  return status;
}

// Runs an induced hop for a source that sorts and coalesces look-ups: first all entries, then one
// look-up. Other hops of such a source are swept (sampler_sweep.cc).
Status Sampler::Impl::RunWhole(const Hop& hop) {
  SampleScratch& scratch = hop.scratch;
  const std::size_t count = hop.chunks();
  if (scratch.chunks.size() < count) scratch.chunks.resize(count);
  const auto for_each = [&](const auto& body) {
    if (options_.threads == 1) {
      for (std::size_t c = 0; c < count; ++c) body(c);
    } else {
      arena_.execute([&] { ParallelFor(count, body); });
    }
  };
  for_each([&](std::size_t c) { Pick(hop, c, scratch.chunks[c]); });
  scratch.hop_entries.clear();
  for (std::size_t c = 0; c < count; ++c) Append(scratch.chunks[c].entries, scratch.hop_entries);
  scratch.hop_rows.resize(scratch.hop_entries.size());
  RHIZOME_RETURN_IF_ERROR(LookUp(scratch.hop_entries, scratch.hop_rows, scratch.look_up));
  auto first = scratch.hop_rows.begin();
  for (std::size_t c = 0; c < count; ++c) {
    SampleChunk& chunk = scratch.chunks[c];
    const auto last = first + static_cast<std::ptrdiff_t>(chunk.entries.size());
    chunk.rows.assign(first, last);
    first = last;
    Filter(hop, c, chunk);
    Annotate(chunk);
    RHIZOME_RETURN_IF_ERROR(Finish(hop, c, chunk));
  }
  return Status::Ok();
}

Status Sampler::Impl::RunChunk(const Hop& hop, std::size_t c, SampleChunk& chunk) const {
  Pick(hop, c, chunk);
  chunk.rows.resize(chunk.entries.size());
  RHIZOME_RETURN_IF_ERROR(LookUp(chunk.entries, chunk.rows, chunk.look_up));
  if (Filters(hop)) Filter(hop, c, chunk);
  Annotate(chunk);
  return Status::Ok();
}

void Sampler::Impl::Pick(const Hop& hop, std::size_t c, SampleChunk& chunk) const {
  FrontierSlice slice = hop.frontier;
  const std::size_t count = std::min(kSampleGrain, slice.rows.size() - c * kSampleGrain);
  slice.rows = slice.rows.subspan(c * kSampleGrain, count);
  if (options_.disjoint) slice.subgraphs = slice.subgraphs.subspan(c * kSampleGrain, count);
  if (hop.induced) {
    chunk.picker.PickAll(*tables_, slice.rows, chunk.entries, chunk.counts);
  } else {
    chunk.picker.Pick(*tables_, slice, chunk.entries, chunk.counts);
  }
  RHIZOME_DCHECK(std::accumulate(chunk.counts.begin(), chunk.counts.end(), std::uint64_t{0}) ==
                 chunk.entries.size());
}

// Drops the entries that do not belong to the sample, before their neighbours are numbered.
void Sampler::Impl::Filter(const Hop& hop, std::size_t c, SampleChunk& chunk) const {
  if (hop.induced) KeepKnown(hop.scratch.numbering, chunk);
  if (hop.scratch.left_out.empty()) return;
  const std::span<const Row> vertices =
      hop.frontier.rows.subspan(c * kSampleGrain, chunk.counts.size());
  hop.scratch.left_out.Drop(vertices, chunk.counts, chunk.entries, chunk.rows);
}

// Keeps only the entries whose neighbours are in the sample.
void Sampler::Impl::KeepKnown(const Numbering& numbering, SampleChunk& chunk) const {
  std::size_t kept = 0;
  std::size_t entry = 0;
  for (std::uint64_t& count : chunk.counts) {
    const std::size_t before = kept;
    for (const std::size_t end = entry + count; entry < end; ++entry) {
      if (!numbering.Has(chunk.rows[entry])) continue;
      chunk.entries[kept] = chunk.entries[entry];
      chunk.rows[kept++] = chunk.rows[entry];
    }
    count = kept - before;
  }
  chunk.entries.resize(kept);
  chunk.rows.resize(kept);
}

// Entries of the delta are read from its view. The source looks up all other entries in one call,
// in which each entry of the delta is temporarily replaced by the entry before it, which is mostly
// an entry of the same list.
Status Sampler::Impl::LookUp(std::span<EntryRef> entries, std::span<Row> rows,
                             LookUpScratch& scratch) const {
  if (view_ == nullptr) return source_->LookUp(entries, rows);
  scratch.added.clear();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (OfDelta(entries[i])) scratch.added.push_back({i, entries[i]});
  }
  if (scratch.added.size() < entries.size()) {
    std::size_t first = 0;  // the first entry that is not of the delta
    while (OfDelta(entries[first])) ++first;
    for (const auto& [i, entry] : scratch.added) entries[i] = entries[i == 0 ? first : i - 1];
    const Status status = source_->LookUp(entries, rows);
    for (const auto& [i, entry] : scratch.added) entries[i] = entry;
    RHIZOME_RETURN_IF_ERROR(status);
  }
  for (const auto& [i, entry] : scratch.added) {
    const std::span<const Row> added = view_->rows(sides_.DirectionOf(entry.partition));
    RHIZOME_DCHECK(entry.position < added.size());
    rows[i] = added[entry.position];
  }
  return Status::Ok();
}

// Adds types, weights and edges of the drawn entries.
void Sampler::Impl::Annotate(SampleChunk& chunk) const {
  const std::vector<EntryRef>& entries = chunk.entries;
  if (typed_) {
    chunk.types.resize(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) chunk.types[i] = TypeOf(entries[i]);
  }
  if (weighted_) AnnotateWeights(chunk);
  if (options_.edge_ids) {
    chunk.edges.resize(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto [position, local, p] = entries[i];
      const Direction direction = sides_.DirectionOf(p);
      chunk.edges[i] = {sides_.Within(p),
                        OfDelta(entries[i]) ? view_->NumberOf(direction, position)
                                            : PartitionOf(entries[i]).EdgeAt(direction, position)};
    }
  }
}

TypeId Sampler::Impl::TypeOf(const EntryRef& entry) const {
  const Direction direction = sides_.DirectionOf(entry.partition);
  // With two sides, the first one is the out-lists.
  const TypeId added = sides_.SideOf(entry.partition) == 0 ? out_types_ : TypeId{0};
  if (OfDelta(entry)) return static_cast<TypeId>(view_->types(direction)[entry.position] + added);
  const Adjacency& partition = PartitionOf(entry);
  const std::uint64_t first = partition.Entries(entry.local, direction).first;
  return static_cast<TypeId>(partition.TypeOfEntry(entry.local, direction, entry.position - first) +
                             added);
}

float Sampler::Impl::WeightOf(const EntryRef& entry) const {
  const Direction direction = sides_.DirectionOf(entry.partition);
  if (OfDelta(entry)) return view_->weights(direction)[entry.position];
  return PartitionOf(entry).Weight(direction, entry.position);
}

void Sampler::Impl::AnnotateWeights(SampleChunk& chunk) const {
  const std::vector<EntryRef>& entries = chunk.entries;
  chunk.weights.resize(entries.size());
  if (tables_->weights) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      chunk.weights[i] = tables_->weights->At(entries[i].partition, entries[i].position);
    }
    return;
  }
  if (view_ != nullptr) {
    for (std::size_t i = 0; i < entries.size(); ++i) chunk.weights[i] = WeightOf(entries[i]);
    return;
  }
  // The edge ids are read in a separate loop, so that the cache misses of both loops overlap.
  chunk.edge_ids.resize(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    chunk.edge_ids[i] = PartitionOf(entries[i])
                            .EdgeAt(sides_.DirectionOf(entries[i].partition), entries[i].position);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    chunk.weights[i] = PartitionOf(entries[i]).Weight(Direction::kOut, chunk.edge_ids[i]);
  }
}

// Numbers the rows of chunk c and appends the chunk to the sample.
Status Sampler::Impl::Finish(const Hop& hop, std::size_t c, const SampleChunk& chunk) const {
  SampledSubgraph& out = hop.out;
  const std::size_t drawn = chunk.rows.size();
  const bool may_overflow = options_.disjoint || vertex_count_ >= Numbering::kNone;
  if (may_overflow && out.rows.size() + drawn >= Numbering::kNone) {
    return Status::InvalidArgument(
        fmt::format("a batch has {} vertices or more, but at most 2^32 - 2 are possible; use fewer "
                    "seeds or smaller fanouts",
                    out.rows.size()));
  }
  const std::size_t first_edge = out.neighbors.size();
  out.neighbors.resize(first_edge + drawn);
  const std::span<std::int64_t> locals = std::span(out.neighbors).subspan(first_edge);
  std::uint64_t end = first_edge;
  for (std::size_t i = 0; i < chunk.counts.size(); ++i) {
    if (options_.disjoint) {
      const std::size_t at = end - first_edge;
      hop.scratch.numbering.NumberIn(hop.frontier.subgraphs[c * kSampleGrain + i],
                                     std::span(chunk.rows).subspan(at, chunk.counts[i]),
                                     locals.subspan(at, chunk.counts[i]), out.rows, out.seed_of);
    }
    end += chunk.counts[i];
    out.offsets.push_back(end);
  }
  if (!options_.disjoint) hop.scratch.numbering.Number(chunk.rows, locals, out.rows);
  Append(chunk.types, out.types);
  Append(chunk.weights, out.weights);
  Append(chunk.edges, out.edges);
  // All columns of the edges are parallel to the neighbours.
  RHIZOME_DCHECK(end == out.neighbors.size() && out.offsets.back() == end);
  RHIZOME_DCHECK(!typed_ || out.types.size() == out.neighbors.size());
  RHIZOME_DCHECK(!weighted_ || out.weights.size() == out.neighbors.size());
  RHIZOME_DCHECK(!options_.edge_ids || out.edges.size() == out.neighbors.size());
  return Status::Ok();
}

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::Create(
    const Graph& graph, const SamplerOptions& options,
    std::shared_ptr<const NeighborSource> neighbors) try {
  std::shared_ptr<const GraphSnapshot> fixed = graph.Snapshot();
  RHIZOME_RETURN_IF_ERROR(fixed->parts()->CheckWhole("a sampler"));
  if (options.types_by_side && fixed->edge_types().size() > kMaxTypes / 2) {
    return Fail(Status::InvalidArgument(fmt::format(
        "the graph has {} edge types; both directions have separate types for up to {}; "
        "sample one direction",
        fixed->edge_types().size(), kMaxTypes / 2)));
  }
  RHIZOME_ASSIGN_OR_RETURN(SamplingPlan plan, PlanSampling(*fixed, options));
  RHIZOME_ASSIGN_OR_RETURN(auto view, fixed->delta_view());
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<const DrawTables> tables,
                           DrawTables::Create(*fixed, view, options));
  if (neighbors == nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(neighbors, NeighborsOfSides(*fixed, options.direction));
  }
  return std::unique_ptr<Sampler>(new Sampler(
      std::make_unique<Impl>(std::move(fixed), std::move(view), options, std::move(plan),
                             std::move(tables), std::move(neighbors))));
} catch (...) {
  return Fail(StatusOfException());
}

Result<SampledSubgraph> Sampler::Sample(std::span<const VertexId> seeds, std::uint64_t batch) const
    try {
  return Sample(seeds, {}, batch);
} catch (...) {
  return Fail(StatusOfException());
}

Result<SampledSubgraph> Sampler::Sample(std::span<const VertexId> seeds,
                                        std::span<const std::int64_t> seed_times,
                                        std::uint64_t batch) const try {
  SampledSubgraph out;
  RHIZOME_RETURN_IF_ERROR(
      impl_->Sample({.seeds = seeds, .seed_times = seed_times, .batch = batch}, out));
  return out;
} catch (...) {
  return Fail(StatusOfException());
}

Status Sampler::SampleInto(std::span<const VertexId> seeds,
                           std::span<const std::int64_t> seed_times, std::uint64_t batch,
                           SampledSubgraph& out) const try {
  return impl_->Sample({.seeds = seeds, .seed_times = seed_times, .batch = batch}, out);
} catch (...) {
  return StatusOfException();
}

Status Sampler::SampleInto(std::span<const VertexId> seeds,
                           std::span<const std::int64_t> seed_times, std::uint64_t batch,
                           std::span<const VertexPair> left_out, SampledSubgraph& out) const try {
  return impl_->Sample(
      {.seeds = seeds, .seed_times = seed_times, .batch = batch, .left_out = left_out}, out);
} catch (...) {
  return StatusOfException();
}

Status Sampler::SampleTogether(std::span<const SampleRequest> requests,
                               const SampleSink& sink) const try {
  return impl_->SampleTogether(requests, sink);
} catch (...) {
  return StatusOfException();
}

}  // namespace rhizome
