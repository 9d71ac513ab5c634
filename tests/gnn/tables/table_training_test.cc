#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>

#include "cache/job/safetensors.h"
#include "gnn/gnn_testing.h"
#include "gnn/relations_testing.h"
#include "gnn/tables/valid_links.h"
#include "index/links/link_file.h"
#include "rhizome/link_scores.h"
#include "testing/testing.h"

extern "C" const rhizome::LinkScores* rhizome_gnn_scores_v1();

// Training of a table in the library: ranks of the validation set after each epoch against counting
// over the published rows; the same for any memory, threads and after a stop; negatives that are
// known edges; the test at the end against an evaluation.

namespace rhizome {
namespace {

constexpr std::uint64_t kTableVertices = 900;
constexpr std::uint64_t kTableDim = 16;

class TableTrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(testing::WriteRelationStore(store_,
                                          {.vertices = kTableVertices,
                                           .dim = 4,
                                           .degree = 6,
                                           .inside = .95,
                                           .hint = .8,
                                           .partitions = 3},
                                          {"paper", "author"}));
    WriteEdges(valid_, 700);
    WriteEdges(test_, 200);
  }

  /// Writes edges that the store does not have, most of them between vertices of the same class.
  void WriteEdges(const Path& path, int edges) {
    const auto store = Store::Open(FileSystem::Posix(), store_, Store::Mode::kRead);
    ASSERT_OK(store);
    const auto graph = Graph::Open(std::as_const(**store), {});
    ASSERT_OK(graph);
    std::ofstream file(path);
    while (edges > 0) {
      const auto v = static_cast<VertexId>(rng_() % kTableVertices);
      const auto u = static_cast<VertexId>(rng_() % kTableVertices);
      const VertexId w = u - u % 4 + v % 4;
      const auto neighbors = (*graph)->NeighborsOfType(v, Direction::kOut, 0);
      ASSERT_OK(neighbors);
      if (std::any_of(neighbors->begin(), neighbors->end(),
                      [&](const Neighbor& neighbor) { return neighbor.vertex == w; }))
        continue;
      file << v << '\t' << w << "\tcites\n";
      --edges;
    }
  }

  TrainOptions Options(const std::string& name) const {
    TrainOptions options;
    options.store = store_;
    options.model.kind = kTableModel;
    options.learning.task = Task::kLink;
    options.learning.epochs = 3;
    options.learning.learning_rate = .3;
    options.learning.seed = seed_;
    options.learning.optimizer.kind = OptimizerKind::kAdagrad;
    options.minibatch()->batch_size = 128;
    options.link.dim = kTableDim;
    options.link.negatives = 32;
    options.link.valid = valid_;
    options.link.out_array = name;
    options.job.name = name;
    options.job.out = dir_.path() / (name + ".safetensors");
    options.resources.threads = 1;
    return options;
  }

  static Result<TrainReport> Train(const TrainOptions& options,
                                   const JobControl& control = JobControl()) {
    return rhizome_gnn_entry_v1()->Train(options, control);
  }

  std::vector<float> RowsOf(const std::string& name) const {
    return testing::ReadArray(store_, name).value();
  }

  static std::vector<double> MrrOf(const TrainReport& report) {
    std::vector<double> all;
    for (const TableModelEpoch& epoch : report.table->epochs)
      all.push_back(epoch.mrr_sampled.value_or(-1));
    return all;
  }

  /// Ranks the validation set by counting, with the published rows and the decoder's file.
  double CountedMrr(const TrainOptions& options) const;

  testing::TempDir dir_;
  const Path store_ = dir_.path() / "store";
  const Path valid_ = dir_.path() / "valid.tsv";
  const Path test_ = dir_.path() / "test.tsv";
  const std::uint64_t seed_ = testing::TestSeed();
  std::mt19937_64 rng_{seed_};
};

