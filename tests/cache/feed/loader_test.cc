#include "rhizome/loader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "cache/job/process_memory.h"
#include "index/generation/graph_builder.h"
#include "index/sample/edge_times_in_memory.h"
#include "rhizome/ingest.h"
#include "rhizome/policy.h"
#include "rhizome/sampler.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/row_reader.h"
#include "testing/planted_graph.h"
#include "testing/sanitizer.h"
#include "testing/test_store.h"

// Tests of Loader: minibatches equal a Sampler's, with rows read from the array, for any policy,
// memory bound and number of threads; epochs cover the split; memory bounds hold; jobs resume,
// cancel and share names; bad options are refused.

namespace rhizome {
namespace {

using testing::TempDir;

constexpr std::uint64_t kVertices = 3000;
constexpr std::uint64_t kDim = 256;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint32_t kThreadsOfStages =
    4;  // with this many threads, a separate thread makes schedules

/// All that two runs must have in common; features as float32.
struct Delivered {
  std::uint64_t epoch, number, tag, seed_count;
  std::vector<Row> rows;
  std::vector<VertexId> vertices;
  std::vector<std::uint64_t> hop_offsets;
  std::vector<std::uint32_t> offsets, neighbors;
  std::vector<TypeId> types;
  std::vector<float> weights;
  std::vector<std::int32_t> labels;
  std::vector<float> features;
  friend bool operator==(const Delivered&, const Delivered&) = default;
};

Delivered Keep(const Minibatch& m) {
  Delivered kept{m.epoch,   m.number,    m.tag,   m.seed_count, m.rows,   m.vertices, m.hop_offsets,
                 m.offsets, m.neighbors, m.types, m.weights,    m.labels, {}};
  kept.features.resize(m.features.rows() * m.features.dim());
  EXPECT_OK(m.features.CopyTo(kept.features));
  return kept;
}

std::vector<VertexId> SeedsOf(const Minibatch& m) {
  return {m.vertices.begin(), m.vertices.begin() + static_cast<std::ptrdiff_t>(m.seed_count)};
}

/// A graph of two edge types with weights. Three quarters of its vertices are in a split. Feature
/// rows have 1 KiB, so that small memory bounds do not hold all of them.
class LoaderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    planted_ =
        new testing::PlantedGraph(testing::MakePlanted({.vertices = kVertices, .dim = kDim}));
    std::mt19937 random(5);
    for (std::size_t e = 0; e < planted_->edges.src.size(); ++e) {
      planted_->edges.type.push_back(static_cast<TypeId>(random() % 2));
      planted_->edges.weight.push_back(static_cast<float>(1 + random() % 7));
    }
    for (std::size_t v = 0; v < kVertices; ++v)
      planted_->split[v] = v % 4 == 3 ? 255 : static_cast<std::uint8_t>(v % 4);
    std::vector<std::int64_t> some_labels = planted_->labels;
    some_labels[11] = -1;  // in no set
    GraphInput input;
    input.vertex_count = kVertices;
    input.edges = planted_->edges;
    input.weighted = true;
    input.undirected = true;
    input.vertex_type_names = {"vertex"};
    input.edge_type_names = {"near", "far"};
    input.arrays.push_back(
        testing::MakeArray("feat", kDim, DataType::kFloat32, planted_->features));
    std::vector<std::uint16_t> halves;
    for (const float value : planted_->features) halves.push_back(FloatToHalf(value));
    input.arrays.push_back(testing::MakeArray("half", kDim, DataType::kFloat16, halves));
    input.arrays.push_back(testing::MakeArray("label", 1, DataType::kInt64, some_labels));
    input.arrays.push_back(testing::MakeArray("split", 1, DataType::kUint8, planted_->split));
    BuildOptions build;
    build.partition.partitions = 3;
    ASSERT_OK(testing::BuildStore(StorePath(), std::move(input), build));
  }
  static void TearDownTestSuite() {
    delete planted_;
    delete folder_;
  }

