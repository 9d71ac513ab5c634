#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "input.h"
#include "rhizome/index/adjacency.h"
#include "rhizome/index/graph_builder.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/check.h"
#include "rhizome/storage/store.h"

namespace {

using namespace rhizome;

constexpr std::uint64_t kVertices = 14;
constexpr std::uint64_t kEdges = 70;
constexpr std::size_t kShapes = 12;

/// One entry of a neighbour list as the input has it.
struct Entry {
  VertexId vertex = 0;
  TypeId type = 0;
  float weight = 1;
  std::int64_t time = 0;
  auto key() const { return std::tie(vertex, type, weight, time); }
  friend bool operator<(const Entry& a, const Entry& b) { return a.key() < b.key(); }
};

/// A small graph in a store of its own, and the edges that it was made of.
struct Shape {
  bool typed = false;
  bool weighted = false;
  bool undirected = false;
  std::vector<Entry> lists[2][kVertices];  ///< of kIn and kOut
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
  std::shared_ptr<const EdgeTimes> times;
};

/// A folder that goes when the fuzzer exits.
const Path& Folder() {
  struct Kept {
    Path path;
    Kept() {
      std::string name = (std::filesystem::temp_directory_path() / "sampler_fuzz.XXXXXX").string();
      RHIZOME_CHECK(mkdtemp(name.data()) != nullptr);
      path = name;
    }
    ~Kept() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Kept kept;
  return kept.path;
}

GraphInput DrawEdges(std::size_t number, Shape& shape) {
  std::mt19937_64 random(number);
  GraphInput input;
  input.vertex_count = kVertices;
  input.vertex_type_names = {"v"};
  input.edge_type_names =
      shape.typed ? std::vector<std::string>{"a", "b", "c"} : std::vector<std::string>{"e"};
  input.undirected = shape.undirected;
  input.edges.attributes = {EdgeAttribute("time")};
  for (std::uint64_t e = 0; e < kEdges; ++e) {
    // Loops, parallel edges, hubs and vertices without an edge.
    const auto src = static_cast<VertexId>(random() % (random() % 3 == 0 ? 2 : kVertices - 2));
    const auto dst = static_cast<VertexId>(random() % (random() % 3 == 0 ? 2 : kVertices - 2));
    const Entry entry{.type = static_cast<TypeId>(shape.typed ? random() % 3 : 0),
                      .weight = shape.weighted ? static_cast<float>(random() % 4) : 1.0F,
                      .time = static_cast<std::int64_t>(random() % 8)};
    input.edges.src.push_back(src);
    input.edges.dst.push_back(dst);
    if (shape.typed) input.edges.type.push_back(entry.type);
    if (shape.weighted) input.edges.weight.push_back(entry.weight);
    input.edges.attributes[0].Add(entry.time);
    const auto add = [&](VertexId from, VertexId to) {
      shape.lists[0][to].push_back({from, entry.type, entry.weight, entry.time});
      shape.lists[1][from].push_back({to, entry.type, entry.weight, entry.time});
    };
    add(src, dst);
    if (shape.undirected && src != dst) add(dst, src);
  }
  return input;
}

std::unique_ptr<Shape> MakeShape(std::size_t number) {
  auto shape = std::make_unique<Shape>();
  shape->typed = number % 2 != 0;
  shape->weighted = number / 2 % 2 != 0;
  shape->undirected = number / 4 == 2;
  const Path path = Folder() / std::to_string(number);
  FileSystem& fs = FileSystem::Posix();
  {
    auto store = Store::Create(fs, path, StoreId{});
    RHIZOME_CHECK(store.has_value());
    BuildOptions options;
    options.partition.kind = PartitionerKind::kRandom;
    options.partition.partitions = number / 4 == 1 ? 1 : 3;
    options.topology_codec = number % 3 == 0 ? TopologyCodec::kEliasFano : TopologyCodec::kNone;
    const JobControl control;
    RHIZOME_CHECK(BuildGeneration(**store, DrawEdges(number, *shape), options, control).ok());
  }
  auto store = Store::Open(fs, path, Store::Mode::kRead);
  RHIZOME_CHECK(store.has_value());
  shape->store = *std::move(store);
  auto graph = Graph::Open(*shape->store);
  RHIZOME_CHECK(graph.has_value());
  shape->graph = *std::move(graph);
  auto times = LoadEdgeTimes(*shape->graph, "time");
  RHIZOME_CHECK(times.has_value());
  shape->times = *std::move(times);
  return shape;
}

const Shape& ShapeOf(std::size_t number) {
  // Never destroyed: RocksDB's own statics may go first.
  static auto* const shapes = new std::unique_ptr<Shape>[kShapes];
  if (shapes[number] == nullptr) shapes[number] = MakeShape(number);
  return *shapes[number];
}

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
    for (std::size_t t = 0; t < shape.graph->info().edge_types.size(); ++t)
      fanouts.push_back(TakeFanout(input));
  }
  if ((kinds & 7) == 6)
    for (std::size_t h = 0; h < hops; ++h)
      options.meta_path.push_back(static_cast<TypeId>(input.Byte() % 4));
  options.replace = (kinds & 8) != 0;
  options.frontier = (kinds & 64) != 0 ? Frontier::kAgain : Frontier::kOnce;
  if ((kinds & 128) != 0) options.times = shape.times;
  const std::uint8_t more = input.Byte();
  // What excludes each other is asked for now and then only.
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

/// A part of a vertex's list that is drawn from by itself.
struct Request {
  std::int64_t fanout = 0;
  std::int64_t type = -1;  ///< or all
};

std::vector<Request> RequestsOf(const SamplerOptions& options, std::size_t hop) {
  if (options.typed_fanouts.empty())
    return {{options.fanouts[hop],
             options.meta_path.empty() ? std::int64_t{-1} : std::int64_t{options.meta_path[hop]}}};
  std::vector<Request> requests;
  for (const std::int64_t fanout : options.typed_fanouts[hop])
    requests.push_back({fanout, static_cast<std::int64_t>(requests.size())});
  return requests;
}

/// Checks a sample against the lists of the input, which it reads one by one.
class Checker {
 public:
  Checker(const Shape& shape, const SamplerOptions& options, const SampledSubgraph& sample,
          std::span<const std::int64_t> seed_times)
      : shape_(shape), options_(options), sample_(sample), seed_times_(seed_times) {}

