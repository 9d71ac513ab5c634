#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "cache/job/safetensors.h"
#include "gnn/full_graph/full_testing.h"
#include "gnn/gnn_testing.h"
#include "index/base/edge_list.h"
#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_graph.h"
#include "rhizome/ingest.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/sampler.h"
#include "rhizome/train_options.h"
#include "rhizome/write_batch.h"
#include "testing/test_store.h"

// Tests of full-graph training. Its gradients are compared with a single libtorch program over the
// whole graph, and with difference quotients of the loss when dropout is on. Further tests check
// that it learns a planted partition, reads the delta of a store, and refuses what it cannot do.

namespace rhizome {
namespace {

using testing::FullTraining;
using testing::MakePlanted;
using testing::NetworkCase;
using testing::PlantedGraph;
using testing::PlantedOptions;
using testing::TempDir;
using testing::TestSeed;
using testing::Train;
using testing::WriteStore;

TensorFile ReadModel(const Path& path) {
  Result<LoadedTensorFile> file = LoadSafetensors(FileSystem::Posix(), path);
  EXPECT_OK(file);
  return file ? std::move(file->file) : TensorFile();
}

/// Returns a directed graph with parallel edges, self-loops, a hub, vertices without in-edges and
/// vertices without out-edges. `everyone`: all vertices are in the training set.
PlantedGraph DirectedGraph(std::uint64_t seed, bool everyone) {
  PlantedOptions options;
  options.vertices = 900;
  options.dim = 12;
  options.seed = seed;
  PlantedGraph graph = MakePlanted(options);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 300; ++i) {
    const auto source = static_cast<VertexId>(random() % 900);
    graph.edges.src.push_back(source);
    graph.edges.dst.push_back(i < 200 ? 7 : source);  // a hub, then self-loops
  }
  EdgeList kept;
  for (std::size_t e = 0; e < graph.edges.src.size(); ++e) {
    if (graph.edges.dst[e] % 10 == 3 || graph.edges.src[e] % 10 == 4) continue;
    for (int copies = e % 11 == 0 ? 2 : 1; copies > 0; --copies) {
      kept.src.push_back(graph.edges.src[e]);
      kept.dst.push_back(graph.edges.dst[e]);
    }
  }
  graph.edges = kept;
  if (everyone) std::fill(graph.split.begin(), graph.split.end(), std::uint8_t{0});
  return graph;
}

Status WriteDirected(const Path& path, const PlantedGraph& graph,
                     Direction directions = Direction::kBoth) {
  GraphInput input;
  input.vertex_count = graph.labels.size();
  input.edges = graph.edges;
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  const std::uint64_t dim = graph.features.size() / graph.labels.size();
  input.arrays.push_back(testing::MakeArray("feat", dim, DataType::kFloat32, graph.features));
  input.arrays.back().chunk_rows = 128;
  input.arrays.push_back(testing::MakeArray("label", 1, DataType::kInt64, graph.labels));
  input.arrays.push_back(testing::MakeArray("split", 1, DataType::kUint8, graph.split));
  BuildOptions build;
  build.partition.partitions = 3;
  build.directions = directions;
  const JobControl control;
  return testing::AsStatus(
      IngestGraph(FileSystem::Posix(), path, std::move(input), build, StoreId(), control));
}

/// Makes a training take one step of plain gradient descent at rate 1, so that each weight changes
/// by its gradient.
void StepDown(TrainOptions& options) {
  options.learning.optimizer.kind = OptimizerKind::kSgd;
  options.learning.optimizer.momentum = 0;
  options.learning.learning_rate = 1;
}

std::vector<NetworkCase> FullGraphNetworks() {
  using Options = std::map<std::string, std::string>;
  std::vector<NetworkCase> networks;
  const auto add = [&](const std::string& name, const std::string& kind, std::uint32_t layers,
                       const Options& options) {
    networks.push_back(
        {name, {.kind = kind, .layers = layers, .hidden = 16, .dropout = 0, .options = options}});
  };
  add("Gcn", "gcn", 2, {});
  add("GcnNarrow", "gcn", 3, {{"head", "none"}});  // 12 > 4 columns: it multiplies first
  add("Sage", "sage", 3, {});
  add("SageGcn", "sage", 2, {{"aggregator", "gcn"}, {"l2-normalize", "true"}});
  add("Gin", "gin", 2, {});
  add("GinBatch", "gin", 2, {{"norm", "batch"}, {"residual", "true"}});
  add("CommNet", "commnet", 2, {});
  add("CommNetSkip", "commnet", 3, {{"skip", "true"}});
  add("DeepResidualGcn", "gcn", 4, {{"residual", "true"}});
  add("SageMax", "sage", 3, {{"aggregator", "max"}});
  add("SagePool", "sage", 2, {{"aggregator", "pool"}, {"residual", "true"}});
  add("PoolBatch", "sage", 2, {{"aggregator", "pool"}, {"norm", "batch"}});
  add("Gat", "gat", 2, {{"heads", "2"}});
  add("GatWithoutLoops", "gat", 3, {{"no-self-loops", "true"}, {"residual", "true"}});
  add("GatMean", "gat", 2, {{"head", "none"}, {"out-heads", "3"}, {"norm", "layer"}});
  add("GatV2", "gatv2", 2, {{"heads", "2"}});
  add("GatV2WithoutLoops", "gatv2", 3, {{"no-self-loops", "true"}, {"residual", "true"}});
  add("GatV2Mean", "gatv2", 2, {{"head", "none"}, {"out-heads", "3"}, {"norm", "batch"}});
  add("ResidualBatch", "gcn", 3, {{"residual", "true"}, {"norm", "batch"}});
  add("ResidualLayer", "sage", 2, {{"residual", "true"}, {"norm", "layer"}, {"activation", "elu"}});
  add("FeedForward", "sage", 2,
      {{"feed-forward", "true"}, {"norm", "layer"}, {"activation", "gelu"}});
  add("JumpConcat", "sage", 3, {{"jump", "concat"}, {"head", "mlp"}});
  add("JumpMax", "gcn", 3, {{"jump", "max"}, {"activation", "tanh"}});
  return networks;
}

class FullGraphNetworkTest : public ::testing::TestWithParam<NetworkCase> {};

INSTANTIATE_TEST_SUITE_P(Each, FullGraphNetworkTest, ::testing::ValuesIn(FullGraphNetworks()),
                         [](const auto& info) { return info.param.name; });

/// Returns the options of a full-graph step, or of a step on one minibatch of all vertices with all
/// neighbours.
std::variant<MinibatchOptions, FullGraphOptions> ModeOf(bool full, std::uint32_t layers) {
  if (full) return FullGraphOptions();
  return MinibatchOptions{.batch_size = 900,
                          .fanouts = std::vector<std::int64_t>(layers, kAllNeighbors)};
}

/// Compares the gradients of full-graph training, for a model initialised from `seed`, with the
/// gradients of a single minibatch of all vertices with all neighbours (the whole graph in one
/// libtorch program). Returns a description of the weights that differ, empty if there are none.
std::string OtherGradients(const Path& store, const ModelSpec& model, std::uint64_t seed,
                           const Path& folder) {
  TrainOptions options = FullTraining(store, model);
  options.learning.seed = seed;
  options.learning.learning_rate = 1e-9;
  options.job.out = folder / "before.safetensors";
  EXPECT_OK(Train(options));
  const TensorFile before = ReadModel(options.job.out);
  StepDown(options);
  options.learning.init = options.job.out;
  options.job.out = folder / "after.safetensors";
  const auto step = [&](bool full) {
    options.mode = ModeOf(full, model.layers);
    const Result<TrainReport> report = Train(options);
    EXPECT_OK(report);
    return std::pair(report ? report->epochs.front().loss : 0, ReadModel(options.job.out));
  };
  const auto [loss, whole] = step(false);
  const auto [full_loss, full] = step(true);
  EXPECT_NEAR(full_loss, loss, 1e-4 * std::abs(loss));
  double largest = 0;
  for (const auto& [name, start] : before.tensors)
    for (std::size_t i = 0; i < start.values.size(); ++i)
      largest =
          std::max<double>(largest, std::abs(start.values[i] - whole.tensors.at(name).values[i]));
  EXPECT_GT(largest, 0);
  std::string others;
  for (const auto& [name, start] : before.tensors) {
    const std::vector<float>& a = whole.tensors.at(name).values;
    const std::vector<float>& b = full.tensors.at(name).values;
    double most = 0, error = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      most = std::max<double>(most, std::abs(start.values[i] - a[i]));
      error = std::max<double>(error, std::abs(a[i] - b[i]));
    }
    // A weight with a tiny gradient, or one that is only rounding noise (a bias before a batch
    // norm), is measured against the largest gradient of all weights.
    if (error > 1e-4 * std::max(most, 1e-2 * largest))
      others += fmt::format("{}: {} of {}\n", name, error, most);
  }
  return others;
}

