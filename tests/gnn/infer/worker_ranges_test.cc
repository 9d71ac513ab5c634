#include "gnn/infer/worker_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "cache/feed/row_degrees.h"
#include "cache/ranges/pass_features.h"
#include "testing/planted_graph.h"
#include "testing/test_store.h"

// Tests of WorkerRanges, which cuts a layer into ranges of rows, one for each worker: every open
// chunk is in one range; ranges have equal edges until measured costs allow a cost model to choose
// better ones; the model learns across layers and jobs.

namespace rhizome {
namespace {

using testing::MakePlanted;
using testing::OpenStoreGraph;
using testing::PlantedOptions;
using testing::TempDir;
using testing::TestSeed;

/// A graph whose layers are cut into ranges. Most edges end at vertices with small numbers.
class WorkerRangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    PlantedOptions options;
    options.vertices = 5000 + random_() % 1000;
    options.degree = 3;
    options.partitions = 1;
    options.seed = random_();
    testing::PlantedGraph planted = MakePlanted(options);
    for (int i = 0; i < 60000; ++i) {
      planted.edges.src.push_back(static_cast<VertexId>(random_() % options.vertices));
      planted.edges.dst.push_back(static_cast<VertexId>(random_() % 400));
    }
    const Path store = folder_ / "g.rz";
    ASSERT_OK(testing::WriteStore(store, options, planted));
    Result<testing::OpenGraph> open = OpenStoreGraph(store);
    ASSERT_OK(open);
    open_ = *std::move(open);
    Result<std::vector<std::uint32_t>> degrees = DegreesOfRows(*open_.graph, Direction::kIn);
    ASSERT_OK(degrees);
    degrees_ = *std::move(degrees);
  }

  /// Returns a layer; its pass borrows `degrees_`.
  LayerToCut Layer(std::uint64_t chunk_rows, std::uint64_t alike = 1) const {
    LayerToCut layer{.graph = *open_.graph,
                     .layer = 2,
                     .kind = "gcn",
                     .columns_read = 100,
                     .columns_written = 32,
                     .rows = open_.graph->vertex_count(),
                     .alike = alike};
    layer.pass.planner.degrees = degrees_;
    layer.pass.output_chunk_rows = chunk_rows;
    return layer;
  }

  std::vector<bool> NoneDone(const LayerToCut& layer) const {
    const std::uint64_t rows = layer.pass.output_chunk_rows;
    return std::vector<bool>((layer.rows + rows - 1) / rows, false);
  }

  /// Writes a file of cost models in which the model of such layers has learnt that the cost is
  /// `cost_of` the features. Returns its path.
  template <typename CostOf>
  Path WriteCosts(const LayerToCut& layer, const CostOf& cost_of) {
    CostModels models;
    for (int i = 0; i < 50; ++i) {
      FeatureVector x;
      for (double& value : x) value = static_cast<double>(1 + random_() % 1000);
      EXPECT_OK(models[CostModelName(layer)].Learn(x, cost_of(x)));
    }
    const Path file = folder_ / fmt::format("costs-{}.json", random_());
    EXPECT_OK(SaveCostModels(models, file));
    return file;
  }

  /// Returns the measured costs of the chunks of all tasks, if a row costs `cost_of(row)`.
  template <typename CostOf>
  std::vector<InferLayerReport::Cost> Measure(const LayerToCut& layer,
                                              const std::vector<WorkerTask>& tasks,
                                              const CostOf& cost_of) const {
    std::vector<InferLayerReport::Cost> costs;
    for (const WorkerTask& task : tasks) {
      for (std::uint64_t chunk = task.begin; chunk < task.end; ++chunk) {
        const std::uint64_t rows = layer.pass.output_chunk_rows;
        InferLayerReport::Cost cost{chunk * rows, std::min(layer.rows, (chunk + 1) * rows), 0};
        for (std::uint64_t row = cost.begin; row < cost.end; ++row)
          cost.cpu_seconds += cost_of(row);
        costs.push_back(cost);
      }
    }
    return costs;
  }

  std::mt19937_64 random_{TestSeed()};
  const TempDir folder_;
  testing::OpenGraph open_;
  std::vector<std::uint32_t> degrees_;
  const JobControl control_;
};