double TableTrainingTest::CountedMrr(const TrainOptions& options) const {
  const auto store = Store::Open(FileSystem::Posix(), store_, Store::Mode::kRead).value();
  const std::shared_ptr<const GraphSnapshot> graph = Graph::Open(std::as_const(*store), {}).value();
  const ValidLinks valid = ReadValidLinks(options, graph).value();
  const std::vector<float> rows = RowsOf(options.link.out_array);
  const TensorFile file = LoadSafetensors(FileSystem::Posix(), options.job.out)->file;
  const std::vector<float>& relations = file.tensors.at("relations").values;
  const std::uint64_t types = graph->edge_types().size();
  const auto score = [&](VertexId src, VertexId dst, std::uint64_t relation, bool inverse) {
    if (inverse) std::swap(src, dst);
    if (inverse) relation += types;
    const auto at = [&](VertexId v) {
      return rows.data() + static_cast<std::size_t>(*graph->RowOf(v)) * kTableDim;
    };
    double sum = 0;
    for (std::size_t d = 0, half = kTableDim / 2; d < half; ++d) {
      const double a = at(src)[d], b = at(src)[half + d], c = at(dst)[d], e = at(dst)[half + d];
      const double u = relations[relation * kTableDim + d];
      const double v = relations[relation * kTableDim + half + d];
      sum += a * u * c + a * v * e + b * u * e - b * v * c;
    }
    return sum;
  };
  double sum = 0;
  for (const VertexPair& edge : valid.edges) {
    for (const bool open_src : {false, true}) {
      const VertexId truth = open_src ? edge.src : edge.dst;
      const auto of = [&](VertexId v) {
        return open_src ? score(v, edge.dst, edge.type, options.link.reciprocal)
                        : score(edge.src, v, edge.type, false);
      };
      double rank = 1;
      for (const ValidCandidates& candidates : valid.candidates) {
        if (candidates.type != graph->TypeOf(truth).value()) continue;
        for (const VertexId v : candidates.vertices)
          if (v != truth) rank += of(v) > of(truth) ? 1 : (of(v) == of(truth) ? .5 : 0);
      }
      sum += 1 / rank;
    }
  }
  return sum / static_cast<double>(2 * valid.edges.size());
}

TEST_F(TableTrainingTest, RanksOfTheValidationSetEqualCounting) {
  SCOPED_TRACE(seed_);
  for (const bool reciprocal : {false, true}) {
    TrainOptions options = Options(reciprocal ? "both" : "one");
    options.link.reciprocal = reciprocal;
    const auto report = Train(options);
    ASSERT_OK(report);
    const std::vector<double> mrr = MrrOf(*report);
    ASSERT_EQ(mrr.size(), 3U);
    // At random: about .0204; with the classes known, .06.
    EXPECT_GT(mrr.back(), .025);
    // A rank changes by one where float and double round two scores differently.
    EXPECT_NEAR(mrr.back(), CountedMrr(options), 1e-3);
  }
}

TEST_F(TableTrainingTest, RanksDoNotDependOnMemoryThreadsOrAStop) {
  SCOPED_TRACE(seed_);
  TrainOptions options = Options("whole");
  options.link.filter_negatives = true;
  const auto whole = Train(options);
  ASSERT_OK(whole);
  EXPECT_GE(std::ranges::min(MrrOf(*whole)), 0);

  // The least memory is what the error names.
  TrainOptions limited = Options("limited");
  limited.link.filter_negatives = true;
  limited.resources.threads = 2;
  limited.resources.memory_bytes = 1;
  const auto refused = Train(limited);
  ASSERT_FALSE(refused);
  const std::string& message = refused.error().message();
  const std::string needs = "needs at least ";
  ASSERT_NE(message.find(needs), std::string::npos) << message;
  limited.resources.memory_bytes =
      std::stoull(message.substr(message.find(needs) + needs.size())) + (4U << 20);
  const auto little = Train(limited);
  ASSERT_OK(little);
  EXPECT_EQ(MrrOf(*little), MrrOf(*whole));
  EXPECT_EQ(RowsOf("limited"), RowsOf("whole"));

  TrainOptions stopped = Options("stopped");
  stopped.link.filter_negatives = true;
  stopped.job.checkpoint_every = 5;
  int seen = 0;
  JobControl* self = nullptr;
  JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase == "valid" && ++seen == 2) self->Cancel();
  });
  self = &control;
  EXPECT_STATUS(Train(stopped, control), kInterrupted);
  stopped.job.resume = true;
  const auto resumed = Train(stopped);
  ASSERT_OK(resumed);
  EXPECT_EQ(MrrOf(*resumed), MrrOf(*whole));
  EXPECT_EQ(RowsOf("stopped"), RowsOf("whole"));
}