  void SetUp() override {
    auto open = testing::OpenStoreGraph(StorePath());
    ASSERT_OK(open);
    open_ = *std::move(open);
    options_.sampler.fanouts = {4, 3};
    options_.features = "feat";
    options_.split = "split";
    options_.labels = "label";
    options_.batch_size = 40;
    options_.feed.superbatch = 4;
    options_.memory_bytes = 5 * kMiB;
  }

  static Path StorePath() { return *folder_ / "g.rz"; }
  const GraphSnapshot& graph() const { return *open_.graph; }

  /// Returns every minibatch of all epochs.
  std::vector<Delivered> RunAll(const Graph& graph, const LoaderOptions& options,
                                LoaderReport* report = nullptr) {
    std::vector<Delivered> all;
    const JobControl control;
    auto loader = Loader::Open(graph, options, control);
    EXPECT_OK(loader);
    for (std::uint32_t epoch = 0; loader && epoch < options.epochs; ++epoch) {
      while (true) {
        auto minibatch = (*loader)->Next();
        EXPECT_OK(minibatch);
        if (!minibatch || !*minibatch) break;
        all.push_back(Keep(**minibatch));
      }
      if (report != nullptr) *report = (*loader)->report();
    }
    return all;
  }
  std::vector<Delivered> RunAll(const LoaderOptions& options, LoaderReport* report = nullptr) {
    return RunAll(graph(), options, report);
  }

  Status OpenStatus(const LoaderOptions& options) {
    const JobControl control;
    return testing::AsStatus(Loader::Open(graph(), options, control));
  }

  static TempDir* folder_;
  static testing::PlantedGraph* planted_;
  testing::OpenGraph open_;
  LoaderOptions options_;
};
TempDir* LoaderTest::folder_ = nullptr;
testing::PlantedGraph* LoaderTest::planted_ = nullptr;

/// Returns random options that cover every kind of sampling.
SamplerOptions DrawSampler(std::mt19937_64& random) {
  SamplerOptions sampler;
  sampler.seed = random();
  sampler.threads = 1 + static_cast<std::uint32_t>(random() % 5);
  constexpr Direction kDirections[] = {Direction::kIn, Direction::kOut, Direction::kBoth};
  sampler.direction = kDirections[random() % 3];
  sampler.replace = random() % 3 == 0;
  sampler.weighted = random() % 3 == 0;
  sampler.edge_ids = random() % 2 == 0;
  sampler.disjoint = random() % 3 == 0;
  if (!sampler.disjoint && random() % 3 == 0) sampler.frontier = Frontier::kAgain;
  const std::size_t hops = 1 + random() % 3;
  for (std::size_t h = 0; h < hops; ++h) {
    if (random() % 3 == 0) {
      sampler.typed_fanouts.push_back({1, 2});
    } else {
      sampler.fanouts.push_back(1 + static_cast<std::int64_t>(random() % 4));
    }
  }
  if (!sampler.fanouts.empty()) sampler.typed_fanouts.clear();
  return sampler;
}

/// Expects the rows of `m` to be those that a RowReader reads, without cache or graph.
void ExpectRowsOfTheArray(const Store& store, const std::string& name, const Minibatch& m) {
  const auto array = store.OpenArray(name);
  const auto sidecar = store.OpenArray(SidecarName(name));
  ASSERT_OK(array);
  ASSERT_OK(sidecar);
  const auto reader = RowReader::Open(**array, **sidecar, {});
  ASSERT_OK(reader);
  const std::size_t row_bytes = (*reader)->row_bytes();
  ASSERT_EQ(m.features.row_bytes(), row_bytes);
  std::vector<std::byte> read(m.rows.size() * row_bytes);
  std::vector<RowTarget> targets;
  for (std::size_t i = 0; i < m.rows.size(); ++i)
    targets.push_back({m.rows[i], read.data() + i * row_bytes});
  ASSERT_OK((*reader)->Read(targets));
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    const auto row = m.features.row(i);
    ASSERT_TRUE(std::equal(row.begin(), row.end(),
                           read.begin() + static_cast<std::ptrdiff_t>(i * row_bytes)))
        << "vertex " << i;
  }
}