  void Run(std::span<const VertexId> seeds) {
    hops_ = std::max(options_.fanouts.size(), options_.typed_fanouts.size());
    RHIZOME_CHECK(sample_.hop_offsets.size() == hops_ + 2 && sample_.hop_lists.size() == hops_ + 1);
    RHIZOME_CHECK(sample_.hop_offsets.back() == sample_.rows.size());
    RHIZOME_CHECK(std::is_sorted(sample_.hop_offsets.begin(), sample_.hop_offsets.end()));
    RHIZOME_CHECK(std::is_sorted(sample_.offsets.begin(), sample_.offsets.end()));
    RHIZOME_CHECK(sample_.offsets.back() == sample_.neighbors.size());
    RHIZOME_CHECK(sample_.edges.size() == (options_.edge_ids ? sample_.neighbors.size() : 0));
    RHIZOME_CHECK(sample_.seed_of.size() == (options_.disjoint ? sample_.rows.size() : 0));
    CheckSeeds(seeds);
    found_.assign(sample_.rows.size(), false);
    for (std::size_t hop = 0; hop < hops_; ++hop) CheckHop(hop);
    // What is no seed was drawn by somebody.
    for (std::size_t v = sample_.hop_offsets[1]; v < found_.size(); ++v) RHIZOME_CHECK(found_[v]);
  }

 private:
  VertexId VertexOf(std::uint64_t local) const {
    return shape_.graph->VertexAt(sample_.rows[local]);
  }

  void CheckSeeds(std::span<const VertexId> seeds) const {
    RHIZOME_CHECK(sample_.seed_locals.size() == seeds.size());
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      const auto local = static_cast<std::uint64_t>(sample_.seed_locals[i]);
      RHIZOME_CHECK(local < sample_.hop_offsets[1] && VertexOf(local) == seeds[i]);
      RHIZOME_CHECK(!options_.disjoint || (local == i && sample_.seed_of[local] == i));
    }
    std::set<std::pair<std::uint32_t, Row>> seen;
    for (std::size_t v = 0; v < sample_.rows.size(); ++v) {
      const std::uint32_t whose = options_.disjoint ? sample_.seed_of[v] : 0;
      RHIZOME_CHECK(seen.emplace(whose, sample_.rows[v]).second);
    }
  }

  void CheckHop(std::size_t hop) {
    const bool again = options_.frontier == Frontier::kAgain;
    const std::uint64_t first = again ? 0 : sample_.hop_offsets[hop];
    const std::uint64_t end = sample_.hop_offsets[hop + 1];
    RHIZOME_CHECK(again ? sample_.hop_lists[hop + 1] - sample_.hop_lists[hop] == end
                        : sample_.offsets.size() == sample_.rows.size() + 1);
    for (std::uint64_t v = first; v < end; ++v)
      CheckList(hop, v, again ? sample_.hop_lists[hop] + v : v);
  }

