#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <random>

#include "cache/feed/minibatch_sampler.h"
#include "cache/job/safetensors.h"
#include "gnn/gnn_testing.h"
#include "gnn/models/model.h"
#include "gnn/relations_testing.h"
#include "index/links/link_file.h"
#include "rhizome/link_scores.h"
#include "testing/testing.h"

extern "C" const rhizome::LinkScores* rhizome_gnn_scores_v1();

// Encoders that learn from links: every registered kind learns; the model is the same for any
// threads and memory, and after a stop; the published rows and the model file serve evaluations;
// the test at the end equals one; the edges of a minibatch do not leak into its scores; refused
// options.

namespace rhizome {
namespace {

using testing::NetworkCase;

constexpr std::uint64_t kLinkVertices = 600;

class LinkTrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(testing::WriteRelationStore(
        store_, {.vertices = kLinkVertices, .dim = 16, .degree = 6, .inside = .95, .hint = .8}));
    WriteValid(valid_, 600);
  }

  /// Writes edges between vertices of the same class. The store does not have most of them.
  void WriteValid(const Path& path, int edges) {
    std::ofstream file(path);
    for (int i = 0; i < edges; ++i) {
      const std::uint64_t v = rng_() % kLinkVertices;
      const std::uint64_t u = rng_() % kLinkVertices;
      file << v << '\t' << u - u % 4 + v % 4 << "\tcites\n";
    }
  }

  TrainOptions Options() const {
    TrainOptions options = testing::SmallTraining(store_);
    options.learning.task = Task::kLink;
    options.learning.epochs = 3;
    options.minibatch()->batch_size = 256;
    options.link.dim = 16;
    options.link.negatives = 64;
    options.link.valid = valid_;
    options.job.out = dir_.path() / "model.safetensors";
    return options;
  }

  static Result<TrainReport> Train(const TrainOptions& options,
                                   const JobControl& control = JobControl()) {
    return rhizome_gnn_entry_v1()->Train(options, control);
  }

  /// Trains and returns the bytes of the model file.
  Result<TensorFile> TrainedAs(TrainOptions options, const std::string& name) const {
    options.job.out = dir_.path() / (name + ".safetensors");
    options.job.name = name;
    RHIZOME_RETURN_IF_ERROR(testing::AsStatus(Train(options)));
    RHIZOME_ASSIGN_OR_RETURN(auto loaded, LoadSafetensors(FileSystem::Posix(), options.job.out));
    return std::move(loaded.file);
  }

  testing::TempDir dir_;
  const Path store_ = dir_.path() / "store";
  const Path valid_ = dir_.path() / "valid.tsv";
  const std::uint64_t seed_ = testing::TestSeed();
  std::mt19937_64 rng_{seed_};
};

class LinkNetworkTest : public LinkTrainTest, public ::testing::WithParamInterface<NetworkCase> {};

TEST_P(LinkNetworkTest, Learns) {
  SCOPED_TRACE(seed_);
  TrainOptions options = Options();
  options.model.kind = GetParam().spec.kind;
  options.learning.epochs = 8;
  // Full matrices for 8 relations learn this small graph by heart.
  if (options.model.kind == "rgcn") options.model.options["bases"] = "1";
  const Result<TrainReport> report = Train(options);
  ASSERT_OK(report);
  ASSERT_EQ(report->epochs.size(), 8U);
  EXPECT_EQ(report->task, Task::kLink);
  EXPECT_EQ(report->monitor, Metric::kMrrSampled);
  EXPECT_LT(report->epochs.back().loss, report->epochs.front().loss);
  // A random order of about 340 candidates has a mean of 1 / rank of .019.
  double best = 0;
  for (const EpochReport& epoch : report->epochs)
    best = std::max(best, epoch.valid_metric.value_or(0));
  RecordProperty("mrr_sampled", std::to_string(best));
  EXPECT_GT(best, .03);
}

INSTANTIATE_TEST_SUITE_P(Registered, LinkNetworkTest,
                         ::testing::ValuesIn(testing::RegisteredNetworks()),
                         [](const auto& info) { return info.param.name; });

