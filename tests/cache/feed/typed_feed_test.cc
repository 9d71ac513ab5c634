#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>

#include "cache/feed/cache_division.h"
#include "cache/feed/epoch_plan.h"
#include "cache/feed/feed_pipeline.h"
#include "cache/feed/feed_profile.h"
#include "cache/feed/inputs.h"
#include "cache/feed/minibatch_sampler.h"
#include "cache/policy/replay.h"
#include "rhizome/loader.h"
#include "rhizome/sampler.h"
#include "storage/array/chunk_writer.h"
#include "testing/planted_graph.h"
#include "testing/test_store.h"

// Tests of minibatches of typed graphs: types of vertices, inputs from several arrays, and the
// division of memory among them. The graphs have a delta.

namespace rhizome {
namespace {

using testing::TempDir;

constexpr std::uint64_t kVertices = 2000;
constexpr std::uint64_t kNew = 60;  // vertices of the delta
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

const std::vector<std::string> kTypes = {"paper", "author", "venue"};
const std::map<std::string, std::uint64_t> kDims = {{"p", 32}, {"a", 128}, {"v", 768}, {"feat", 8}};

/// Value of a row at `column`.
float ValueOf(VertexId vertex, std::size_t column, float of_array) {
  return static_cast<float>(vertex) + of_array * 10000 + static_cast<float>(column % 7) / 8;
}

/// A random graph of three vertex types with an array for each of them and one for all, whose rows
/// were written by BuildStore, except for new vertices and some rows of the delta.
class TypedFeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    random_.seed(testing::TestSeed());
    constexpr OrderKind kOrders[] = {OrderKind::kPds, OrderKind::kNatural, OrderKind::kRandom};
    GraphInput input;
    input.vertex_count = kVertices;
    for (std::uint64_t v = 0; v < kVertices; ++v)
      input.vertex_type.push_back(random_() % 10 == 0 ? 2 : static_cast<TypeId>(random_() % 2));
    for (std::uint64_t e = 0; e < 6 * kVertices; ++e) {
      input.edges.src.push_back(static_cast<VertexId>(random_() % kVertices));
      input.edges.dst.push_back(static_cast<VertexId>(random_() % kVertices));
    }
    input.vertex_type_names = kTypes;
    input.edge_type_names = {"edge"};
    type_of_ = input.vertex_type;
    for (const auto& [name, dim] : kDims) {
      AddArray(input, name, dim);
      if (bound_ && TypeOfArray(name))
        input.arrays.back().attributes = {{"vertex_type", kTypes[*TypeOfArray(name)]}};
    }
    input.arrays.push_back(
        testing::MakeArray("time", 1, DataType::kInt64, std::vector<std::int64_t>(kVertices, 1)));
    BuildOptions build;
    build.partition.partitions = 3;
    build.order = kOrders[random_() % 3];
    ASSERT_OK(testing::BuildStore(folder_ / "g.rz", std::move(input), build));
    ASSERT_NO_FATAL_FAILURE(WriteDelta());
    auto open = testing::OpenStoreGraph(folder_ / "g.rz");
    ASSERT_OK(open);
    open_ = *std::move(open);
    options_.sampler.fanouts = {4, 3};
    options_.sampler.seed = random_();
    options_.inputs = {{"paper", "p"}, {"author", "a"}, {"venue", "v"}};
    options_.seeds.resize(kVertices + kNew);
    std::iota(options_.seeds.begin(), options_.seeds.end(), VertexId{0});
    options_.batch_size = 50;
    options_.memory_bytes = 12 * kMiB;
  }

  static void AddArray(GraphInput& input, const std::string& name, std::uint64_t dim) {
    std::vector<float> values;
    for (std::uint64_t v = 0; v < kVertices; ++v)
      for (std::uint64_t d = 0; d < dim; ++d)
        values.push_back(ValueOf(static_cast<VertexId>(v), d, static_cast<float>(name[0])));
    input.arrays.push_back(testing::MakeArray(name, dim, DataType::kFloat32, values));
  }

