#include "gnn/train/learned_rows.h"

#include <torch/torch.h>

#include <algorithm>
#include <fstream>

#include "cache/job/safetensors.h"
#include "gnn/models/model.h"
#include "gnn/typed_testing.h"
#include "testing/testing.h"

// Rows of vertex types that are learned with a model: their gradients against libtorch's autograd;
// the same model and the same published rows for any memory, threads and stops; inference with the
// published arrays; a graph without any features; refused options.

namespace rhizome {
namespace {

using testing::TempDir;

class LearnedRowsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(testing::WriteTypedStore(Store())); }

  Path Store() const { return dir_.path() / "store"; }

  /// Copies the store, so that a training can publish its arrays.
  Path CopyOf(const std::string& name) const {
    const Path copy = dir_.path() / name;
    std::filesystem::copy(Store(), copy, std::filesystem::copy_options::recursive);
    return copy;
  }

  /// Sites and authors learn their rows; authors would have an array.
  TrainOptions Options(const Path& store) const {
    TrainOptions options = testing::TypedTraining(store);
    options.data.inputs[0].array = "learned:6";
    options.data.inputs[1].array = "learned:10";
    options.job.out = dir_.path() / "model.safetensors";
    return options;
  }

  static Result<TrainReport> Train(const TrainOptions& options,
                                   const JobControl& control = JobControl()) {
    return rhizome_gnn_entry_v1()->Train(options, control);
  }

  struct Outcome {
    std::vector<std::byte> model;
    std::vector<float> sites, authors;
    bool operator==(const Outcome&) const = default;
  };

  /// Returns the model file, and the published rows with 0 where there is none.
  Result<Outcome> OutcomeOf(const TrainOptions& options) const {
    RHIZOME_ASSIGN_OR_RETURN(const auto loaded,
                             LoadSafetensors(FileSystem::Posix(), options.job.out));
    Outcome outcome{.model = EncodeSafetensors(loaded.file), .sites = {}, .authors = {}};
    RHIZOME_ASSIGN_OR_RETURN(outcome.sites, testing::ReadArray(options.store, "learned_site"));
    RHIZOME_ASSIGN_OR_RETURN(outcome.authors, testing::ReadArray(options.store, "learned_author"));
    for (auto* rows : {&outcome.sites, &outcome.authors})
      for (float& x : *rows) x = std::isnan(x) ? 0 : x;
    return outcome;
  }

  const TempDir dir_;
};

TEST_F(LearnedRowsTest, GradientsOfRowsEqualAutograd) {
  for (const std::string activation : {"tanh", "relu"}) {
    ModelShape shape{.spec = {.kind = "sage", .hidden = 20}, .inputs = 20, .classes = 3};
    shape.spec.options[kInputActivation] = activation;
    shape.vertex_types = {"a", "b"};
    shape.typed_inputs = {{.array = "learned_a", .dim = 7}, {.array = {}, .dim = 0}};
    const Model model = Model::Create(shape, 3).value();
    Minibatch minibatch;
    std::vector<LearnedTable> learned(1);
    for (std::uint32_t v = 0; v < 300; ++v) {
      minibatch.rows.push_back(v);
      minibatch.vertex_types.push_back(v % 3 == 1 ? 1 : 0);
      if (v % 3 != 1) learned[0].vertices.push_back(v);
    }
    minibatch.hop_offsets = {0, 300};
    minibatch.seed_count = 300;
    const auto count = static_cast<std::int64_t>(learned[0].vertices.size());
    learned[0].rows = torch::randn({count, 7});
    const torch::Tensor rows = model.FirstRows(minibatch, {}, {}, &learned).table;
    const torch::Tensor weights = torch::randn({300, 20});
    (rows * weights).sum().backward();

    const torch::Tensor exact = learned[0].rows.to(torch::kDouble).clone().requires_grad_(true);
    const TensorFile file = model.ToFile();
    const auto tensor = [&](const char* name) {
      const NamedTensor& one = file.tensors.at(name);
      return torch::tensor(one.values).view(one.shape).to(torch::kDouble);
    };
    torch::Tensor out = exact.mm(tensor("inputs.a.weight").t()) + tensor("inputs.a.bias");
    out = activation == "relu" ? out.relu() : out.tanh();
    std::vector<std::int64_t> at(learned[0].vertices.begin(), learned[0].vertices.end());
    (out * weights.to(torch::kDouble).index_select(0, torch::tensor(at))).sum().backward();
    ASSERT_TRUE(learned[0].gradient.defined());
    EXPECT_LT((learned[0].gradient.to(torch::kDouble) - exact.grad()).abs().max().item<double>(),
              1e-4)
        << activation;
  }
}