TEST_F(LinkTrainTest, TheModelIsTheSameForAnyThreadsAndMemoryAndAfterAStop) {
  SCOPED_TRACE(seed_);
  for (const std::string decoder : {"distmult", "mlp"}) {
    TrainOptions options = Options();
    options.link.decoder = decoder;
    options.link.negatives = decoder == "mlp" ? 2 : 64;
    options.model.kind = "rgcn";
    options.model.dropout = .2;
    const auto whole = TrainedAs(options, decoder + "-whole");
    ASSERT_OK(whole);
    TrainOptions other = options;
    other.resources.threads = 2;
    other.resources.memory_bytes = std::uint64_t{1} << 30;
    other.minibatch()->feed.superbatch = 3;
    other.minibatch()->feed.cache_bytes = 64 * 100;
    const auto limited = TrainedAs(other, decoder + "-limited");
    ASSERT_OK(limited);
    EXPECT_TRUE(EncodeSafetensors(*whole) == EncodeSafetensors(*limited)) << decoder;

    TrainOptions stopped = options;
    stopped.job.name = decoder + "-stopped";
    stopped.job.checkpoint_every = 1;
    int seen = 0;
    JobControl* self = nullptr;
    JobControl control([&](const JobControl::Progress& progress) {
      if (progress.phase == "train" && ++seen == 14) self->Cancel();
    });
    self = &control;
    EXPECT_STATUS(Train(stopped, control), kInterrupted);
    stopped.job.resume = true;
    const auto resumed = TrainedAs(stopped, decoder + "-stopped");
    ASSERT_OK(resumed);
    EXPECT_TRUE(EncodeSafetensors(*whole) == EncodeSafetensors(*resumed)) << decoder;
  }
}

TEST_F(LinkTrainTest, TheRowsAndTheModelFileServeEvaluations) {
  SCOPED_TRACE(seed_);
  for (const std::string decoder : {"complex", "mlp"}) {
    TrainOptions options = Options();
    options.learning.epochs = 6;
    options.link.decoder = decoder;
    options.link.negatives = 0;
    options.link.reciprocal = decoder == "complex";
    options.link.out_array = "rows_" + decoder;
    ASSERT_OK(Train(options));
    const auto store = Store::Open(FileSystem::Posix(), store_, Store::Mode::kRead);
    ASSERT_OK(store);
    const auto graph = Graph::Open(std::as_const(**store), {});
    ASSERT_OK(graph);
    const auto array = (*store)->OpenArray(options.link.out_array);
    ASSERT_OK(array);
    EXPECT_EQ((*array)->entry().dim, 16U);
    EXPECT_EQ((*array)->entry().rows, kLinkVertices);
    LinkEvaluationEdges edges;
    bool read = false;
    edges.test = [&](std::span<VertexPair> out) -> Result<std::size_t> {
      if (std::exchange(read, true)) return 0;
      for (std::size_t i = 0; i < 20; ++i) {
        const std::uint64_t u = rng_() % kLinkVertices;
        out[i] = {static_cast<VertexId>(4 * i), static_cast<VertexId>(u - u % 4), 0};
      }
      return 20;
    };
    const auto found = rhizome_gnn_scores_v1()->Evaluate(
        **graph,
        {.array = options.link.out_array, .decoder = options.job.out, .allow_leaked = true}, edges,
        JobControl());
    ASSERT_OK(found);
    EXPECT_EQ(found->all.ranks, 40U);
    // The true end is one of 150 vertices of its class; a random order has a mean rank of 300.
    EXPECT_LT(found->all.realistic.mean_rank, 220) << decoder;
  }
}

TEST_F(LinkTrainTest, TheTestAtTheEndEqualsAnEvaluation) {
  SCOPED_TRACE(seed_);
  const Path test = dir_.path() / "test.tsv";
  WriteValid(test, 300);
  for (const std::string decoder : {"distmult", "mlp"}) {
    TrainOptions options = Options();
    options.link.decoder = decoder;
    options.link.negatives = 0;
    options.link.test_edges = test;
    const auto leaked = Train(options);
    ASSERT_FALSE(leaked);
    EXPECT_NE(leaked.error().message().find("`allow_leaked`"), std::string::npos)
        << leaked.error().message();
    options.link.allow_leaked = true;
    // Without an array, the rows are removed afterwards.
    const auto removed = Train(options);
    ASSERT_OK(removed);
    const auto before = Store::Open(FileSystem::Posix(), store_, Store::Mode::kRead);
    ASSERT_OK(before);
    const std::size_t arrays = (*before)->manifest().arrays.size();
    options.link.out_array = "rows_" + decoder;
    const auto kept = Train(options);
    ASSERT_OK(kept);
    const auto store = Store::Open(FileSystem::Posix(), store_, Store::Mode::kRead);
    ASSERT_OK(store);
    // The rows, and the table of their checksums.
    EXPECT_GT((*store)->manifest().arrays.size(), arrays);
    const auto graph = Graph::Open(std::as_const(**store), {});
    ASSERT_OK(graph);
    const LinkFiles files(**graph, {});
    LinkEvaluationEdges edges;
    edges.test = files.Open(test.string()).value();
    edges.known.push_back(files.Open(valid_.string()).value());
    const auto found = rhizome_gnn_scores_v1()->Evaluate(
        **graph,
        {.array = options.link.out_array, .decoder = options.job.out, .allow_leaked = true}, edges,
        JobControl());
    ASSERT_OK(found);
    for (const auto& report : {*removed, *kept}) {
      ASSERT_TRUE(report.link_test.has_value()) << decoder;
      EXPECT_EQ(report.link_test->all.realistic.mrr, found->all.realistic.mrr) << decoder;
      EXPECT_EQ(report.link_test->all.realistic.mean_rank, found->all.realistic.mean_rank);
      EXPECT_EQ(report.link_test->leaked_edges, found->leaked_edges);
    }
  }
}