  /// Adds vertices with edges and rows, and puts other rows for some old vertices.
  void WriteDelta() {
    const auto store = Store::Open(FileSystem::Posix(), folder_ / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto live = Graph::Open(**store);
    ASSERT_OK(live);
    WriteBatch batch;
    for (std::uint64_t v = kVertices; v < kVertices + kNew; ++v) {
      const auto id = static_cast<std::int64_t>(v);
      batch.PutVertex(id, kTypes[v % 3]);
      for (int e = 0; e < 4; ++e)
        batch.PutEdge(static_cast<std::int64_t>(random_() % kVertices), id, {.type = "edge"});
      PutRows(batch, id, static_cast<TypeId>(v % 3));
    }
    for (int i = 0; i < 40; ++i) {
      const auto id = static_cast<std::int64_t>(random_() % kVertices);
      PutRows(batch, id, type_of_[static_cast<std::size_t>(id)]);
      put_.insert(id);
    }
    ASSERT_OK((*live)->Write(batch, {.sync = false}));
  }

  /// Returns the type to which the array of this name is bound in some tests; nullopt: none.
  static std::optional<TypeId> TypeOfArray(const std::string& name) {
    for (TypeId type = 0; type < 3; ++type)
      if (name == kTypes[type].substr(0, 1)) return type;
    return std::nullopt;
  }

  /// Puts the rows of a vertex in all arrays that have one.
  void PutRows(WriteBatch& batch, std::int64_t id, TypeId type) const {
    for (const auto& [name, dim] : kDims)
      if (!bound_ || TypeOfArray(name).value_or(type) == type) PutRow(batch, id, name, dim);
  }

  static void PutRow(WriteBatch& batch, std::int64_t id, const std::string& name,
                     std::uint64_t dim) {
    std::vector<float> row;
    for (std::uint64_t d = 0; d < dim; ++d)
      row.push_back(-ValueOf(id, d, static_cast<float>(name[0])));
    batch.PutRow(id, name, std::span<const float>(row));
  }

  /// Expects the row of a vertex in an array.
  void ExpectRow(std::span<const float> row, VertexId vertex, const std::string& array) const {
    ASSERT_EQ(row.size(), kDims.at(array));
    const bool in_delta = vertex >= static_cast<VertexId>(kVertices) || put_.contains(vertex);
    for (std::size_t d = 0; d < row.size(); ++d) {
      const float value = ValueOf(vertex, d, static_cast<float>(array[0]));
      ASSERT_EQ(row[d], in_delta ? -value : value) << array << ", vertex " << vertex;
    }
  }

  /// Expects types, and the inputs that `arrays` (by type, empty: none) describe.
  void ExpectInputs(const Minibatch& m, const std::vector<std::string>& arrays) const {
    ASSERT_EQ(m.vertex_types.size(), m.rows.size());
    ASSERT_EQ(m.features.rows(), 0U);
    std::vector<int> inputs_of(m.rows.size(), 0);
    RowReads reads;
    for (const MinibatchInput& input : m.inputs) {
      ASSERT_TRUE(std::is_sorted(input.vertices.begin(), input.vertices.end()));
      ASSERT_EQ(input.features.rows(), input.vertices.size());
      reads += input.reads;
      for (std::size_t i = 0; i < input.vertices.size(); ++i) {
        const std::uint32_t v = input.vertices[i];
        ASSERT_EQ(input.array, arrays[m.vertex_types[v]]);
        ++inputs_of[v];
        ASSERT_NO_FATAL_FAILURE(ExpectRow(input.features.floats(i), m.vertices[v], input.array));
      }
    }
    for (std::size_t v = 0; v < m.rows.size(); ++v) {
      ASSERT_EQ(m.vertex_types[v], *graph().TypeOf(m.vertices[v]));
      ASSERT_EQ(inputs_of[v], arrays[m.vertex_types[v]].empty() ? 0 : 1);
    }
    EXPECT_EQ(reads.rows_requested, m.costs.rows_requested);
    EXPECT_EQ(reads.bytes_read, m.costs.bytes_read);
  }

  /// Runs a loader to its end and expects each minibatch to be as described.
  void ExpectEpochs(const GraphSnapshot& graph, const LoaderOptions& options,
                    const std::vector<std::string>& arrays) {
    const JobControl control;
    const auto loader = Loader::Open(graph, options, control);
    ASSERT_OK(loader);
    const auto sampler = Sampler::Create(*open_.graph, options.sampler);
    ASSERT_OK(sampler);
    for (std::size_t type = 0; type < arrays.size(); ++type)
      EXPECT_EQ((*loader)->inputs().at(type), (FeatureInput{kTypes[type], arrays[type]}));
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      while (true) {
        const auto minibatch = (*loader)->Next();
        ASSERT_OK(minibatch);
        if (!*minibatch) break;
        const Minibatch& m = **minibatch;
        ASSERT_NO_FATAL_FAILURE(ExpectInputs(m, arrays));
        const std::vector<VertexId> seeds(
            m.vertices.begin(), m.vertices.begin() + static_cast<std::ptrdiff_t>(m.seed_count));
        const auto sample = (*sampler)->Sample(seeds, m.tag);
        ASSERT_OK(sample);
        ASSERT_EQ(m.rows, sample->rows);
      }
      const LoaderReport report = (*loader)->report();
      RowReads reads;
      for (const InputReads& input : report.inputs) reads += input.reads;
      EXPECT_EQ(reads.rows_read, report.costs.rows_read);
      EXPECT_TRUE(epoch > 0 || reads.rows_read > 0);
    }
    const LoaderMemory& memory = (*loader)->memory();
    std::uint64_t cache = 0;
    for (const InputMemory& input : memory.inputs) cache += input.cache;
    EXPECT_LE(cache, memory.cache);
    EXPECT_LE(memory.total_bytes(), options.memory_bytes);
  }