void ExpectEqualSample(const Minibatch& m, const SampledSubgraph& sample,
                       const SamplerOptions& sampler) {
  EXPECT_EQ(m.rows, sample.rows);
  EXPECT_EQ(m.hop_offsets, sample.hop_offsets);
  EXPECT_TRUE(
      std::equal(m.offsets.begin(), m.offsets.end(), sample.offsets.begin(), sample.offsets.end()));
  EXPECT_TRUE(std::equal(m.neighbors.begin(), m.neighbors.end(), sample.neighbors.begin(),
                         sample.neighbors.end()));
  EXPECT_EQ(m.types, sample.types);
  EXPECT_EQ(m.weights, sample.weights);
  EXPECT_EQ(m.edges, sample.edges);
  EXPECT_EQ(m.seed_of, sample.seed_of);
  EXPECT_EQ(m.edges.size(), sampler.edge_ids ? m.neighbors.size() : 0);
  EXPECT_EQ(m.types.size(), m.neighbors.size());
  EXPECT_EQ(m.weights.size(), m.neighbors.size());
  if (sampler.frontier == Frontier::kAgain) {
    EXPECT_EQ(m.hop_lists, sample.hop_lists);
  }
}

TEST_F(LoaderTest, EveryMinibatchIsWhatASamplerDrawsWithTheRowsOfTheArray) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 12; ++round) {
    LoaderOptions options = options_;
    options.sampler = DrawSampler(random);
    options.features = random() % 2 == 0 ? "feat" : "half";
    options.degrees = random() % 2 == 0;
    options.batch_size = 150 + random() % 300;
    options.memory_bytes = 256 * kMiB;  // some samples are large
    const JobControl control;
    const auto loader = Loader::Open(graph(), options, control);
    ASSERT_OK(loader);
    const auto sampler = Sampler::Create(graph(), options.sampler);
    ASSERT_OK(sampler);
    for (std::uint64_t number = 0; number < (*loader)->minibatches_of_epoch(); ++number) {
      const auto minibatch = (*loader)->Next();
      ASSERT_OK(minibatch);
      ASSERT_TRUE(minibatch->has_value());
      const Minibatch& m = **minibatch;
      EXPECT_EQ(m.number, number);
      const std::vector<VertexId> seeds = SeedsOf(m);
      const auto sample = (*sampler)->Sample(seeds, m.tag);
      ASSERT_OK(sample);
      ExpectEqualSample(m, *sample, options.sampler);
      ExpectRowsOfTheArray(*open_.store, options.features, m);
      ASSERT_EQ(m.labels.size(), m.seed_count);
      for (std::size_t i = 0; i < m.rows.size(); ++i) {
        ASSERT_EQ(m.vertices[i], *graph().VertexAt(m.rows[i]));
        if (i < m.seed_count) {
          ASSERT_EQ(m.labels[i], planted_->labels[static_cast<std::size_t>(m.vertices[i])]);
        }
        if (options.degrees) {
          ASSERT_EQ(m.degrees[i], *graph().Degree(m.vertices[i], options.sampler.direction));
        }
      }
    }
    const auto end = (*loader)->Next();
    ASSERT_OK(end);
    EXPECT_FALSE(end->has_value());
  }
}

