#include "gnn/models/inputs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "cache/job/compute_threads.h"
#include "gnn/models/model.h"
#include "gnn/ops/torch_threads.h"
#include "rhizome/loader.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::int64_t kHidden = 20;

ModelShape TypedShape(const std::string& activation) {
  return {.spec = {.kind = "sage",
                   .layers = 2,
                   .hidden = kHidden,
                   .dropout = 0,
                   .options = {{"input-activation", activation}}},
          .inputs = kHidden,
          .classes = 3,
          .vertex_types = {"a", "b", "c", "d"},
          .typed_inputs = {
              {.array = "x", .dim = 5}, {.array = "x", .dim = 5}, {.array = "y", .dim = 9}, {}}};
}

/// The types of the graph, in another order than the model's.
const std::vector<std::string> kGraphTypes = {"c", "a", "d", "b"};

FeatureRows RandomRows(std::size_t rows, std::size_t dim, std::mt19937_64& random) {
  auto made = FeatureRows::Own(DataType::kFloat32, rows, dim);
  EXPECT_OK(made);
  std::normal_distribution<float> normal;
  for (float& value : made->own_floats()) value = normal(random);
  return *std::move(made);
}

/// A minibatch of vertices of random types, with an input for each array.
Minibatch RandomMinibatch(std::size_t vertices, std::mt19937_64& random) {
  Minibatch minibatch;
  minibatch.seed_count = 7;
  minibatch.hop_offsets = {0, 7, vertices};
  MinibatchInput x{.array = "x"}, y{.array = "y"};
  for (std::uint32_t v = 0; v < vertices; ++v) {
    minibatch.rows.push_back(static_cast<Row>(v));
    const auto type = static_cast<TypeId>(random() % kGraphTypes.size());
    minibatch.vertex_types.push_back(type);
    if (kGraphTypes[type] == "a" || kGraphTypes[type] == "b") x.vertices.push_back(v);
    if (kGraphTypes[type] == "c") y.vertices.push_back(v);
  }
  x.features = RandomRows(x.vertices.size(), 5, random);
  y.features = RandomRows(y.vertices.size(), 9, random);
  minibatch.inputs.push_back(std::move(y));
  minibatch.inputs.push_back(std::move(x));
  return minibatch;
}

Model TypedModel(const std::string& activation) {
  Result<Model> model = Model::Create(TypedShape(activation), 3);
  EXPECT_OK(model);
  EXPECT_OK(model->SetTypes(kGraphTypes));
  return *std::move(model);
}

/// The weights by name, as leaves in double.
std::map<std::string, torch::Tensor> DoubleWeights(const Model& model) {
  std::map<std::string, torch::Tensor> weights;
  model.inputs()->VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    weights[spec.name] = tensor.detach().to(torch::kDouble).clone().set_requires_grad(true);
  });
  return weights;
}

/// The input layer vertex by vertex.
torch::Tensor Reference(const Minibatch& minibatch, const std::string& activation,
                        const std::map<std::string, torch::Tensor>& weights) {
  std::vector<torch::Tensor> rows(minibatch.rows.size());
  for (std::size_t v = 0; v < rows.size(); ++v) {
    const std::string name = "inputs." + kGraphTypes[minibatch.vertex_types[v]];
    rows[v] = weights.at(name + ".bias");
    for (const MinibatchInput& input : minibatch.inputs) {
      const auto at = std::find(input.vertices.begin(), input.vertices.end(), v);
      if (at == input.vertices.end()) continue;
      const auto values =
          input.features.floats(static_cast<std::size_t>(at - input.vertices.begin()));
      const torch::Tensor x =
          torch::tensor(std::vector<double>(values.begin(), values.end()), torch::kDouble);
      rows[v] = rows[v] + torch::mv(weights.at(name + ".weight"), x);
    }
  }
  const torch::Tensor sums = torch::stack(rows);
  return activation == "relu" ? torch::relu(sums) : torch::tanh(sums);
}

class InputLayerTest : public ::testing::TestWithParam<std::string> {};

TEST_P(InputLayerTest, RowsAndGradientsAreThoseOfADenseLayer) {
  std::mt19937_64 random(testing::TestSeed());
  const Model model = TypedModel(GetParam());
  const Minibatch minibatch = RandomMinibatch(1500, random);
  const torch::Tensor made = model.FirstRows(minibatch, {}, {}).table;
  auto weights = DoubleWeights(model);
  const torch::Tensor expected = Reference(minibatch, GetParam(), weights);
  ASSERT_EQ(made.sizes(), expected.sizes());
  EXPECT_LT((made.to(torch::kDouble) - expected).abs().max().item<double>(), 1e-5);
  const torch::Tensor factors = torch::randn({1500, kHidden}, torch::kDouble);
  (expected * factors).sum().backward();
  (made * factors.to(torch::kFloat)).sum().backward();
  model.inputs()->VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    const torch::Tensor ours = tensor.grad().to(torch::kDouble);
    const torch::Tensor theirs = weights.at(spec.name).grad();
    EXPECT_LT((ours - theirs).abs().max().item<double>(),
              1e-4 * (1 + theirs.abs().max().item<double>()))
        << spec.name;
  });
}