  Status OpenStatus(const std::function<void(LoaderOptions&)>& change) {
    LoaderOptions options = options_;
    change(options);
    const JobControl control;
    return testing::AsStatus(Loader::Open(graph(), options, control));
  }

  const GraphSnapshot& graph() const { return *open_.graph; }

  TempDir folder_;
  std::mt19937_64 random_;
  bool bound_ = false;           // whether p, a and v are bound to their types
  std::vector<TypeId> type_of_;  // of old vertices
  std::set<VertexId> put_;       // old vertices with rows in the delta
  testing::OpenGraph open_;
  LoaderOptions options_;
};

/// As above, with arrays that have rows of all vertices, and with arrays that are bound to types.
class BoundFeedTest : public TypedFeedTest, public ::testing::WithParamInterface<bool> {
 protected:
  BoundFeedTest() { bound_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Bound, BoundFeedTest, ::testing::Bool());

TEST_F(TypedFeedTest, TypesOfRowsAreThoseOfTheGraph) {
  const RowTypes types(graph());
  std::vector<std::uint64_t> counts(3, 0);
  for (std::uint64_t row = 0; row < graph().vertex_count(); ++row) {
    const TypeId type = *graph().TypeOf(*graph().VertexAt(static_cast<Row>(row)));
    ASSERT_EQ(types.Of(static_cast<Row>(row)), type) << "row " << row;
    ++counts[type];
  }
  EXPECT_EQ(types.Counts(), counts);
}

// The file of a superbatch does not have the types: the pipeline fills them again.
TEST_F(TypedFeedTest, APipelineDeliversTypesWithOneArrayIfRequested) {
  for (const bool requested : {false, true}) {
    FeedPipelineOptions options;
    options.sampler.sampler.fanouts = {3, 3};
    options.sampler.vertex_types = requested;
    options.features = "feat";
    options.cache_bytes = 4096;
    options.superbatch = 2;
    options.scratch = folder_ / "scratch";
    std::filesystem::create_directories(options.scratch);
    const JobControl control;
    auto seeds = [next = std::uint64_t{0}]() mutable -> std::optional<SeedBatch> {
      if (next == 5) return std::nullopt;
      const auto v = static_cast<VertexId>(kVertices + next);  // a new vertex, and an old one
      return SeedBatch{.tag = next, .key = next++, .vertices = {v, v - 100}};
    };
    const auto pipeline = FeedPipeline::Open(graph(), options, seeds, control);
    ASSERT_OK(pipeline);
    for (int i = 0; i < 5; ++i) {
      const auto minibatch = (*pipeline)->Next();
      ASSERT_OK(minibatch);
      const Minibatch& m = **minibatch;
      EXPECT_TRUE(m.inputs.empty());
      EXPECT_EQ(m.features.rows(), m.rows.size());
      ASSERT_EQ(m.vertex_types.size(), requested ? m.rows.size() : 0);
      for (std::size_t v = 0; v < m.vertex_types.size(); ++v)
        ASSERT_EQ(m.vertex_types[v], *graph().TypeOf(*graph().VertexAt(m.rows[v])));
    }
  }
}

TEST_F(TypedFeedTest, EachTypeHasTheRowsOfItsArray) {
  options_.epochs = 2;
  ASSERT_NO_FATAL_FAILURE(ExpectEpochs(graph(), options_, {"p", "a", "v"}));
  options_.inputs = {{"venue", "a"}, {"paper", "p"}, {"author", "a"}};
  ASSERT_NO_FATAL_FAILURE(ExpectEpochs(graph(), options_, {"p", "a", "a"}));
  options_.inputs = {{"paper", ""}, {"author", "a"}, {"venue", ""}};
  ASSERT_NO_FATAL_FAILURE(ExpectEpochs(graph(), options_, {"", "a", ""}));
  options_.inputs = {{"paper", "p"}};  // the others have the default
  ASSERT_NO_FATAL_FAILURE(ExpectEpochs(graph(), options_, {"p", "feat", "feat"}));
}

TEST_P(BoundFeedTest, TypesThatAreNotNamedHaveTheDefault) {
  options_.epochs = 2;
  options_.inputs = {{"author", "a"}};
  const auto array_of = [&](const char* bound) { return bound_ ? bound : "feat"; };
  ASSERT_NO_FATAL_FAILURE(ExpectEpochs(graph(), options_, {array_of("p"), "a", array_of("v")}));
}

TEST_P(BoundFeedTest, InputsDoNotDependOnPolicyMemoryOrSampling) {
  const std::vector<std::string> arrays = {"p", "a", "v"};
  for (const PolicyKind policy : {PolicyKind::kBelady, PolicyKind::kCost, PolicyKind::kStatic,
                                  PolicyKind::kLru, PolicyKind::kNone}) {
    SCOPED_TRACE(PolicyName(policy));
    LoaderOptions options = options_;
    options.feed.cache = policy;
    options.feed.superbatch = static_cast<std::uint32_t>(random_() % 6);
    options.sampler.disjoint = random_() % 2 == 0;
    options.sampler.threads = random_() % 2 == 0 ? 1 : 4;
    options.memory_bytes = (24 + random_() % 40) * kMiB;
    ASSERT_NO_FATAL_FAILURE(ExpectEpochs(graph(), options, arrays));
  }
  LoaderOptions small = options_;
  small.feed.cache_bytes = 20'000;
  ASSERT_NO_FATAL_FAILURE(ExpectEpochs(graph(), small, arrays));
}

TEST_P(BoundFeedTest, ListsOnDiskAndAllOverlapsWork) {
  const auto direct =
      Graph::Open(std::as_const(*open_.store), {.topology = TopologyPlace::kDirect});
  ASSERT_OK(direct);
  options_.memory_bytes = 24 * kMiB;
  for (const Overlap overlap : {Overlap::kAll, Overlap::kChangeset, Overlap::kNone}) {
    SCOPED_TRACE(OverlapName(overlap));
    options_.feed.overlap = overlap;
    ASSERT_NO_FATAL_FAILURE(ExpectEpochs(**direct, options_, {"p", "a", "v"}));
    ASSERT_NO_FATAL_FAILURE(ExpectEpochs(graph(), options_, {"p", "a", "v"}));
  }
}

// A resumed job delivers the same minibatches as a run from the start.
TEST_P(BoundFeedTest, AJobResumesInTheMiddle) {
  const JobControl control;
  const auto whole = Loader::Open(graph(), options_, control);
  ASSERT_OK(whole);
  options_.first = 7;
  const auto rest = Loader::Open(graph(), options_, control);
  ASSERT_OK(rest);
  for (int i = 0; i < 7; ++i) ASSERT_OK((*whole)->Next());
  const auto expected = (*whole)->Next();
  ASSERT_OK(expected);
  const auto minibatch = (*rest)->Next();
  ASSERT_OK(minibatch);
  EXPECT_EQ((*minibatch)->rows, (*expected)->rows);
  EXPECT_EQ((*minibatch)->vertex_types, (*expected)->vertex_types);
  ASSERT_EQ((*minibatch)->inputs.size(), 3U);
  ASSERT_NO_FATAL_FAILURE(ExpectInputs(**minibatch, {"p", "a", "v"}));
}

TEST_F(TypedFeedTest, OneArrayForAllTypesIsReadAsOne) {
  options_.inputs = {{"paper", "feat"}, {"author", "feat"}, {"venue", "feat"}};
  const JobControl control;
  const auto typed = Loader::Open(graph(), options_, control);
  ASSERT_OK(typed);
  options_.inputs.clear();
  options_.features = "feat";
  const auto plain = Loader::Open(graph(), options_, control);
  ASSERT_OK(plain);
  while (true) {
    const auto a = (*typed)->Next(), b = (*plain)->Next();
    ASSERT_OK(a);
    ASSERT_OK(b);
    if (!*a) break;
    EXPECT_TRUE((*a)->inputs.empty());
    EXPECT_EQ((*a)->rows, (*b)->rows);
    EXPECT_EQ((*a)->vertex_types.size(), (*a)->rows.size());
    EXPECT_TRUE((*b)->vertex_types.empty());
    std::vector<float> rows[2];
    for (const auto& [m, to] : {std::pair(&*a, &rows[0]), std::pair(&*b, &rows[1])}) {
      to->resize((*m)->features.rows() * (*m)->features.dim());
      ASSERT_OK((*m)->features.CopyTo(*to));
    }
    EXPECT_EQ(rows[0], rows[1]);
  }
  EXPECT_TRUE((*typed)->memory().inputs.empty());
  EXPECT_EQ((*typed)->inputs().size(), 3U);
  EXPECT_TRUE((*plain)->inputs().empty());
}

TEST_F(TypedFeedTest, BadInputsAreRefused) {
  const auto expect = [this](StatusCode code, const std::string& what,
                             std::vector<FeatureInput> inputs) {
    const Status status = OpenStatus([&](LoaderOptions& o) { o.inputs = std::move(inputs); });
    EXPECT_EQ(status.code(), code) << what;
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find("--"), std::string::npos) << status.message();
  };
  constexpr auto kBad = StatusCode::kInvalidArgument;
  expect(kBad, "no vertex type 'book'; the types are paper, author, venue", {{"book", "p"}});
  expect(kBad, "type paper is given twice, with p and none", {{"paper", "p"}, {"paper", ""}});
  expect(StatusCode::kNotFound, "vertex type author", {{"author", "nothing"}});
  expect(kBad, "no vertex type has features", {{"paper", ""}, {"author", ""}, {"venue", ""}});
  EXPECT_STATUS(OpenStatus([](LoaderOptions& o) { o.features = "feat"; }), kInvalidArgument);
  FeedPipelineOptions pipeline;
  pipeline.sampler.sampler.fanouts = {2};
  pipeline.inputs = {{"paper", "p"}, {"author", "a"}};
  pipeline.on_superbatch = [](const Trace&) { return Status::Ok(); };
  const JobControl control;
  const auto on_device = FeedPipeline::Open(
      graph(), pipeline, [] { return std::nullopt; }, control);
  EXPECT_STATUS(on_device, kInvalidArgument);
  EXPECT_NE(on_device.error().message().find("device"), std::string::npos);
}