TEST_F(LinkTrainTest, FilteredNegativesChangeTheLossAndNothingElseIsDrawn) {
  SCOPED_TRACE(seed_);
  for (const std::string decoder : {"distmult", "mlp"}) {
    TrainOptions options = Options();
    options.learning.epochs = 1;
    options.link.decoder = decoder;
    options.link.negatives = decoder == "mlp" ? 3 : 64;
    const auto all = Train(options);
    ASSERT_OK(all);
    options.link.filter_negatives = true;
    const auto filtered = Train(options);
    ASSERT_OK(filtered);
    EXPECT_NE(all->epochs[0].loss, filtered->epochs[0].loss) << decoder;
    // The first step has the same negatives, and some do not count.
    EXPECT_NEAR(all->epochs[0].loss, filtered->epochs[0].loss, .5) << decoder;
  }
}

/// Trains on a random graph, whose edges say nothing about each other, with or without the edges of
/// a minibatch in its message passing.
void TrainOnRandomGraph(const Path& store, const Path& out, bool keep_seed_edges) {
  TrainOptions options = testing::SmallTraining(store);
  options.learning.task = Task::kLink;
  options.learning.epochs = 20;
  options.learning.learning_rate = .02;
  options.minibatch()->batch_size = 200;
  options.minibatch()->fanouts = {-1, -1};
  options.model.kind = "gcn";
  options.model.hidden = 32;
  options.link.dim = 32;
  options.link.decoder = "dot";
  options.link.negatives = 256;
  options.link.negative_sources = "uniform";
  options.link.keep_seed_edges = keep_seed_edges;
  options.job.out = out;
  EXPECT_OK(rhizome_gnn_entry_v1()->Train(options, JobControl()));
}

/// Returns the area under the ROC curve of scores of edges of the graph against random pairs, as
/// the training sees them.
double AucOfEdges(const GraphSnapshot& graph, const Path& file, bool keep_seed_edges,
                  std::mt19937_64& random) {
  Model model = Model::FromFile(LoadSafetensors(FileSystem::Posix(), file)->file).value();
  MinibatchSamplerOptions options{.sampler = {.fanouts = {-1, -1}}};
  model.FitSampling(options);
  const MinibatchSampler sampler = MinibatchSampler::Create(graph, options, nullptr).value();
  const std::vector<float> features = testing::ReadArray(graph.store().path(), "feat").value();
  std::vector<float> edges, pairs;
  for (std::uint64_t batch = 0; batch < 10; ++batch) {
    SeedBatch seeds{.key = batch, .vertices = {}};
    std::map<VertexId, std::uint32_t> local;
    const auto number = [&](VertexId v) {
      const auto [at, is_new] = local.try_emplace(v, local.size());
      if (is_new) seeds.vertices.push_back(v);
      return at->second;
    };
    const auto any = [&] { return static_cast<VertexId>(random() % graph.vertex_count()); };
    while (seeds.pairs.size() < 100) {
      const VertexId v = any();
      const auto neighbors = graph.Neighbors(v, Direction::kIn).value();
      if (neighbors.empty()) continue;
      const std::uint32_t to = number(v);
      seeds.pairs.push_back({number(neighbors[random() % neighbors.size()].vertex), to, 0});
    }
    while (seeds.pairs.size() < 200) {
      const std::uint32_t from = number(any());
      seeds.pairs.push_back({from, number(any()), 0});
    }
    seeds.leave_out = !keep_seed_edges;
    Minibatch minibatch = sampler.Sample(seeds).value();
    minibatch.features = FeatureRows::Own(DataType::kFloat32, minibatch.rows.size(), 16).value();
    for (std::size_t i = 0; i < minibatch.rows.size(); ++i)
      std::copy_n(features.begin() + 16 * minibatch.rows[i], 16,
                  minibatch.features.own_floats().begin() + static_cast<std::ptrdiff_t>(16 * i));
    const torch::NoGradGuard guard;
    const torch::Tensor rows = model.Scores(minibatch, model.MakeGraphs(minibatch), {});
    for (std::size_t i = 0; i < minibatch.pairs.size(); ++i) {
      const auto& [src, dst, type] = minibatch.pairs[i];
      (i < 100 ? edges : pairs).push_back((rows[src] * rows[dst]).sum().item<float>());
    }
  }
  double above = 0;
  for (const float edge : edges)
    for (const float pair : pairs) above += edge > pair ? 1 : (edge == pair ? .5 : 0);
  return above / static_cast<double>(edges.size() * pairs.size());
}