TEST_F(LoaderTest, AnEpochGoesOverTheSplitExactlyOnce) {
  std::vector<VertexId> split;
  for (std::size_t v = 0; v < kVertices; ++v)
    if (planted_->split[v] == 1) split.push_back(static_cast<VertexId>(v));
  options_.set = Split::kValid;
  options_.epochs = 3;
  const JobControl control;
  const auto loader = Loader::Open(graph(), options_, control);
  ASSERT_OK(loader);
  EXPECT_EQ((*loader)->seed_count(), split.size());
  EXPECT_EQ((*loader)->minibatches_of_epoch(), (split.size() + 39) / 40);
  EXPECT_EQ((*loader)->classes(), 4);
  std::vector<std::vector<VertexId>> orders(3);
  std::set<std::uint64_t> tags;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    while (true) {
      const auto minibatch = (*loader)->Next();
      ASSERT_OK(minibatch);
      if (!*minibatch) break;
      EXPECT_EQ((*minibatch)->epoch, epoch);
      EXPECT_TRUE(tags.insert((*minibatch)->tag).second);
      const std::vector<VertexId> seeds = SeedsOf(**minibatch);
      orders[epoch].insert(orders[epoch].end(), seeds.begin(), seeds.end());
    }
    EXPECT_EQ((*loader)->report().epoch, epoch);
    EXPECT_EQ((*loader)->report().seeds, split.size());
    EXPECT_EQ((*loader)->position(), (epoch + 1) * (*loader)->minibatches_of_epoch());
  }
  for (int i = 0; i < 2; ++i) EXPECT_FALSE((*loader)->Next()->has_value());
  EXPECT_NE(orders[0], orders[1]);
  for (std::vector<VertexId>& order : orders) {
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, split);
  }
}

TEST_F(LoaderTest, SeedsComeAsGivenAndTheLastMinibatchMayBeDropped) {
  options_.split = {};
  options_.seeds = {70, 3, 900, 12, 5, 2999, 0};
  options_.batch_size = 3;
  options_.shuffle = false;
  options_.epochs = 2;
  std::vector<VertexId> seeds;
  std::vector<Delivered> all = RunAll(options_);
  ASSERT_EQ(all.size(), 6u);
  for (std::size_t i = 0; i < 3; ++i) {
    const Delivered& m = all[i];
    seeds.insert(seeds.end(), m.vertices.begin(),
                 m.vertices.begin() + static_cast<std::ptrdiff_t>(m.seed_count));
    EXPECT_EQ(all[i + 3].seed_count, m.seed_count);
    EXPECT_NE(all[i + 3].tag, m.tag) << "the second epoch draws neighbours of its own";
  }
  EXPECT_EQ(seeds, options_.seeds);
  options_.drop_last = true;
  all = RunAll(options_);
  ASSERT_EQ(all.size(), 4u);
  for (const Delivered& m : all) EXPECT_EQ(m.seed_count, 3u);
}

TEST_F(LoaderTest, WhatIsDeliveredDependsOnNothingElse) {
  std::mt19937_64 random(testing::TestSeed());
  options_.epochs = 2;
  options_.sampler.seed = random();
  const std::vector<Delivered> expected = RunAll(options_);
  ASSERT_EQ(expected.size(), 2 * ((kVertices / 4 + 39) / 40));
  const auto expect_same = [&](const LoaderOptions& options, const std::string& what) {
    EXPECT_TRUE(RunAll(options) == expected) << what;
  };
  for (const PolicyKind policy : AllPolicies()) {
    LoaderOptions options = options_;
    options.feed.cache = policy;
    options.memory_bytes = 12 * kMiB;
    expect_same(options, std::string(PolicyName(policy)));
    options.sampler.threads = kThreadsOfStages;
    options.feed.superbatch = 1 + static_cast<std::uint32_t>(random() % 4);
    expect_same(options, std::string(PolicyName(policy)) + ", scheduled apart");
  }
  for (const std::uint64_t memory : {4 * kMiB, 64 * kMiB, std::uint64_t{0}}) {
    LoaderOptions options = options_;
    options.memory_bytes = memory;
    options.feed.superbatch = static_cast<std::uint32_t>(random() % 10);
    expect_same(options, "memory " + std::to_string(memory));
  }
  LoaderOptions threads = options_;
  threads.sampler.threads = 3;
  expect_same(threads, "threads");
  LoaderOptions others = options_;
  others.sampler.seed += 1;
  EXPECT_FALSE(RunAll(others) == expected) << "another seed";

  const auto on_disk =
      Graph::Open(std::as_const(*open_.store), {.topology = TopologyPlace::kDirect});
  ASSERT_OK(on_disk);
  LoaderOptions direct = options_;
  direct.memory_bytes = 64 * kMiB;
  EXPECT_TRUE(RunAll(**on_disk, direct) == expected) << "lists on disk";
}