bool HasCorners(const ModelSpec& model) {
  const auto option = [&model](const std::string& name, const std::string& otherwise) {
    const auto found = model.options.find(name);
    return found == model.options.end() ? otherwise : found->second;
  };
  return option("activation", "relu") == "relu" || option("jump", "none") == "max";
}

TEST_P(FullGraphNetworkTest, GradientsAndLossesAreThoseOfOneProgram) {
  const std::uint64_t seed = TestSeed();
  const TempDir folder;
  ASSERT_OK(WriteDirected(folder / "s", DirectedGraph(seed, /*everyone=*/true)));
  std::string others = OtherGradients(folder / "s", GetParam().spec, seed, folder.path());
  // The gradient is discontinuous where the input of a ReLU is almost zero, or where two neighbours
  // tie for a maximum: rounding then decides which side is taken. Other initial weights avoid such
  // a point.
  for (std::uint64_t other = 1; HasCorners(GetParam().spec) && !others.empty() && other <= 2;
       ++other)
    others = OtherGradients(folder / "s", GetParam().spec, seed + other, folder.path());
  EXPECT_EQ(others, "") << "seed " << seed;
}

// With dropout and batch-norm statistics: along the direction of the gradient the loss changes by
// the amount that the gradient predicts, as long as the same units are dropped.
TEST_P(FullGraphNetworkTest, GradientsAreThoseOfDifferencesWithDropout) {
  const std::uint64_t seed = TestSeed();
  const TempDir folder;
  ASSERT_OK(WriteDirected(folder / "s", DirectedGraph(seed, /*everyone=*/true)));
  TrainOptions options = FullTraining(folder / "s", GetParam().spec);
  options.model.dropout = 0.3;
  // If all attention weights of a row are dropped, the row is zero, where a layer norm is not
  // differentiable.
  if (options.model.kind.starts_with("gat") && !options.model.options.contains("norm"))
    options.model.options["attention-dropout"] = "0.4";
  // ReLUs are not differentiable at zero, which would disturb the difference quotients.
  if (!options.model.options.contains("activation")) options.model.options["activation"] = "tanh";
  options.learning.seed = seed;
  StepDown(options);
  options.learning.learning_rate = 1e-9;
  options.job.out = folder / "start.safetensors";
  ASSERT_OK(Train(options));
  options.learning.learning_rate = 1;
  options.learning.init = options.job.out;
  options.job.out = folder / "after.safetensors";
  ASSERT_OK(Train(options));
  const TensorFile start = ReadModel(folder / "start.safetensors");
  const TensorFile after = ReadModel(options.job.out);
  double squares = 0;
  TensorFile direction = start;
  for (auto& [name, tensor] : direction.tensors) {
    const bool statistic = name.ends_with(".mean") || name.ends_with(".variance");
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const float gradient = start.tensors.at(name).values[i] - after.tensors.at(name).values[i];
      tensor.values[i] = statistic ? 0 : gradient;
      if (!statistic) squares += static_cast<double>(gradient) * gradient;
    }
  }
  const double length = std::sqrt(squares);
  ASSERT_GT(length, 1e-3);
  constexpr double kStep = 4e-3;
  const auto loss_at = [&](double step) {
    TensorFile moved = start;
    for (auto& [name, tensor] : moved.tensors) {
      for (std::size_t i = 0; i < tensor.values.size(); ++i) {
        tensor.values[i] +=
            static_cast<float>(step / length) * direction.tensors.at(name).values[i];
      }
    }
    TrainOptions there = options;
    there.learning.init = folder / "moved.safetensors";
    EXPECT_OK(SaveSafetensors(there.learning.init, moved));
    there.job.out = folder / "unused.safetensors";
    const Result<TrainReport> report = Train(there);
    EXPECT_OK(report);
    return report ? report->epochs.front().loss : 0;
  };
  const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
  EXPECT_NEAR(slope, length, 0.02 * length) << "seed " << seed;
}

