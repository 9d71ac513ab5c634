// Samples several subgraphs together, for lists on disk. SampleTogether runs each hop for all
// subgraphs: SweepHop sorts the frontiers of all subgraphs by row, which is the order of the lists
// on disk, and draws window by window (DrawWindow), so that each part of the lists is read once for
// all subgraphs. The draws of a window are passed to their subgraphs (KeepDraws). At the end of the
// hop, each subgraph numbers its draws in the order of its own frontier (NumberDraws), as it would
// if it were sampled alone. Draws are keyed by subgraph and vertex, so the order of a sweep does
// not affect them.

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "index/sample/sampler_impl.h"
#include "storage/base/check.h"

namespace rhizome {

namespace {

// The maximum number of vertices of a window.
constexpr std::size_t kMaxWindow = std::size_t{1} << 14;

// The number of vertices whose lists are found at once.
constexpr std::size_t kFoundAtOnce = 1024;

template <typename T>
void AppendRange(const std::vector<T>& from, std::size_t begin, std::size_t count,
                 std::vector<T>& to) {
  if (from.empty()) return;
  const auto first = from.begin() + static_cast<std::ptrdiff_t>(begin);
  to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(count));
}

/// Appends a range of draws. `From` and `To` are SampleChunk and SweptDraws, or the reverse.
template <typename From, typename To>
void AppendDraws(const From& from, std::size_t begin, std::size_t count, To& to) {
  AppendRange(from.rows, begin, count, to.rows);
  AppendRange(from.types, begin, count, to.types);
  AppendRange(from.weights, begin, count, to.weights);
  AppendRange(from.edges, begin, count, to.edges);
}

}  // namespace

struct Sampler::Impl::Partial {
  const SampleRequest* request = nullptr;
  SampledSubgraph out;
  LeftOutEdges left_out;
  SweptDraws draws;
};

Status Sampler::Impl::SampleTogether(std::span<const SampleRequest> requests,
                                     const SampleSink& sink) {
  if (!sweeps()) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SampledSubgraph out;
      RHIZOME_RETURN_IF_ERROR(Sample(requests[i], out));
      RHIZOME_RETURN_IF_ERROR(sink(i, out));
    }
    return Status::Ok();
  }
  std::vector<Partial> partials(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Partial& partial = partials[i];
    partial.request = &requests[i];
    RHIZOME_RETURN_IF_ERROR(CheckSeeds(requests[i]));
    std::unique_ptr<SampleScratch> scratch = scratches_.Take();
    const Status status = NumberSeeds(requests[i], *scratch, partial.out);
    partial.left_out = std::exchange(scratch->left_out, {});
    scratches_.GiveBack(std::move(scratch), partial.out.rows);
    RHIZOME_RETURN_IF_ERROR(status);
  }
  for (std::size_t h = 0; h < plan_.size(); ++h) RHIZOME_RETURN_IF_ERROR(SweepHop(h, partials));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Partial partial = std::exchange(partials[i], {});
    Complete(partial.out);
    RHIZOME_RETURN_IF_ERROR(sink(i, partial.out));
  }
  return Status::Ok();
}

Status Sampler::Impl::SweepHop(std::size_t hop, std::span<Partial> partials) {
  if (partials.empty()) return Status::Ok();
  std::vector<SweptVertex> vertices;
  for (std::size_t s = 0; s < partials.size(); ++s) {
    const SampledSubgraph& out = partials[s].out;
    const std::size_t first = FrontierOf(out, hop);
    RHIZOME_RETURN_IF_ERROR(CheckDraws(hop, out.rows.size() - first));
    for (std::size_t i = first; i < out.rows.size(); ++i)
      vertices.push_back(
          {out.rows[i], static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(i - first)});
  }
  const auto before = [](const SweptVertex& a, const SweptVertex& b) { return a.row < b.row; };
  if (!vertices.empty())
    arena_.execute([&] { ParallelSort(vertices.begin(), vertices.end(), before); });
  const std::vector<std::size_t> ends = WindowEnds(hop, vertices);
  const std::size_t in_flight =
      std::min<std::size_t>({ends.size(), options_.threads, std::size_t{kSweepWindows}});
  std::vector<SweepWindow> windows(in_flight);
  Status status;
  const auto draw = [&](std::size_t w) {
    SweepWindow& window = windows[w % in_flight];
    const std::size_t first = w == 0 ? 0 : ends[w - 1];
    window.vertices = std::span<const SweptVertex>(vertices).subspan(first, ends[w] - first);
    window.draws.status = DrawWindow(hop, partials, window);
  };
  const auto finish = [&](std::size_t w) {
    const SweepWindow& window = windows[w % in_flight];
    status = window.draws.status;
    if (status.ok()) KeepDraws(window, partials);
    return status.ok();
  };
  if (!ends.empty()) arena_.execute([&] { ParallelInOrder(ends.size(), in_flight, draw, finish); });
  for (std::size_t s = 0; status.ok() && s < partials.size(); ++s)
    status = NumberDraws(hop, partials[s]);
  return status;
}

/// Sets lengths[i] to the number of entries of the list of vertices[i].
void Sampler::Impl::FindLengths(std::span<const SweptVertex> vertices,
                                std::vector<std::uint64_t>& lengths) const {
  std::vector<Row> rows;
  for (const SweptVertex& vertex : vertices) rows.push_back(vertex.row);
  std::vector<VertexList> lists(rows.size());
  lengths.assign(rows.size(), 0);
  for (const ListFinder& finder : tables_->lists) {
    finder.FindAll(rows, lists);
    for (std::size_t i = 0; i < rows.size(); ++i) lengths[i] += LengthOf(lists[i].pieces());
  }
}