TEST_F(LoaderTest, AStoppedJobGoesOnWhereItWas) {
  std::mt19937_64 random(testing::TestSeed());
  options_.epochs = 2;
  const std::vector<Delivered> expected = RunAll(options_);
  const std::uint64_t an_epoch = expected.size() / 2;
  for (const std::uint64_t first :
       {std::uint64_t{1}, an_epoch - 1, an_epoch, an_epoch + 1 + random() % (an_epoch - 1)}) {
    options_.first = first;
    const JobControl control;
    const auto loader = Loader::Open(graph(), options_, control);
    ASSERT_OK(loader);
    std::uint64_t ends = 0;
    for (std::uint64_t at = first; at < expected.size();) {
      EXPECT_EQ((*loader)->position(), at);
      const auto minibatch = (*loader)->Next();
      ASSERT_OK(minibatch);
      if (!*minibatch) {
        ++ends;
        EXPECT_EQ(at, an_epoch);
        continue;
      }
      ASSERT_TRUE(Keep(**minibatch) == expected[at]) << first << ", " << at;
      ++at;
    }
    EXPECT_EQ(ends, first < an_epoch ? 1u : 0u);
    EXPECT_FALSE((*loader)->Next()->has_value());
  }
  options_.first = expected.size() + 1;
  EXPECT_STATUS(OpenStatus(options_), kInvalidArgument);
}

// Rows are wider than the gaps that reads go over, so fewer rows mean fewer bytes.
TEST_F(LoaderTest, BeladyReadsFewerBytesThanLruAndTheCountsAddUp) {
  constexpr std::uint64_t kWide = 2048;
  const TempDir folder;
  ASSERT_OK(testing::WriteStore(folder / "g.rz", {.vertices = 800, .dim = kWide}));
  const auto open = testing::OpenStoreGraph(folder / "g.rz");
  ASSERT_OK(open);
  std::map<PolicyKind, MinibatchCosts> costs;
  for (const PolicyKind policy : {PolicyKind::kBelady, PolicyKind::kLru, PolicyKind::kNone}) {
    LoaderOptions options = options_;
    options.sampler.fanouts = {3, 3};
    options.feed.cache = policy;
    options.batch_size = 8;
    options.feed.superbatch = 17;
    options.memory_bytes = 5 * kMiB;
    LoaderReport report;
    std::uint64_t rows = 0;
    for (const Delivered& m : RunAll(*open->graph, options, &report)) rows += m.rows.size();
    EXPECT_EQ(report.costs.rows_requested, rows);
    EXPECT_EQ(report.minibatches, (267 + 7) / 8);
    EXPECT_GE(report.costs.bytes_read, report.costs.rows_read * kWide * sizeof(float));
    EXPECT_GT(report.costs.reads_issued, 0u);
    costs[policy] = report.costs;
    RecordProperty("bytes_" + std::string(PolicyName(policy)),
                   std::to_string(report.costs.bytes_read));
  }
  const MinibatchCosts& lru = costs[PolicyKind::kLru];
  EXPECT_GT(lru.pool_hits, 0u);
  EXPECT_EQ(lru.rows_read, lru.rows_requested - lru.pool_hits);
  const MinibatchCosts& none = costs[PolicyKind::kNone];
  EXPECT_EQ(none.pool_hits, 0u);
  EXPECT_EQ(none.rows_read, none.rows_requested);
  const MinibatchCosts& belady = costs[PolicyKind::kBelady];
  EXPECT_LT(belady.rows_read, lru.rows_read);
  EXPECT_LT(belady.bytes_read, lru.bytes_read);
  EXPECT_LT(lru.bytes_read, none.bytes_read);
}