TEST_F(WorkerRangesTest, EveryOpenChunkIsInOneTaskWhateverIsKnown) {
  const LayerToCut any = Layer(128);
  const Path learned = WriteCosts(any, [](const FeatureVector& x) { return 1e-6 * x[0]; });
  for (const Path& file : {Path(), learned}) {
    for (int round = 0; round < 20; ++round) {
      WorkerRanges ranges({.costs = file}, {});
      const LayerToCut layer = Layer(random_() % 2 == 0 ? 128 : 64 * (1 + random_() % 9));
      std::vector<bool> done = NoneDone(layer);
      const std::uint64_t share = random_() % 5;
      for (std::size_t chunk = 0; chunk < done.size(); ++chunk) done[chunk] = random_() % 5 < share;
      const auto workers = static_cast<std::uint32_t>(1 + random_() % 9);
      const Result<std::vector<WorkerTask>> tasks = ranges.Cut(layer, done, workers, control_);
      ASSERT_OK(tasks);
      std::vector<bool> covered = done;
      std::uint64_t last = 0;
      for (const WorkerTask& task : *tasks) {
        EXPECT_EQ(task.stage, 2u);
        EXPECT_GE(task.begin, last);
        ASSERT_LT(task.begin, task.end);
        last = task.end;
        for (std::uint64_t chunk = task.begin; chunk < task.end; ++chunk) {
          EXPECT_FALSE(covered[chunk]) << "chunk " << chunk << " is given twice, or is done";
          covered[chunk] = true;
        }
      }
      EXPECT_EQ(std::count(covered.begin(), covered.end(), false), 0);
      const Result<InferRanges> report =
          ranges.Learn(Measure(layer, *tasks, [](std::uint64_t) { return 1e-6; }));
      ASSERT_OK(report);
      EXPECT_EQ(report->cuts.size(), workers + 1);
      EXPECT_TRUE(std::is_sorted(report->cuts.begin(), report->cuts.end()));
      EXPECT_EQ(report->measured.size(), workers);
      double open_rows = 0;
      for (const WorkerTask& task : *tasks)
        open_rows +=
            static_cast<double>(std::min(layer.rows, task.end * layer.pass.output_chunk_rows) -
                                task.begin * layer.pass.output_chunk_rows);
      EXPECT_NEAR(std::accumulate(report->measured.begin(), report->measured.end(), 0.0),
                  1e-6 * open_rows, 1e-9);
    }
  }
}

/// Returns the number of chunks of each range.
std::vector<std::uint64_t> SizesOf(const std::vector<WorkerTask>& tasks) {
  std::vector<std::uint64_t> sizes;
  for (const WorkerTask& task : tasks) sizes.push_back(task.end - task.begin);
  return sizes;
}

TEST_F(WorkerRangesTest, AModelDecidesWhatIsEqual) {
  const LayerToCut layer = Layer(128);
  const std::vector<bool> done = NoneDone(layer);
  constexpr std::uint32_t kWorkers = 4;
  using Ranges = InferWorkers::Ranges;
  const auto cut = [&](const Path& file, Ranges by = Ranges::kLearned) {
    WorkerRanges ranges({.costs = file, .ranges = by}, {});
    const Result<std::vector<WorkerTask>> tasks = ranges.Cut(layer, done, kWorkers, control_);
    EXPECT_OK(tasks);
    const Result<InferRanges> report = ranges.Learn({});
    EXPECT_OK(report);
    return std::pair(SizesOf(*tasks), *report);
  };
  const auto [by_edges, unlearned] = cut({});
  EXPECT_FALSE(unlearned.learned);
  EXPECT_EQ(unlearned.because, "equal edges: no costs are known for such a layer");
  EXPECT_FALSE(unlearned.predicted_gain.has_value());
  EXPECT_TRUE(unlearned.predicted.empty());
  const Path file = WriteCosts(layer, [](const FeatureVector& x) { return 1e-6 * x[0]; });
  const auto [by_rows, learned] = cut(file);
  EXPECT_TRUE(learned.learned);
  EXPECT_TRUE(learned.because.starts_with("predicted cost: ")) << learned.because;
  EXPECT_LE(*std::max_element(by_rows.begin(), by_rows.end()), done.size() / kWorkers + 1);
  // Ranges with equal edges have different numbers of rows, because most edges end at a few rows.
  EXPECT_GT(*std::max_element(by_edges.begin(), by_edges.end()), done.size() / kWorkers + 3);
  for (const double seconds : learned.predicted)
    EXPECT_NEAR(seconds, 1e-6 * static_cast<double>(layer.rows) / kWorkers, 2e-6 * 128);
  // Learn({}) received no costs, as if all workers had died, so nothing was measured.
  EXPECT_EQ(learned.measured, std::vector<double>(kWorkers, -1));
  // If the caller asks for equal edges, the costs are still predicted.
  const auto [asked, not_learned] = cut(file, Ranges::kEdges);
  EXPECT_FALSE(not_learned.learned);
  EXPECT_EQ(not_learned.because, "equal edges, as requested");
  EXPECT_EQ(not_learned.predicted_gain, learned.predicted_gain);
  EXPECT_EQ(asked, by_edges);
  EXPECT_EQ(not_learned.predicted.size(), kWorkers);
}