TEST_F(LinkTrainTest, TheEdgesOfAMinibatchDoNotLeakIntoItsScores) {
  SCOPED_TRACE(seed_);
  const Path random = dir_.path() / "random";
  ASSERT_OK(testing::WriteStore(
      random, {.vertices = 2000, .dim = 16, .degree = 2, .inside = 0, .hint = 0, .seed = seed_}));
  const auto store = Store::Open(FileSystem::Posix(), random, Store::Mode::kRead);
  ASSERT_OK(store);
  const auto graph = Graph::Open(std::as_const(**store), {});
  ASSERT_OK(graph);
  std::array<double, 2> auc = {};
  for (const bool keep : {false, true}) {
    const Path out = dir_.path() / (keep ? "kept.safetensors" : "left.safetensors");
    TrainOnRandomGraph(random, out, keep);
    auc[keep ? 1 : 0] = AucOfEdges(**graph, out, keep, rng_);
  }
  RecordProperty("auc_without", std::to_string(auc[0]));
  EXPECT_NEAR(auc[0], .5, .08);
  EXPECT_GT(auc[1], .9);
}

TEST_F(LinkTrainTest, BadOptionsAreRefusedByName) {
  const auto refused = [&](const auto& change, const std::string& name) {
    TrainOptions options = Options();
    change(options);
    const auto report = Train(options);
    ASSERT_FALSE(report) << name;
    EXPECT_NE(report.error().message().find(name), std::string::npos) << report.error().message();
  };
  refused([](TrainOptions& o) { o.mode = FullGraphOptions(); }, "`full_graph`");
  refused([](TrainOptions& o) { o.minibatch()->device.emplace(); }, "`device=cuda`");
  refused([](TrainOptions& o) { o.learning.train_metrics = true; }, "training set");
  refused([](TrainOptions& o) { o.learning.loss.label_smoothing = .1; }, "label_smoothing");
  refused([](TrainOptions& o) { o.data.labels = "other"; }, "labels");
  refused([](TrainOptions& o) { o.learning.monitor = Metric::kAccuracy; }, "`monitor=accuracy`");
  refused([](TrainOptions& o) { o.model.options["head"] = "mlp"; }, "head=mlp");
  refused([](TrainOptions& o) { o.link.decoder = "cosine"; }, "cosine");
  refused([](TrainOptions& o) { o.link.negative_sources = "nowhere"; }, "`negative_sources`");
  refused([](TrainOptions& o) { o.link.valid = "missing.tsv"; }, "missing.tsv");
  refused(
      [](TrainOptions& o) {
        o.link.decoder = "complex";
        o.link.dim = 15;
      },
      "`dim`");
  refused(
      [](TrainOptions& o) {
        o.link.decoder = "mlp";
        o.link.n3 = .1;
      },
      "`n3`");
  refused(
      [](TrainOptions& o) {
        o.link.valid = Path();
        o.learning.patience = 2;
      },
      "`valid`");
  refused(
      [](TrainOptions& o) {
        o.job.out = Path();
        o.link.out_array = "rows";
      },
      "`out_array`");
  refused([](TrainOptions& o) { o.link.out_array = "feat"; }, "feat");
  refused([](TrainOptions& o) { o.learning.task = Task::kMulticlass; }, "link.");
}

}  // namespace
}  // namespace rhizome