TEST_F(LoaderTest, TheBoundIsKeptOrRefusedWithWhatIsNeeded) {
  for (const std::uint64_t memory : {5 * kMiB, 9 * kMiB, 40 * kMiB}) {
    options_.memory_bytes = memory;
    const JobControl control;
    const auto loader = Loader::Open(graph(), options_, control);
    ASSERT_OK(loader);
    EXPECT_LE((*loader)->memory().total_bytes(), memory);
    EXPECT_EQ((*loader)->memory().superbatch, 4u);
    // The cache takes the remaining memory, up to the size of all rows.
    EXPECT_GT((*loader)->memory().cache, std::min(memory / 8, kVertices * kDim * 4 - 1));
  }
  options_.memory_bytes = kMiB;
  const Status small = OpenStatus(options_);
  EXPECT_EQ(small.code(), StatusCode::kOutOfMemory);
  std::smatch found;
  const std::string text(small.message());
  ASSERT_TRUE(std::regex_search(text, found, std::regex("needs at least ([0-9]+) MiB"))) << text;
  options_.memory_bytes = std::stoull(found[1]) * kMiB;
  EXPECT_TRUE(OpenStatus(options_).ok()) << text;
}

TEST_F(LoaderTest, TheProcessGrowsByNoMoreThanTheBound) {
  if (testing::kSanitized)
    GTEST_SKIP() << "a sanitizer keeps memory that was freed, so that the process grows by more";
  constexpr std::uint64_t kMany = 60'000;
  constexpr std::uint64_t kBound = 24 * kMiB;
  const TempDir folder;
  {
    GraphInput input;
    input.vertex_count = kMany;
    std::mt19937_64 random(9);
    for (std::uint64_t e = 0; e < 4 * kMany; ++e) {
      input.edges.src.push_back(static_cast<VertexId>(random() % kMany));
      input.edges.dst.push_back(static_cast<VertexId>(random() % kMany));
    }
    input.vertex_type_names = {"vertex"};
    input.edge_type_names = {"edge"};
    ArrayInput rows;
    rows.name = "feat";
    rows.dim = kDim;
    rows.dtype = DataType::kFloat32;
    rows.read_rows = [](std::span<const VertexId>, std::span<std::byte> out) {
      std::fill(out.begin(), out.end(), std::byte{1});
      return Status::Ok();
    };
    input.arrays.push_back(std::move(rows));
    ASSERT_OK(testing::BuildStore(folder / "g.rz", std::move(input), {}));
  }
  const auto open = testing::OpenStoreGraph(folder / "g.rz");
  ASSERT_OK(open);
  LoaderOptions options;
  options.sampler.fanouts = {4, 4};
  options.features = "feat";
  options.batch_size = 200;
  for (VertexId v = 0; v < 20'000; ++v) options.seeds.push_back(v);
  const auto growth = [&](std::uint64_t bound) {
    options.memory_bytes = bound;
    const std::uint64_t before = ResidentBytes();
    std::uint64_t most = before;
    const JobControl control;
    const auto loader = Loader::Open(*open->graph, options, control);
    EXPECT_OK(loader);
    while (loader) {
      const auto minibatch = (*loader)->Next();
      EXPECT_OK(minibatch);
      if (!minibatch || !*minibatch) break;
      most = std::max(most, ResidentBytes());
    }
    return most - before;
  };
  // The allocator keeps some freed memory, more of it on a busy machine.
  constexpr std::uint64_t kKept = 2 * kMiB;
  EXPECT_LE(growth(kBound), kBound + kKept);
  options.sampler.threads = kThreadsOfStages;
  EXPECT_LE(growth(kBound), kBound + kKept) << "scheduled apart";
  options.sampler.threads = 1;
  EXPECT_GT(growth(0), kBound + kBound / 2) << "without a bound nearly all rows are kept";
}

TEST_F(LoaderTest, ACancelledFeedEndsWhateverItDoes) {
  for (const std::uint64_t after : {0, 1, 7, 8, 9, 10}) {
    options_.epochs = 0;  // endless
    options_.sampler.threads = after < 8 ? 1 : kThreadsOfStages;
    JobControl control;
    const auto loader = Loader::Open(graph(), options_, control);
    ASSERT_OK(loader);
    for (std::uint64_t i = 0; i < after; ++i) ASSERT_OK((*loader)->Next());
    std::thread other([&control] { control.Cancel(); });
    Status status = Status::Ok();
    while (status.ok()) status = testing::AsStatus((*loader)->Next());
    other.join();
    EXPECT_EQ(status.code(), StatusCode::kInterrupted);
    EXPECT_STATUS((*loader)->Next(), kInterrupted);
  }
  JobControl cancelled;
  cancelled.Cancel();
  EXPECT_STATUS(Loader::Open(graph(), options_, cancelled), kInterrupted);
}

TEST_F(LoaderTest, LoadersOfOneNameLiveBesideEachOtherAndLeaveNothing) {
  const JobControl control;
  options_.epochs = 0;
  const Path scratch = open_.store->scratch();
  {
    const auto one = Loader::Open(graph(), options_, control);
    const auto two = Loader::Open(graph(), options_, control);
    ASSERT_OK(one);
    ASSERT_OK(two);
    EXPECT_TRUE(std::filesystem::exists(scratch / "feed"));
    EXPECT_TRUE(std::filesystem::exists(scratch / "feed-2"));
    for (int i = 0; i < 5; ++i) {
      const auto a = (*one)->Next(), b = (*two)->Next();
      ASSERT_OK(a);
      ASSERT_OK(b);
      EXPECT_TRUE(Keep(**a) == Keep(**b));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "feed"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "feed-2"));
}

TEST_F(LoaderTest, NormalisedRowsAreFloatsThatSumToOne) {
  options_.features = "half";
  options_.normalize = true;
  const std::vector<Delivered> all = RunAll(options_);
  ASSERT_FALSE(all.empty());
  const Delivered& m = all.front();
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    float sum = 0;
    for (std::size_t d = 0; d < kDim; ++d) sum += std::abs(m.features[i * kDim + d]);
    ASSERT_NEAR(sum, 1, 1e-4);
  }
}