TEST(FullGraphTest, LearnsAPlantedPartitionAndItsModelFileInfers) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = FullTraining(folder / "s", {.kind = "sage", .layers = 2, .hidden = 32});
  options.learning.epochs = 60;
  options.learning.test = true;
  options.learning.patience = 50;
  options.learning.schedule.kind = ScheduleKind::kCosine;
  options.job.out = folder / "m.safetensors";
  const Result<TrainReport> report = Train(options);
  ASSERT_OK(report);
  EXPECT_GE(*report->test_accuracy, 0.85);
  EXPECT_FALSE(std::filesystem::exists(folder / "s" / "scratch" / "train"));
  InferOptions infer;
  infer.store = options.store;
  infer.model_file = options.job.out;
  infer.out = "emb";
  infer.data.labels = "label";
  infer.data.split = "split";
  const JobControl control;
  const Result<InferReport> inferred = rhizome_gnn_entry_v1()->Infer(infer, control);
  ASSERT_OK(inferred);
  EXPECT_NEAR(*inferred->test_accuracy, *report->test_accuracy, 0.01);
}

// Changes since the last compaction are read as one more partition.
TEST(FullGraphTest, TakesWhatWasWrittenSinceTheGeneration) {
  const TempDir folder;
  const PlantedGraph graph = DirectedGraph(11, /*everyone=*/true);
  ASSERT_OK(WriteDirected(folder / "s", graph));
  {
    const auto store = Store::Open(FileSystem::Posix(), folder / "s", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto live = Graph::Open(**store);
    ASSERT_OK(live);
    WriteBatch batch;
    std::mt19937_64 random(3);
    const auto id = [](std::uint64_t v) { return ExternalId(static_cast<std::int64_t>(v)); };
    for (int i = 0; i < 80; ++i) batch.PutEdge(id(random() % 900), id(random() % 900));
    ASSERT_OK((*live)->Write(batch));
  }
  TrainOptions options =
      FullTraining(folder / "s", {.kind = "gcn", .layers = 2, .hidden = 16, .dropout = 0});
  StepDown(options);
  options.learning.epochs = 3;
  options.learning.learning_rate = 0.5;
  const Result<TrainReport> full = Train(options);
  ASSERT_OK(full);
  options.mode = ModeOf(/*full=*/false, /*layers=*/2);
  const Result<TrainReport> whole = Train(options);
  ASSERT_OK(whole);
  for (std::size_t e = 0; e < 3; ++e)
    EXPECT_NEAR(full->epochs[e].loss, whole->epochs[e].loss, 1e-4);
}

Status Refusal(const TrainOptions& options) {
  const Result<TrainReport> report = Train(options);
  return report ? Status::Ok() : report.error();
}

MATCHER_P(RefusedWith, text, "") {
  *result_listener << arg.ToString();
  return arg.code() == StatusCode::kInvalidArgument &&
         arg.message().find(text) != std::string::npos;
}

TEST(FullGraphTest, SaysWhatItCannotDoAndWhatToDo) {
  const TempDir folder;
  const PlantedGraph graph = DirectedGraph(2, /*everyone=*/false);
  ASSERT_OK(WriteDirected(folder / "s", graph));
  ASSERT_OK(WriteDirected(folder / "one", graph, Direction::kIn));
  const TrainOptions good = FullTraining(folder / "s", {.kind = "gcn", .layers = 2, .hidden = 16});
  TrainOptions options = good;
  options.store = folder / "one";
  EXPECT_THAT(Refusal(options), RefusedWith("`directions=both`"));
  options = good;
  options.data.sampling.weighted = true;
  EXPECT_THAT(Refusal(options), RefusedWith("all neighbours"));
  options = good;
  options.model.options["input-dropout"] = "0.5";
  EXPECT_THAT(Refusal(options), RefusedWith("input-dropout"));
  options = good;
  options.model.options = {{"feed-forward", "true"}, {"norm", "batch"}};
  EXPECT_THAT(Refusal(options), RefusedWith("`norm=layer`"));
  PlantedGraph unlabelled = graph;
  for (std::uint8_t& split : unlabelled.split) split = split == 0 ? 255 : split;
  ASSERT_OK(WriteDirected(folder / "none", unlabelled));
  options = good;
  options.store = folder / "none";
  EXPECT_THAT(Refusal(options), RefusedWith("no vertex into the training set"));
}

TEST(FullGraphTest, ABatchNormNeedsMoreThanOneVertex) {
  const TempDir folder;
  PlantedGraph graph;
  graph.labels = {0};
  graph.split = {0};
  graph.features = {1, 2};
  ASSERT_OK(WriteDirected(folder / "s", graph));
  EXPECT_THAT(Refusal(FullTraining(folder / "s", {.kind = "gin", .layers = 1, .hidden = 4})),
              RefusedWith("more than one vertex"));
}

}  // namespace
}  // namespace rhizome