TEST_P(InputLayerTest, BitsDoNotDependOnThreadsNorOnOtherRows) {
  std::mt19937_64 random(testing::TestSeed());
  const Model model = TypedModel(GetParam());
  const InputLayer& inputs = *model.inputs();
  const Minibatch minibatch = RandomMinibatch(900, random);
  std::vector<torch::Tensor> made, gradients;
  for (const std::uint32_t threads : {1, 3}) {
    SetTorchThreads(threads);
    made.push_back(model.FirstRows(minibatch, {}, {}).table);
    made.back().pow(2).sum().backward();
    for (const torch::Tensor& parameter : model.Parameters()) {
      if (!parameter.grad().defined()) continue;
      gradients.push_back(parameter.grad().clone());
      parameter.mutable_grad().reset();
    }
  }
  SetTorchThreads(1);
  EXPECT_TRUE(torch::equal(made[0], made[1]));
  ASSERT_EQ(gradients.size(), 14u);
  for (std::size_t i = 0; i < 7; ++i)
    EXPECT_TRUE(torch::equal(gradients[i], gradients[i + 7])) << i;
  // Half of the rows alone, without gradients.
  inputs.Freeze();
  RowsByType rows = inputs.RowsOf(minibatch);
  for (RowsByType::OfType& type : rows.types) {
    RowsByType::OfType half{.table = type.table};
    for (std::size_t i = 0; i < type.target.size(); ++i) {
      if (type.target[i] % 2 == 1) continue;
      if (type.table.defined()) half.place.push_back(type.place[i]);
      half.target.push_back(type.target[i] / 2);
    }
    type = std::move(half);
  }
  rows.rows = 450;
  torch::Tensor alone = torch::zeros({450, kHidden});
  inputs.Compute(std::move(rows), alone.data_ptr<float>());
  EXPECT_TRUE(torch::equal(alone, made[0].slice(0, 0, 900, 2)));
}

INSTANTIATE_TEST_SUITE_P(Activations, InputLayerTest, ::testing::Values("tanh", "relu"));

// Only of tanh, whose quotients of differences are smooth.
TEST(TypedInputsTest, GradientsWithDropoutAreThoseOfTheDroppedFeatures) {
  std::mt19937_64 random(testing::TestSeed());
  const Model model = TypedModel("tanh");
  const InputLayer& inputs = *model.inputs();
  const Minibatch minibatch = RandomMinibatch(600, random);
  const std::uint64_t seed = 9;
  const auto sum = [&] {
    return inputs.Forward(inputs.RowsOf(minibatch), 0.4, {&seed}).to(torch::kDouble).sum();
  };
  EXPECT_FALSE(torch::equal(inputs.Forward(inputs.RowsOf(minibatch), 0.4, {&seed}),
                            inputs.Forward(inputs.RowsOf(minibatch), 0, {&seed})));
  EXPECT_TRUE(torch::equal(inputs.Forward(inputs.RowsOf(minibatch), 0.4, {}),
                           inputs.Forward(inputs.RowsOf(minibatch), 0, {})));
  sum().backward();
  const torch::NoGradGuard guard;
  inputs.VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    torch::Tensor flat = tensor.view(-1);
    for (std::int64_t i = 0; i < flat.numel(); i += 17) {
      const float before = flat[i].item<float>();
      const float step = 2e-3F;
      flat[i] = before + step;
      const double above = sum().item<double>();
      flat[i] = before - step;
      const double below = sum().item<double>();
      flat[i] = before;
      const double expected = (above - below) / (2 * double{step});
      EXPECT_NEAR(tensor.grad().view(-1)[i].item<double>(), expected,
                  0.02 * (10 + std::abs(expected)))
          << spec.name << " " << i;
    }
  });
}

TEST(TypedInputsTest, OneArrayOfAllTypesHasWeightsByType) {
  std::mt19937_64 random(testing::TestSeed());
  ModelShape shape = TypedShape("tanh");
  for (TypedInput& input : shape.typed_inputs) input = {.array = "x", .dim = 5};
  const auto model = Model::Create(shape, 3);
  ASSERT_OK(model);
  Minibatch minibatch;
  for (Row row = 0; row < 8; ++row) {
    minibatch.rows.push_back(row);
    minibatch.vertex_types.push_back(static_cast<TypeId>(row % 4));
  }
  minibatch.features = RandomRows(8, 5, random);
  std::copy_n(minibatch.features.own_floats().begin(), 5,
              minibatch.features.own_floats().begin() + 5);
  const torch::Tensor made = model->FirstRows(minibatch, {}, {}).table;
  EXPECT_FALSE(torch::equal(made[0], made[1]));  // equal features of different types
  EXPECT_EQ(made.size(0), 8);
}

TEST(TypedInputsTest, ModelFilesKeepTheWeightsOfTypes) {
  const Model model = TypedModel("relu");
  const TensorFile file = model.ToFile();
  EXPECT_TRUE(file.tensors.contains("inputs.c.weight"));
  EXPECT_TRUE(file.tensors.contains("inputs.d.bias"));
  EXPECT_FALSE(file.tensors.contains("inputs.d.weight"));
  EXPECT_EQ(file.tensors.at("inputs.c.weight").shape, (std::vector<std::int64_t>{kHidden, 9}));
  const auto again = Model::FromFile(file);
  ASSERT_OK(again);
  EXPECT_EQ(EncodeSafetensors(again->ToFile()), EncodeSafetensors(file));
}

TEST(TypedInputsTest, TypesThatTheModelDoesNotHaveAreNamed) {
  Model model = TypedModel("tanh");
  EXPECT_OK(model.SetTypes({"d", "a"}));
  const Status status = model.SetTypes({"a", "later", "b"});
  EXPECT_STATUS(status, kUnsupported);
  EXPECT_NE(status.message().find("later"), std::string::npos);
}

}  // namespace
}  // namespace rhizome