TEST_F(WorkerRangesTest, APredictedGainBelowTheModelsErrorIsNone) {
  const LayerToCut layer = Layer(128);
  const std::vector<bool> done = NoneDone(layer);
  WorkerRanges unlearned({}, {});
  // Most edges end at few rows, so one of two ranges with equal edges has nearly all rows.
  constexpr std::uint32_t kWorkers = 2;
  const Result<std::vector<WorkerTask>> by_edges = unlearned.Cut(layer, done, kWorkers, control_);
  ASSERT_OK(by_edges);
  int learned = 0;
  for (int round = 0; round < 40; ++round) {
    // In its second step of learning the model's error is `off`.
    const double off = round / 40.0;
    const FeatureVector x = {1};  // Every row costs the same, independent of its edges.
    CostModels models;
    CostModel& model = models[CostModelName(layer)];
    EXPECT_OK(model.Learn({x, x, x, x}, {1, 1, 1, 1}));
    EXPECT_OK(model.Learn({x, x, x, x}, {1 + off, 1 - off, 1 + off, 1 - off}));
    ASSERT_NEAR(*model.Error(), off, 1e-9);
    const Path file = folder_ / fmt::format("off-{}.json", round);
    ASSERT_OK(SaveCostModels(models, file));
    WorkerRanges ranges({.costs = file}, {});
    const Result<std::vector<WorkerTask>> tasks = ranges.Cut(layer, done, kWorkers, control_);
    ASSERT_OK(tasks);
    const Result<InferRanges> report = ranges.Learn({});
    ASSERT_OK(report);
    ASSERT_TRUE(report->predicted_gain && report->doubt);
    EXPECT_EQ(*report->doubt, *model.Error());
    EXPECT_EQ(report->learned, *report->predicted_gain > off) << *report->predicted_gain;
    EXPECT_EQ(SizesOf(*tasks) == SizesOf(*by_edges), !report->learned);
    EXPECT_EQ(report->because,
              fmt::format("{}: the predicted gain of {:.1f} % is {} the model's error of {:.1f} %",
                          report->learned ? "predicted cost" : "equal edges",
                          100 * *report->predicted_gain, report->learned ? "above" : "not above",
                          100 * off));
    learned += report->learned ? 1 : 0;
  }
  EXPECT_GT(learned, 0);
  EXPECT_LT(learned, 40);
}