TEST_F(LearnedRowsTest, TheResultIsTheSameForAnyMemoryAndThreadsAndAfterAStop) {
  TrainOptions options = Options(CopyOf("whole"));
  options.model.dropout = .1;
  options.model.options["input-dropout"] = "0.2";
  const auto report = Train(options);
  ASSERT_OK(report);
  ASSERT_TRUE(report->learned.has_value());
  EXPECT_GT(report->learned->rows, 100U);
  EXPECT_LT(report->epochs.back().loss, report->epochs.front().loss);
  const auto whole = OutcomeOf(options);
  ASSERT_OK(whole);

  TrainOptions other = options;
  other.store = CopyOf("limited");
  other.resources.threads = 2;
  other.resources.memory_bytes = std::uint64_t{1} << 30;
  other.minibatch()->feed.superbatch = 2;
  ASSERT_OK(Train(other));
  const auto limited = OutcomeOf(other);
  ASSERT_OK(limited);
  EXPECT_TRUE(*whole == *limited);

  TrainOptions stopped = options;
  stopped.store = CopyOf("stopped");
  stopped.job.checkpoint_every = 2;
  JobControl* self = nullptr;
  std::uint64_t seen = 0;
  JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase == "train" && ++seen == 7) self->Cancel();
  });
  self = &control;
  EXPECT_STATUS(Train(stopped, control), kInterrupted);
  stopped.job.resume = true;
  const auto resumed_report = Train(stopped);
  ASSERT_OK(resumed_report);
  EXPECT_GT(resumed_report->resumed_minibatches, 0U);
  const auto resumed = OutcomeOf(stopped);
  ASSERT_OK(resumed);
  EXPECT_TRUE(*whole == *resumed);
}

TEST_F(LearnedRowsTest, RowsMoveAndInferenceReadsThem) {
  const Path store = CopyOf("inferred");
  TrainOptions options = Options(store);
  ASSERT_OK(Train(options));
  InferOptions infer;
  infer.store = store;
  infer.model_file = options.job.out;
  infer.out = "embedding";
  ASSERT_OK(rhizome_gnn_entry_v1()->Infer(infer, JobControl()));
  const auto rows = testing::ReadArray(store, "embedding");
  ASSERT_OK(rows);
  EXPECT_TRUE(std::ranges::all_of(*rows, [](float x) { return std::isfinite(x); }));
  const auto opened = Store::Open(FileSystem::Posix(), store, Store::Mode::kRead);
  ASSERT_OK(opened);
  const ArrayEntry* const sites = opened->get()->manifest().FindArray("learned_site");
  ASSERT_NE(sites, nullptr);
  EXPECT_EQ(sites->dim, 6U);
  EXPECT_STATUS(Train(options), kAlreadyExists);
  options.job.resume = true;  // nothing is left to resume
  EXPECT_STATUS(Train(options), kAlreadyExists);
}

TEST_F(LearnedRowsTest, AGraphWithoutFeaturesLearnsAllRows) {
  const Path path = dir_.path() / "bare";
  testing::PlantedOptions planted{.vertices = 400, .dim = 4};
  ASSERT_OK(testing::WriteStore(path, planted));
  TrainOptions options = testing::SmallTraining(path);
  options.data.inputs = {{.vertex_type = "vertex", .array = "learned:16"}};
  options.learning.epochs = 12;
  options.learning.learning_rate = .03;
  const auto report = Train(options);
  ASSERT_OK(report);
  EXPECT_EQ(report->learned->rows, 400U);
  EXPECT_LT(report->epochs.back().loss, .9 * report->epochs.front().loss);
  EXPECT_EQ(testing::ReadArray(path, "learned_vertex")->size(), 400U * 16);
}

TEST_F(LearnedRowsTest, BadOptionsAreRefusedByName) {
  const Path store = CopyOf("refused");
  const auto refused = [&](const auto& change, const std::string& name) {
    TrainOptions options = Options(store);
    change(options);
    const auto report = Train(options);
    ASSERT_FALSE(report) << name;
    EXPECT_NE(report.error().message().find(name), std::string::npos) << report.error().message();
  };
  refused([](TrainOptions& o) { o.data.inputs[0].array = "learned:0"; }, "learned:0");
  refused([](TrainOptions& o) { o.data.inputs[0].array = "learned:many"; }, "learned:many");
  refused([](TrainOptions& o) { o.learning.seeds = 2; }, "`seeds`");
  refused([](TrainOptions& o) { o.learning.patience = 2; }, "`patience`");
  refused([](TrainOptions& o) { o.learning.optimizer.kind = OptimizerKind::kAdamW; }, "adamw");
  refused([](TrainOptions& o) { o.mode = FullGraphOptions(); }, "full_graph");
  InferOptions infer;
  infer.store = store;
  infer.data.inputs = {{.vertex_type = "site", .array = "learned:6"}};
  infer.out = "embedding";
  TrainOptions plain = testing::TypedTraining(store);
  plain.job.out = dir_.path() / "plain.safetensors";
  ASSERT_OK(Train(plain));
  infer.model_file = plain.job.out;
  EXPECT_STATUS(rhizome_gnn_entry_v1()->Infer(infer, JobControl()), kUnsupported);
}

}  // namespace
}  // namespace rhizome