TEST_F(LoaderTest, WhatWasWrittenSinceIsDelivered) {
  const TempDir folder;
  ASSERT_OK(testing::WriteStore(folder / "g.rz", {.vertices = 200}));
  auto store = Store::Open(FileSystem::Posix(), folder / "g.rz", Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  WriteBatch batch;
  const std::vector<float> row(16, 2.5F);
  batch.PutVertex(std::int64_t{200});
  batch.PutRow(std::int64_t{200}, "feat", row);
  batch.PutRow(std::int64_t{7}, "feat", row);
  batch.PutEdge(std::int64_t{7}, std::int64_t{200});
  ASSERT_OK((*graph)->Write(batch, {}));
  LoaderOptions options;
  options.sampler.fanouts = {kAllNeighbors};
  options.features = "feat";
  options.seeds = {200, 7};
  options.shuffle = false;
  const std::vector<Delivered> all = RunAll(**graph, options);
  ASSERT_EQ(all.size(), 1u);
  const Delivered& m = all.front();
  std::vector<float> expected(m.vertices.size() * 16);
  ASSERT_OK((*graph)->ReadRows("feat", m.vertices, std::as_writable_bytes(std::span(expected))));
  EXPECT_EQ(m.features, expected);
  EXPECT_EQ(std::vector<float>(m.features.begin(), m.features.begin() + 32),
            std::vector<float>(32, 2.5F));
  // Vertex 200 has one neighbour, which is the other seed.
  EXPECT_EQ(m.offsets[1], 1u);
  EXPECT_EQ(m.neighbors[0], 1u);
}

TEST_F(LoaderTest, BadOptionsAreRefusedWithWords) {
  const auto expect = [this](StatusCode code, const std::string& words, auto change) {
    LoaderOptions options = options_;
    change(options);
    const Status status = OpenStatus(options);
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_NE(status.ToString().find(words), std::string::npos) << status.ToString();
  };
  const auto bad = StatusCode::kInvalidArgument;
  expect(bad, "no fanouts", [](LoaderOptions& o) { o.sampler.fanouts = {}; });
  expect(bad, "fanout", [](LoaderOptions& o) { o.sampler.fanouts = {-5}; });
  expect(bad, "batch size", [](LoaderOptions& o) { o.batch_size = 0; });
  expect(bad, "epochs", [](LoaderOptions& o) { o.epochs = (1U << 23) + 1; });
  expect(bad, "no features", [](LoaderOptions& o) { o.features = {}; });
  expect(bad, "one of `seeds`", [](LoaderOptions& o) { o.split = {}; });
  expect(bad, "one of `seeds`", [](LoaderOptions& o) { o.seeds = {1}; });
  expect(bad, "train, valid or test", [](LoaderOptions& o) { o.set = Split::kNone; });
  expect(bad, "time for each seed", [](LoaderOptions& o) {
    o.sampler.times = std::make_shared<EdgeTimesInMemory>(std::vector<std::vector<std::int64_t>>());
  });
  expect(bad, "drop_last", [](LoaderOptions& o) {
    o.batch_size = kVertices;
    o.drop_last = true;
  });
  const auto given = [](std::vector<VertexId> seeds) {
    return [seeds](LoaderOptions& o) {
      o.split = {};
      o.seeds = seeds;
    };
  };
  expect(bad, "seed 4 is repeated", given({1, 4, 2, 4}));
  expect(bad, "seed 3000 is not a vertex", given({1, kVertices}));
  expect(bad, "seed -1 is not a vertex", given({-1}));
  expect(bad, "seed 11 has no label", given({1, 11}));
  expect(StatusCode::kNotFound, "nothing", [](LoaderOptions& o) { o.features = "nothing"; });
  expect(StatusCode::kNotFound, "nothing", [](LoaderOptions& o) { o.labels = "nothing"; });
  expect(StatusCode::kNotFound, "nothing", [](LoaderOptions& o) { o.split = "nothing"; });
  expect(bad, "labels must be", [](LoaderOptions& o) { o.labels = "feat"; });
  expect(bad, "a split (`split`) must be uint8", [](LoaderOptions& o) { o.split = "label"; });
  expect(bad, "job", [](LoaderOptions& o) { o.job = "a/b"; });
  expect(StatusCode::kOutOfMemory, "needs at least", [](LoaderOptions& o) { o.memory_bytes = 1; });
}

TEST_F(LoaderTest, CopyToRefusesAnotherSize) {
  const JobControl control;
  const auto loader = Loader::Open(graph(), options_, control);
  ASSERT_OK(loader);
  const auto minibatch = (*loader)->Next();
  ASSERT_OK(minibatch);
  std::vector<float> out((*minibatch)->features.rows() * kDim + 1);
  EXPECT_STATUS((*minibatch)->features.CopyTo(out), kInvalidArgument);
  const auto lists = (*minibatch)->NeighborsOf(0);
  EXPECT_EQ(lists.data(), (*minibatch)->neighbors.data());
  EXPECT_EQ(lists.size(), (*minibatch)->offsets[1]);
}

}  // namespace
}  // namespace rhizome