/// A store with one vertex of each type and arrays bound to types.
class InputsTest : public ::testing::Test {
 protected:
  void Make(const std::vector<std::pair<std::string, std::string>>& arrays) {
    GraphInput input;
    input.vertex_count = 3;
    input.vertex_type = {0, 1, 2};
    input.vertex_type_names = kTypes;
    input.edge_type_names = {"edge"};
    for (const auto& [name, type] : arrays) {
      ArrayInput array =
          name[0] == 'i'
              ? testing::MakeArray(name, 2, DataType::kInt32, std::vector<std::int32_t>(6))
              : testing::MakeArray(name, 2, DataType::kFloat32, std::vector<float>(6));
      if (!type.empty()) array.attributes = {{"vertex_type", type}};
      input.arrays.push_back(std::move(array));
    }
    const Path path = folder_ / ("g" + std::to_string(++stores_));
    ASSERT_OK(testing::BuildStore(path, std::move(input), {}));
    auto open = testing::OpenStoreGraph(path);
    ASSERT_OK(open);
    open_ = *std::move(open);
  }

  std::vector<std::string> Resolved(const std::vector<FeatureInput>& given = {}) {
    const auto inputs = ResolveInputs(*open_.graph, given);
    EXPECT_OK(inputs);
    if (!inputs) return {};
    notes_ = inputs->notes;
    std::vector<std::string> arrays;
    for (std::size_t type = 0; type < inputs->of_types.size(); ++type) {
      EXPECT_EQ(inputs->of_types[type].vertex_type, kTypes[type]);
      arrays.push_back(inputs->of_types[type].array);
    }
    return arrays;
  }