TEST_F(WorkerRangesTest, LearnsFromOneLayerForTheNextAndForTheNextJob) {
  const Path file = folder_ / "costs.json";
  const LayerToCut layer = Layer(128);
  const std::vector<bool> done = NoneDone(layer);
  const auto cost_of = [&](std::uint64_t row) { return 1e-6 + 1e-8 * degrees_[row]; };
  {
    WorkerRanges ranges({.costs = file}, {});
    for (int turn = 0; turn < 2; ++turn) {
      const Result<std::vector<WorkerTask>> tasks = ranges.Cut(layer, done, 3, control_);
      ASSERT_OK(tasks);
      const Result<InferRanges> report = ranges.Learn(Measure(layer, *tasks, cost_of));
      ASSERT_OK(report);
      EXPECT_EQ(report->error.has_value(), turn == 1);
      EXPECT_EQ(report->weights.size(), kRangeFeatures);
      if (turn == 0) continue;
      EXPECT_LT(*report->error, 0.02);
      EXPECT_GT(*report->r2, 0.99);
      ASSERT_EQ(report->predicted.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(report->predicted[i], report->measured[i], 0.05 * report->measured[i]);
    }
  }
  WorkerRanges next({.costs = file}, {});
  ASSERT_EQ(next.models().size(), 1u);
  EXPECT_EQ(next.models().begin()->first, "gcn/128x32/in");
  EXPECT_EQ(next.models().begin()->second.measurements(), 2 * done.size());
  ASSERT_OK(next.Cut(layer, done, 3, control_));
  const Result<InferRanges> report = next.Learn({});
  ASSERT_OK(report);
  EXPECT_EQ(report->predicted.size(), 3u);
}

TEST_F(WorkerRangesTest, WalksNoListsWhereNothingIsGainedByIt) {
  const LayerToCut last = Layer(128, /*alike=*/0);
  WorkerRanges ranges(InferWorkers(), {});
  const Result<std::vector<WorkerTask>> tasks = ranges.Cut(last, NoneDone(last), 3, control_);
  ASSERT_OK(tasks);
  const Result<InferRanges> report =
      ranges.Learn(Measure(last, *tasks, [](std::uint64_t) { return 1e-6; }));
  ASSERT_OK(report);
  EXPECT_TRUE(report->weights.empty());
  EXPECT_TRUE(ranges.models().empty());
}

TEST_F(WorkerRangesTest, RefusesCostsOfWhatItDidNotCut) {
  const LayerToCut layer = Layer(128);
  const std::vector<bool> done = NoneDone(layer);
  const std::vector<std::vector<InferLayerReport::Cost>> wrong = {{{0, layer.rows + 1, 1}},
                                                                  {{128, 128, 1}},
                                                                  {{0, 128, -1}},
                                                                  {{0, layer.rows, 1}},
                                                                  {{0, 100, 1}}};
  for (const auto& costs : wrong) {
    WorkerRanges ranges(InferWorkers(), {});
    ASSERT_OK(ranges.Cut(layer, done, 3, control_));
    EXPECT_STATUS(ranges.Learn(costs), kIoError);
  }
}

TEST_F(WorkerRangesTest, SaysThatAFileIsDamagedAndGoesOn) {
  const Path file = folder_ / "costs.json";
  std::ofstream(file) << "{}";
  std::vector<std::string> notes;
  const LayerToCut layer = Layer(128);
  WorkerRanges ranges({.costs = file}, [&](std::string_view note) { notes.emplace_back(note); });
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes.front().find(file.string()), std::string::npos);
  const Result<std::vector<WorkerTask>> tasks = ranges.Cut(layer, NoneDone(layer), 3, control_);
  ASSERT_OK(tasks);
  ASSERT_OK(ranges.Learn(Measure(layer, *tasks, [](std::uint64_t) { return 1e-6; })));
  EXPECT_OK(LoadCostModels(FileSystem::Posix(), file));
}

TEST_F(WorkerRangesTest, FeaturesOfAPassAreThoseOfTheListsInItsOrder) {
  const GraphSnapshot& graph = *open_.graph;
  std::vector<std::uint32_t> shuffled(graph.vertex_count());
  std::iota(shuffled.begin(), shuffled.end(), 0U);
  std::shuffle(shuffled.begin(), shuffled.end(), random_);
  const RowOrder order(shuffled, graph.vertex_count());
  for (const RowOrder* const targets : {static_cast<const RowOrder*>(nullptr), &order}) {
    BlockPlannerOptions pass;
    pass.target_order = targets;
    pass.degrees = degrees_;
    const RangeFeatureOptions options{
        .columns = 24, .near_bytes = 24 * 4 * 100, .far_bytes = 24 * 4 * 900, .step = 64};
    const Result<RangeFeatures> features =
        FeaturesOfPass(graph, pass, graph.vertex_count(), options, control_);
    ASSERT_OK(features);
    RangeFeatures expected({.columns = 24, .near_bytes = 24 * 4 * 100, .far_bytes = 24 * 4 * 900});
    for (std::uint64_t place = 0; place < graph.vertex_count(); ++place) {
      const Row row = targets == nullptr ? static_cast<Row>(place) : targets->RowAt(place);
      const auto list = graph.Neighbors(*graph.VertexAt(row), Direction::kIn);
      ASSERT_OK(list);
      std::vector<std::uint32_t> rows;
      for (const Neighbor& neighbor : *list)
        rows.push_back(static_cast<std::uint32_t>(*graph.RowOf(neighbor.vertex)));
      std::sort(rows.begin(), rows.end());
      expected.Add(rows);
    }
    ASSERT_EQ(features->vertices(), expected.vertices());
    for (int round = 0; round < 50; ++round) {
      const std::uint64_t begin = random_() % (graph.vertex_count() / 64) * 64;
      const std::uint64_t most = (graph.vertex_count() - begin + 63) / 64;
      const std::uint64_t end = std::min(graph.vertex_count(), begin + (1 + random_() % most) * 64);
      EXPECT_EQ(features->Of(begin, end), expected.Of(begin, end));
    }
  }
}

}  // namespace
}  // namespace rhizome