  void CheckList(std::size_t hop, std::uint64_t local, std::uint64_t list) {
    std::map<TypeId, std::vector<Entry>> drawn;  // by type; one key where types do not matter
    const bool by_type = !options_.typed_fanouts.empty();
    std::set<std::pair<PartitionId, std::uint64_t>> edges;
    for (std::uint64_t e = sample_.offsets[list]; e < sample_.offsets[list + 1]; ++e) {
      const auto other = static_cast<std::uint64_t>(sample_.neighbors[e]);
      RHIZOME_CHECK(other < sample_.hop_offsets[hop + 2]);
      found_[other] = true;
      RHIZOME_CHECK(!options_.disjoint || sample_.seed_of[other] == sample_.seed_of[local]);
      Entry entry{.vertex = VertexOf(other),
                  .type = sample_.types.empty() ? TypeId{0} : sample_.types[e],
                  .weight = sample_.weights.empty() ? 1.0F : sample_.weights[e]};
      if (options_.edge_ids) {
        const EdgeId edge = sample_.edges[e];
        entry.time = shape_.times->OfPartition(edge.partition)[edge.position];
        RHIZOME_CHECK(edges.emplace(edge.partition, edge.position).second || options_.replace);
      }
      drawn[by_type ? entry.type : TypeId{0}].push_back(entry);
    }
    for (const Request& request : RequestsOf(options_, hop)) {
      const auto found = drawn.extract(by_type ? static_cast<TypeId>(request.type) : TypeId{0});
      CheckDraws(request, Eligible(local, request.type),
                 found ? std::move(found.mapped()) : std::vector<Entry>());
    }
    RHIZOME_CHECK(drawn.empty());
  }

  std::vector<Entry> Eligible(std::uint64_t local, std::int64_t type) const {
    std::vector<Entry> eligible;
    const auto& lists = shape_.lists[options_.direction == Direction::kOut ? 1 : 0];
    for (Entry entry : lists[VertexOf(local)]) {
      if (type >= 0 && entry.type != type) continue;
      if (options_.weighted && entry.weight == 0) continue;
      if (options_.times != nullptr && entry.time > seed_times_[sample_.seed_of[local]]) continue;
      eligible.push_back(entry);
    }
    return eligible;
  }

  void CheckDraws(const Request& request, std::vector<Entry> eligible, std::vector<Entry> drawn) {
    const bool all = request.fanout == kAllNeighbors;
    const bool replace = options_.replace && !all;
    const auto fanout = static_cast<std::uint64_t>(request.fanout);
    const std::uint64_t expected = all       ? eligible.size()
                                   : replace ? (eligible.empty() ? 0 : fanout)
                                             : std::min<std::uint64_t>(fanout, eligible.size());
    RHIZOME_CHECK(drawn.size() == expected);
    if (options_.temporal_pick == TemporalPick::kLast && options_.edge_ids)
      CheckLatest(eligible, drawn);
    if (!options_.edge_ids)
      for (Entry& entry : eligible) entry.time = 0;
    std::sort(eligible.begin(), eligible.end());
    std::sort(drawn.begin(), drawn.end());
    if (!replace) {
      RHIZOME_CHECK(std::includes(eligible.begin(), eligible.end(), drawn.begin(), drawn.end()));
      return;
    }
    for (const Entry& entry : drawn)
      RHIZOME_CHECK(std::binary_search(eligible.begin(), eligible.end(), entry));
  }

  static void CheckLatest(const std::vector<Entry>& eligible, const std::vector<Entry>& drawn) {
    const auto latest = [](const std::vector<Entry>& entries) {
      std::vector<std::int64_t> times;
      for (const Entry& entry : entries) times.push_back(entry.time);
      std::sort(times.rbegin(), times.rend());
      return times;
    };
    auto best = latest(eligible);
    best.resize(drawn.size());
    RHIZOME_CHECK(latest(drawn) == best);
  }

  const Shape& shape_;
  const SamplerOptions& options_;
  const SampledSubgraph& sample_;
  const std::span<const std::int64_t> seed_times_;
  std::size_t hops_ = 0;
  std::vector<bool> found_;
};

bool Same(const SampledSubgraph& a, const SampledSubgraph& b) {
  return std::tie(a.rows, a.hop_offsets, a.offsets, a.neighbors, a.edges, a.hop_lists) ==
         std::tie(b.rows, b.hop_offsets, b.offsets, b.neighbors, b.edges, b.hop_lists);
}

}  // namespace

// Any options over a small graph: refused as wrong, or a sample that holds what the options say,
// compared with the edges that the graph was made of; the same for any number of threads.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzzing::Input input({data, size});
  const Shape& shape = ShapeOf(input.Byte() % kShapes);
  SamplerOptions options = TakeOptions(input, shape);
  std::vector<VertexId> seeds(input.Byte() % 6);
  std::vector<std::int64_t> times(options.times == nullptr ? 0 : seeds.size());
  for (VertexId& seed : seeds) {
    const std::uint8_t byte = input.Byte();
    seed = byte == 255 ? -1 : byte % (kVertices + (byte > 240 ? 1 : 0));
  }
  for (std::int64_t& time : times) time = input.Byte() % 10 - 1;
  // A draw that large is refused for its size, or its memory is the tester's.
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
  return 0;
}