  TempDir folder_;
  int stores_ = 0;
  testing::OpenGraph open_;
  std::vector<std::string> notes_;
};

using Names = std::vector<std::string>;

TEST_F(InputsTest, ATypeGetsItsBoundArrayElseTheCommonOneElseNone) {
  ASSERT_NO_FATAL_FAILURE(Make({{"x", "paper"}, {"y", "author"}, {"i", ""}}));
  EXPECT_EQ(Resolved(), (Names{"x", "y", ""}));
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_NE(notes_[0].find("type venue have no features"), std::string::npos);
  EXPECT_EQ(Resolved({{"author", ""}, {"venue", "i"}}), (Names{"x", "", "i"}));
  EXPECT_TRUE(notes_.empty());
  ASSERT_NO_FATAL_FAILURE(Make({{"x", "paper"}, {"y", "author"}, {"z", "author"}, {"all", ""}}));
  EXPECT_EQ(Resolved(), (Names{"x", "all", "all"}));
  ASSERT_NO_FATAL_FAILURE(Make({{"y", "author"}, {"z", "author"}, {"b", ""}, {"c", ""}}));
  EXPECT_EQ(Resolved(), (Names{"", "", ""}));
  ASSERT_EQ(notes_.size(), 3U);
  EXPECT_NE(notes_[1].find("y, z, b, c"), std::string::npos) << notes_[1];
  ASSERT_NO_FATAL_FAILURE(Make({{"b", ""}, {"feat", ""}}));
  EXPECT_EQ(Resolved(), (Names{"feat", "feat", "feat"}));
  EXPECT_EQ(ResolveInputs(*open_.graph, {})->shared(), "feat");
}

TEST_F(InputsTest, ALoaderLogsWhichTypesHaveNoFeatures) {
  ASSERT_NO_FATAL_FAILURE(Make({{"x", "paper"}}));
  std::vector<std::string> lines;
  StoreOptions logged;
  logged.log = [&](const LogLine& line) {
    EXPECT_EQ(line.level, LogLevel::kWarning);
    lines.emplace_back(line.message);
  };
  logged.log_level = LogLevel::kWarning;
  {
    const auto store =
        Store::Open(FileSystem::Posix(), open_.store->path(), Store::Mode::kRead, logged);
    ASSERT_OK(store);
    const auto graph = Graph::Open(std::as_const(**store));
    ASSERT_OK(graph);
    LoaderOptions options;
    options.sampler.fanouts = {1};
    options.inputs = {{"paper", "x"}, {"venue", ""}};
    options.seeds = {0};
    const JobControl control;
    ASSERT_OK(Loader::Open(**graph, options, control));
  }
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines.front().find("type author have no features"), std::string::npos) << lines.front();
}