TEST_F(TableTrainingTest, TheValidationSetChangesNoRow) {
  SCOPED_TRACE(seed_);
  TrainOptions options = Options("with");
  options.learning.eval_every = 2;
  const auto with = Train(options);
  ASSERT_OK(with);
  // After the second epoch, and after the last one.
  const std::vector<double> mrr = MrrOf(*with);
  EXPECT_EQ(mrr[0], -1);
  EXPECT_GT(mrr[1], 0);
  EXPECT_GT(mrr[2], 0);
  options = Options("without");
  options.link.valid = Path();
  const auto without = Train(options);
  ASSERT_OK(without);
  EXPECT_EQ(RowsOf("with"), RowsOf("without"));
  for (std::size_t e = 0; e < 3; ++e)
    EXPECT_EQ(with->table->epochs[e].loss, without->table->epochs[e].loss);
  // The filter does change them.
  options = Options("filtered");
  options.link.filter_negatives = true;
  ASSERT_OK(Train(options));
  EXPECT_NE(RowsOf("filtered"), RowsOf("without"));
}

TEST_F(TableTrainingTest, TheTestAtTheEndEqualsAnEvaluation) {
  SCOPED_TRACE(seed_);
  TrainOptions options = Options("tested");
  options.link.test_edges = test_;
  const auto report = Train(options);
  ASSERT_OK(report);
  ASSERT_TRUE(report->link_test.has_value());
  EXPECT_EQ(report->link_test->edges, 200U);
  EXPECT_EQ(report->link_test->all.ranks, 400U);
  const auto store = Store::Open(FileSystem::Posix(), store_, Store::Mode::kRead);
  ASSERT_OK(store);
  const auto graph = Graph::Open(std::as_const(**store), {});
  ASSERT_OK(graph);
  const LinkFiles files(**graph, {});
  for (const bool filtered : {true, false}) {
    LinkEvaluationEdges edges;
    edges.test = files.Open(test_.string()).value();
    if (filtered) edges.known.push_back(files.Open(valid_.string()).value());
    const auto found = rhizome_gnn_scores_v1()->Evaluate(
        **graph, {.array = "tested", .decoder = options.job.out}, edges, JobControl());
    ASSERT_OK(found);
    EXPECT_EQ(found->all.realistic.mrr == report->link_test->all.realistic.mrr, filtered);
    EXPECT_EQ(found->all.realistic.mean_rank == report->link_test->all.realistic.mean_rank,
              filtered);
  }
}

TEST_F(TableTrainingTest, ManyNegativesAreAWarningUnlessTheyAreFiltered) {
  TrainOptions options = Options("warned");
  options.learning.epochs = 1;
  options.link.negatives = 600;
  std::vector<std::string> notes;
  options.job.note = [&](std::string_view note) { notes.emplace_back(note); };
  const auto report = Train(options);
  ASSERT_OK(report);
  ASSERT_EQ(report->warnings.size(), 2U);  // a sentence for each vertex type
  EXPECT_NE(report->warnings[0].find("`negatives=600`"), std::string::npos);
  EXPECT_NE(report->warnings[0].find("`filter_negatives`"), std::string::npos);
  EXPECT_EQ(notes, report->warnings);
  options = Options("silent");
  options.learning.epochs = 1;
  options.link.negatives = 600;
  options.link.filter_negatives = true;
  const auto silent = Train(options);
  ASSERT_OK(silent);
  EXPECT_TRUE(silent->warnings.empty());
}

TEST_F(TableTrainingTest, BadOptionsAreRefusedByName) {
  const auto refused = [&](const auto& change, const std::string& name) {
    TrainOptions options = Options("refused");
    change(options);
    const auto report = Train(options);
    ASSERT_FALSE(report) << name;
    EXPECT_NE(report.error().message().find(name), std::string::npos) << report.error().message();
  };
  refused([](TrainOptions& o) { o.link.valid = "missing.tsv"; }, "missing.tsv");
  refused([](TrainOptions& o) { o.link.test_edges = "missing.tsv"; }, "missing.tsv");
  refused([](TrainOptions& o) { o.link.allow_leaked = true; }, "`allow_leaked`");
  refused(
      [](TrainOptions& o) {
        o.link.valid = Path();
        o.learning.eval_every = 2;
      },
      "`eval_every`");
  refused(
      [&](TrainOptions& o) {
        o.link.test_edges = test_;
        o.link.out_array = std::string();
      },
      "`out_array`");
  refused(
      [&](TrainOptions& o) {
        o.link.test_edges = test_;
        o.job.out = Path();
      },
      "`out`");
  refused([](TrainOptions& o) { o.link.keep_seed_edges = true; }, "keep_seed_edges");
  refused([](TrainOptions& o) { o.learning.patience = 2; }, "patience");
}

}  // namespace
}  // namespace rhizome