/// Divides the vertices of a sweep into windows of about kSweepDraws draws. Returns their ends.
std::vector<std::size_t> Sampler::Impl::WindowEnds(std::size_t hop,
                                                   std::span<const SweptVertex> vertices) const {
  bool all = false;
  std::uint64_t of_one = 0;
  for (const ListRequest& request : plan_[hop]) {
    all = all || request.fanout == kAllNeighbors;
    of_one += static_cast<std::uint64_t>(std::max<std::int64_t>(request.fanout, 0));
  }
  std::vector<std::size_t> ends;
  std::vector<std::uint64_t> lengths;
  std::size_t begin = 0;
  std::uint64_t draws = 0;
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    if (all && i % kFoundAtOnce == 0)
      FindLengths(vertices.subspan(i, std::min(kFoundAtOnce, vertices.size() - i)), lengths);
    const std::uint64_t more = all ? lengths[i % kFoundAtOnce] : of_one;
    if (i > begin && (draws + more > kSweepDraws || i - begin == kMaxWindow)) {
      ends.push_back(i);
      begin = i;
      draws = 0;
    }
    draws += more;
  }
  if (begin < vertices.size()) ends.push_back(vertices.size());
  return ends;
}

/// Draws for the vertices of a window.
Status Sampler::Impl::DrawWindow(std::size_t hop, std::span<const Partial> partials,
                                 SweepWindow& window) const {
  window.rows.clear();
  window.batches.clear();
  window.seeds.clear();
  window.times.clear();
  for (const SweptVertex& vertex : window.vertices) {
    const Partial& partial = partials[vertex.subgraph];
    window.rows.push_back(vertex.row);
    window.batches.push_back(partial.request->batch);
    if (!options_.disjoint) continue;
    const std::size_t local = FrontierOf(partial.out, hop) + vertex.index;
    const std::uint32_t seed = partial.out.seed_of[local];
    window.seeds.push_back(seed);
    if (options_.times != nullptr) window.times.push_back(partial.request->seed_times[seed]);
  }
  SampleChunk& draws = window.draws;
  draws.picker.Pick(*tables_,
                    {.rows = window.rows,
                     .subgraphs = window.seeds,
                     .subgraph_time = {},
                     .requests = plan_[hop],
                     .hop = static_cast<std::uint32_t>(hop),
                     .batches = window.batches,
                     .times = window.times},
                    draws.entries, draws.counts);
  draws.rows.resize(draws.entries.size());
  RHIZOME_RETURN_IF_ERROR(LookUp(draws.entries, draws.rows, draws.look_up));
  Annotate(draws);
  return Status::Ok();
}

/// Passes the draws of a window to their subgraphs, without the edges that are left out.
void Sampler::Impl::KeepDraws(const SweepWindow& window, std::span<Partial> partials) const {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < window.vertices.size(); ++i) {
    const SweptVertex& vertex = window.vertices[i];
    const std::size_t count = window.draws.counts[i];
    Partial& partial = partials[vertex.subgraph];
    SweptDraws& kept = partial.draws;
    const std::size_t before = kept.rows.size();
    const std::span<const Row> partners = partial.left_out.PartnersOf(vertex.row);
    if (partners.empty()) {
      AppendDraws(window.draws, begin, count, kept);
    } else {
      for (std::size_t d = begin; d < begin + count; ++d)
        if (!std::binary_search(partners.begin(), partners.end(), window.draws.rows[d]))
          AppendDraws(window.draws, d, 1, kept);
    }
    kept.lists.push_back({vertex.index, static_cast<std::uint32_t>(kept.rows.size() - before)});
    begin += count;
  }
}

/// Numbers the draws of a hop in the order of the frontier, and appends them to the subgraph.
Status Sampler::Impl::NumberDraws(std::size_t hop, Partial& partial) {
  SampledSubgraph& out = partial.out;
  const SweptDraws draws = std::exchange(partial.draws, {});
  std::vector<std::size_t> begin(draws.lists.size()), count(draws.lists.size());
  std::size_t at = 0;
  for (const SweptDraws::List& list : draws.lists) {
    begin[list.vertex] = at;
    count[list.vertex] = list.count;
    at += list.count;
  }
  std::unique_ptr<SampleScratch> scratch = scratches_.Take();
  scratch->numbering.Restore(out.rows, out.seed_of);
  if (options_.disjoint) {
    const auto first = static_cast<std::ptrdiff_t>(FrontierOf(out, hop));
    scratch->subgraphs.assign(out.seed_of.begin() + first, out.seed_of.end());
  }
  const Hop numbered{.frontier = {.rows = {},
                                  .subgraphs = scratch->subgraphs,
                                  .subgraph_time = {},
                                  .requests = {}},
                     .scratch = *scratch,
                     .out = out};
  SampleChunk chunk;
  Status status;
  for (std::size_t c = 0; status.ok() && c * kSampleGrain < begin.size(); ++c) {
    chunk.counts.clear();
    chunk.rows.clear();
    chunk.types.clear();
    chunk.weights.clear();
    chunk.edges.clear();
    const std::size_t end = std::min((c + 1) * kSampleGrain, begin.size());
    for (std::size_t i = c * kSampleGrain; i < end; ++i) {
      chunk.counts.push_back(count[i]);
      AppendDraws(draws, begin[i], count[i], chunk);
    }
    status = Finish(numbered, c, chunk);
  }
  EndHop(out);
  scratches_.GiveBack(std::move(scratch), out.rows);
  return status;
}

}  // namespace rhizome