TEST_F(InputsTest, AnArrayOfAnotherTypeIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Make({{"x", "paper"}, {"y", "author"}}));
  const auto inputs = ResolveInputs(*open_.graph, std::vector<FeatureInput>{{"author", "x"}});
  EXPECT_STATUS(inputs, kInvalidArgument);
  EXPECT_NE(inputs.error().message().find("type author: array x belongs to vertices of type paper"),
            std::string::npos)
      << inputs.error().message();
  LoaderOptions options;
  options.sampler.fanouts = {1};
  options.features = "x";
  options.seeds = {0};
  const JobControl control;
  const auto loader = Loader::Open(*open_.graph, options, control);
  EXPECT_STATUS(loader, kInvalidArgument);
  EXPECT_NE(loader.error().message().find("only for vertices of type paper"), std::string::npos);
}

/// Arrays whose reads fall along convex curves, like the reads of an optimal cache.
std::vector<DividedArray> DrawCurves(std::mt19937_64& random, std::size_t count) {
  std::vector<DividedArray> arrays;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t most = 1000 + random() % 100000;
    const std::uint64_t reads = 1000 + random() % 1000000;
    const double bend = 1 + static_cast<double>(random() % 40) / 10;
    arrays.push_back(
        {.most_bytes = most,
         .requested_bytes = reads,
         .bytes_read = [=](std::uint64_t bytes) -> Result<std::uint64_t> {
           const double left =
               1 - static_cast<double>(std::min(bytes, most)) / static_cast<double>(most);
           return static_cast<std::uint64_t>(static_cast<double>(reads) * std::pow(left, bend));
         }});
  }
  return arrays;
}

/// Returns the reads of the best division into sixteenths.
std::uint64_t BestReads(std::span<const DividedArray> arrays, std::uint64_t bytes,
                        std::uint64_t sixteenths = 16) {
  const auto read = [&](std::uint64_t of_first) {
    return *arrays.front().bytes_read(bytes / 16 * of_first);
  };
  if (arrays.size() == 1) return read(sixteenths);
  std::uint64_t best = ~std::uint64_t{0};
  for (std::uint64_t n = 0; n <= sixteenths; ++n)
    best = std::min(best, read(n) + BestReads(arrays.subspan(1), bytes, sixteenths - n));
  return best;
}

TEST(CacheDivisionTest, ReadsAreThoseOfTheBestDivision) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 50; ++round) {
    const std::vector<DividedArray> arrays = DrawCurves(random, 1 + random() % 4);
    std::uint64_t most = 0;
    for (const DividedArray& array : arrays) most += array.most_bytes;
    const std::uint64_t bytes = 160 + random() % most;
    const auto parts = DivideCache(bytes, arrays);
    ASSERT_OK(parts);
    std::uint64_t sum = 0;
    std::uint64_t reads = 0;
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      sum += (*parts)[a];
      reads += *arrays[a].bytes_read((*parts)[a]);
      EXPECT_LE((*parts)[a], arrays[a].most_bytes);
    }
    EXPECT_EQ(sum, std::min(bytes, most));
    EXPECT_LE(static_cast<double>(reads), 1.05 * static_cast<double>(BestReads(arrays, bytes)));
  }
}

TEST(CacheDivisionTest, WithoutSavingsMemoryGoesWhereMostBytesAreRequested) {
  const auto nothing = [](std::uint64_t) -> Result<std::uint64_t> { return 0; };
  const std::vector<DividedArray> arrays = {
      {.most_bytes = 1000, .requested_bytes = 100, .bytes_read = nothing},
      {.most_bytes = 1000, .requested_bytes = 900, .bytes_read = nothing}};
  EXPECT_EQ(*DivideCache(1600, arrays), (std::vector<std::uint64_t>{600, 1000}));
  EXPECT_EQ(*DivideCache(5000, arrays), (std::vector<std::uint64_t>{1000, 1000}));
  EXPECT_EQ(*DivideCache(0, arrays), (std::vector<std::uint64_t>{0, 0}));
  const DividedArray broken{
      .most_bytes = 10, .requested_bytes = 1, .bytes_read = [](std::uint64_t) {
        return Result<std::uint64_t>(Fail(Status::IoError("disk")));
      }};
  EXPECT_STATUS(DivideCache(5, std::span(&broken, 1)), kIoError);
}

/// Bytes that an epoch reads from each array, by the sixteenths of the cache memory that it gets.
class ReadsOfEpoch {
 public:
  /// Runs an epoch and records the rows that each array is asked for, by superbatches of `length`.
  static ReadsOfEpoch Of(const GraphSnapshot& graph, const LoaderOptions& options) {
    ReadsOfEpoch reads;
    const JobControl control;
    const auto loader = Loader::Open(graph, options, control);
    EXPECT_OK(loader);
    if (!loader) return reads;
    for (const InputMemory& input : (*loader)->memory().inputs) reads.parts_.push_back(input.cache);
    reads.traces_.resize(reads.parts_.size());
    while (true) {
      const auto m = (*loader)->Next();
      EXPECT_OK(m);
      if (!m || !*m) break;
      for (std::size_t a = 0; a < reads.traces_.size(); ++a) {
        std::vector<Row> rows;
        for (const std::uint32_t v : (*m)->inputs[a].vertices) rows.push_back((*m)->rows[v]);
        reads.traces_[a].AddStep(rows);
        reads.row_bytes_.resize(reads.traces_.size());
        reads.row_bytes_[a] = (*m)->inputs[a].features.row_bytes();
      }
    }
    reads.key_count_ = graph.vertex_count();
    reads.superbatch_ = options.feed.superbatch;
    reads.cache_bytes_ = *options.feed.cache_bytes;
    return reads;
  }

  std::uint64_t Bytes(std::size_t array, std::uint64_t cache_bytes) const {
    const PolicyOptions policy{
        .kind = PolicyKind::kBelady,
        .frame_count = static_cast<std::uint32_t>(cache_bytes / row_bytes_[array]),
        .key_count = key_count_,
        .unit_bytes = row_bytes_[array]};
    const auto replay = ReplaySuperbatches(traces_[array], superbatch_, policy, Prior::kUses);
    EXPECT_OK(replay);
    return replay ? replay->rows * row_bytes_[array] : 0;
  }

  /// Bytes that the epoch reads with the division of the loader.
  double Divided() const { return Sum(parts_); }
  double DividedEqually() const {
    return Sum(std::vector<std::uint64_t>(parts_.size(), cache_bytes_ / parts_.size()));
  }

  /// Bytes that the epoch reads with the best division into sixteenths.
  double Best() const {
    std::vector<DividedArray> arrays;
    for (std::size_t a = 0; a < parts_.size(); ++a) {
      auto known = std::make_shared<std::map<std::uint64_t, std::uint64_t>>();
      arrays.push_back({.most_bytes = 0,
                        .requested_bytes = 0,
                        .bytes_read = [this, a, known](std::uint64_t bytes) {
                          const auto [at, is_new] = known->try_emplace(bytes, 0);
                          if (is_new) at->second = Bytes(a, bytes);
                          return Result<std::uint64_t>(at->second);
                        }});
    }
    return static_cast<double>(BestReads(arrays, cache_bytes_));
  }

 private:
  double Sum(const std::vector<std::uint64_t>& parts) const {
    std::uint64_t bytes = 0;
    for (std::size_t a = 0; a < parts.size(); ++a) bytes += Bytes(a, parts[a]);
    return static_cast<double>(bytes);
  }

  std::vector<std::uint64_t> parts_;  // bytes of cache of each array
  std::vector<Trace> traces_;         // of the epoch, of each array
  std::vector<std::uint64_t> row_bytes_;
  std::uint64_t key_count_ = 0, superbatch_ = 0, cache_bytes_ = 0;
};

/// Writes a graph whose sources have skewed degrees, with arrays p, a and v of 32, 128 and 768
/// columns.
Status WriteSkewed(const Path& path, std::mt19937_64& random, std::uint64_t vertices) {
  GraphInput input;
  input.vertex_count = vertices;
  std::uniform_real_distribution<double> unit;
  for (std::uint64_t v = 0; v < vertices; ++v)
    input.vertex_type.push_back(static_cast<TypeId>(std::min<std::uint64_t>(random() % 4, 2)));
  for (std::uint64_t e = 0; e < 10 * vertices; ++e) {
    const double skewed = std::pow(unit(random), 3) * static_cast<double>(vertices);
    input.edges.src.push_back(static_cast<VertexId>(skewed));
    input.edges.dst.push_back(static_cast<VertexId>(random() % vertices));
  }
  input.vertex_type_names = kTypes;
  input.edge_type_names = {"edge"};
  for (const char* const name : {"p", "a", "v"}) {
    const std::uint64_t dim = kDims.at(name);
    input.arrays.push_back(
        testing::MakeArray(name, dim, DataType::kFloat32, std::vector<float>(vertices * dim)));
  }
  return testing::BuildStore(path, std::move(input), {});
}

// The division comes from the first minibatches alone; the best one from the whole epoch.
TEST(TypedFeedMemoryTest, AnEpochReadsAtMostATenthMoreThanWithTheBestDivision) {
  const TempDir folder;
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::uint64_t kMany = 5000;
  ASSERT_OK(WriteSkewed(folder / "g.rz", random, kMany));
  const auto open = testing::OpenStoreGraph(folder / "g.rz");
  ASSERT_OK(open);
  LoaderOptions options;
  options.sampler.fanouts = {4, 4};
  options.sampler.seed = random();
  options.inputs = {{"paper", "p"}, {"author", "a"}, {"venue", "v"}};
  options.seeds.resize(kMany);
  std::iota(options.seeds.begin(), options.seeds.end(), VertexId{0});
  options.batch_size = 40;
  options.memory_bytes = 256 * kMiB;
  options.feed.superbatch = 8;
  const std::uint64_t all_rows = kMany * (32 + 128 + 2 * 768) / 4 * sizeof(float);
  bool equal_is_worse = false;  // else the test would show nothing
  for (const double share : {.03, .1, .3}) {
    options.feed.cache_bytes = static_cast<std::uint64_t>(share * static_cast<double>(all_rows));
    const ReadsOfEpoch reads = ReadsOfEpoch::Of(*open->graph, options);
    const double over = static_cast<double>(reads.Divided()) / static_cast<double>(reads.Best());
    EXPECT_LE(over, 1.10) << "share " << share;
    equal_is_worse = equal_is_worse || reads.DividedEqually() > 1.15 * reads.Best();
  }
  EXPECT_TRUE(equal_is_worse);
}

// Each step of the plan replays these accesses, so a loader that starts soon profiles few.
TEST(TypedFeedMemoryTest, ALoaderProfilesABoundedNumberOfAccesses) {
  const TempDir folder;
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::uint64_t kMany = 20'000;
  ASSERT_OK(WriteSkewed(folder / "g.rz", random, kMany));
  const auto open = testing::OpenStoreGraph(folder / "g.rz");
  ASSERT_OK(open);
  FeedJob job{.graph = *open->graph, .pipeline = {}, .fixed = {.cache_bytes = 4 * kMiB}};
  job.pipeline.sampler.sampler.fanouts = {10, 10};
  job.pipeline.inputs = {{"paper", "p"}, {"author", "a"}, {"venue", "v"}};
  std::vector<VertexId> seeds(kMany);
  std::iota(seeds.begin(), seeds.end(), VertexId{0});
  const EpochPlan plan(seeds, {}, {.batch_size = kMany / 4, .epochs = 100});
  const MinibatchSampler sampler =
      *MinibatchSampler::Create(*open->graph, job.pipeline.sampler, nullptr);
  const std::uint64_t rows = sampler.Sample(*EpochPlan(plan).Next())->rows.size();
  ASSERT_LT(rows, 1U << 16);
  const JobControl control;
  job.starts_soon = true;
  const auto soon = PlanFeed(job, plan, control);
  ASSERT_OK(soon);
  EXPECT_GE(soon->profile.minibatches, 2U);
  EXPECT_LE(soon->profile.minibatches, (1U << 17) / (rows - rows / 4) + 1);
  EXPECT_EQ(soon->inputs.size(), 3U);
}

/// Writes a graph of consecutive types, and an array of each type, bound to it or not.
Status WriteConsecutive(const Path& path, std::uint64_t vertices, bool bound) {
  std::mt19937_64 random(7);
  GraphInput input;
  input.vertex_count = vertices;
  input.vertex_type_names = kTypes;
  input.edge_type_names = {"edge"};
  for (std::uint64_t v = 0; v < vertices; ++v) {
    input.vertex_type.push_back(v < vertices / 16 ? 0 : v < vertices / 8 ? 1 : 2);
    input.edges.src.push_back(static_cast<VertexId>(random() % vertices));
    input.edges.dst.push_back(static_cast<VertexId>(v));
  }
  for (const std::string& type : kTypes) {
    input.arrays.push_back(testing::MakeArray(type.substr(0, 1), 4, DataType::kFloat32,
                                              std::vector<float>(vertices * 4)));
    input.arrays.back().chunk_rows = 128;
    if (bound) input.arrays.back().attributes = {{"vertex_type", type}};
  }
  BuildOptions build;
  build.order = OrderKind::kNatural;
  return testing::BuildStore(path, std::move(input), build);
}

TEST(TypedFeedMemoryTest, ChecksumsOfChunksThatAreNotStoredUseNoMemory) {
  const TempDir folder;
  constexpr std::uint64_t kMany = 4096;
  std::uint64_t working[2] = {};
  std::uint64_t stored_rows = 0;
  for (const bool bound : {false, true}) {
    const Path path = folder / (bound ? "bound" : "whole");
    ASSERT_OK(WriteConsecutive(path, kMany, bound));
    const auto open = testing::OpenStoreGraph(path);
    ASSERT_OK(open);
    LoaderOptions options;
    options.sampler.fanouts = {2};
    options.inputs = {{"paper", "p"}, {"author", "a"}, {"venue", "v"}};
    options.seeds = {1, 300, 600};
    const JobControl control;
    const auto loader = Loader::Open(*open->graph, options, control);
    ASSERT_OK(loader);
    working[bound ? 1 : 0] = (*loader)->memory().working;
    const Manifest& manifest = open->store->manifest();
    for (const char* const name : {"p", "a", "v"})
      if (bound)
        stored_rows += 128 * ListedChunks(*manifest.FindArray(name), manifest.files).size();
  }
  ASSERT_LT(stored_rows, 2 * kMany);
  EXPECT_EQ(working[0] - working[1], sizeof(std::uint32_t) * (3 * kMany - stored_rows));
}

}  // namespace
}  // namespace rhizome
