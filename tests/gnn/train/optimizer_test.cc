#include "gnn/train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "gnn/train/task_loss.h"
#include "testing/testing.h"

// Tests of optimisers and losses against formulas in double precision, and of saving and restoring
// an optimiser's state.

namespace rhizome {
namespace {

constexpr OptimizerKind kAllOptimizers[] = {OptimizerKind::kAdam, OptimizerKind::kAdamW,
                                            OptimizerKind::kSgd, OptimizerKind::kAdagrad};

Model MakeSmallModel() {
  ModelShape shape{.spec = {}, .inputs = 3, .classes = 2};
  shape.spec.hidden = 2;
  return *Model::Create(shape, 5);
}

/// Returns a loss whose gradient is c_i w_i + step for weight i, with a different c_i for each.
torch::Tensor LossOf(const Model& model, double step) {
  torch::Tensor loss = torch::zeros({});
  double c = 0.2;
  for (const torch::Tensor& weight : model.Parameters()) {
    loss = loss + (weight.square() * (c / 2) + weight * step).sum();
    c += 0.3;
  }
  return loss;
}

/// Reference optimiser in double precision: the weights and the state of each.
struct OptimizerInDouble {
  std::vector<std::vector<double>> weights, first, second;
  std::vector<bool> matrix, of_first_layer;

  explicit OptimizerInDouble(const Model& model) {
    const auto parameters = model.Parameters();
    const auto names = model.ParameterNames();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const torch::Tensor flat = parameters[i].detach().to(torch::kFloat64).flatten().contiguous();
      weights.emplace_back(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
      first.emplace_back(weights.back().size(), 0.0);
      second.emplace_back(weights.back().size(), 0.0);
      matrix.push_back(parameters[i].dim() == 2);
      of_first_layer.push_back(names[i].find("layers.0.") == 0);
    }
  }

  void Step(const LearningOptions& s, int t, double shift) {
    std::vector<std::vector<double>> gradients;
    double c = 0.2, norm = 0;
    for (std::size_t i = 0; i < weights.size(); ++i, c += 0.3) {
      gradients.emplace_back();
      for (const double w : weights[i]) gradients.back().push_back(c * w + shift);
      for (const double g : gradients.back()) norm += g * g;
    }
    norm = std::sqrt(norm);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const bool decays = matrix[i] && (!s.optimizer.decay_first_layer_only || of_first_layer[i]);
      const double decay = decays ? s.weight_decay : 0;
      for (std::size_t j = 0; j < weights[i].size(); ++j) {
        double g = gradients[i][j];
        if (s.optimizer.clip_norm > 0 && norm > s.optimizer.clip_norm)
          g *= s.optimizer.clip_norm / (norm + 1e-6);
        Move(s, t, decay, g, weights[i][j], first[i][j], second[i][j]);
      }
    }
  }

  static void Move(const LearningOptions& s, int t, double decay, double g, double& w, double& m,
                   double& v) {
    const double rate = s.learning_rate;
    if (s.optimizer.kind == OptimizerKind::kAdamW) w -= rate * decay * w;
    if (s.optimizer.kind != OptimizerKind::kAdamW) g += decay * w;
    if (s.optimizer.kind == OptimizerKind::kSgd) {
      m = t == 1 ? g : s.optimizer.momentum * m + g;
      w -= rate * m;
    } else if (s.optimizer.kind == OptimizerKind::kAdagrad) {
      m += g * g;
      w -= rate * g / (std::sqrt(m) + 1e-10);
    } else {
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.999, t));
      w -= rate * m_hat / (std::sqrt(v_hat) + 1e-8);
    }
  }
};

void ExpectWeights(const Model& model, const OptimizerInDouble& wanted) {
  const auto parameters = model.Parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const torch::Tensor flat = parameters[i].detach().flatten().contiguous();
    for (std::size_t j = 0; j < wanted.weights[i].size(); ++j)
      EXPECT_NEAR(flat.data_ptr<float>()[j], wanted.weights[i][j], 2e-5) << i << " " << j;
  }
}

// Includes weight decay: the reference decays no bias and, with `decay_first_layer_only`, only the
// first layer.
TEST(OptimizerTest, StepsAreThoseOfTheFormulas) {
  for (const OptimizerKind kind : kAllOptimizers) {
    for (const double decay : {0.0, 0.3}) {
      for (const bool first_layer_only : {false, true}) {
        for (const double clip : {0.0, 0.5}) {
          SCOPED_TRACE(::testing::Message() << static_cast<int>(kind) << " decay " << decay
                                            << " first " << first_layer_only << " clip " << clip);
          LearningOptions settings;
          settings.optimizer.kind = kind;
          settings.learning_rate = 0.02;
          settings.weight_decay = decay;
          settings.optimizer.decay_first_layer_only = first_layer_only;
          settings.optimizer.clip_norm = clip;
          Model model = MakeSmallModel();
          {
            const torch::NoGradGuard guard;  // biases start at zero, where decay has no effect
            for (torch::Tensor weight : model.Parameters()) weight.add_(0.5);
          }
          OptimizerInDouble wanted(model);
          Optimizer optimizer(model, settings);
          for (int t = 1; t <= 12; ++t) {
            settings.learning_rate = t < 6 ? 0.02 : 0.005;
            optimizer.SetLearningRate(settings.learning_rate);
            optimizer.Step(LossOf(model, 0.1 * t));
            wanted.Step(settings, t, 0.1 * t);
          }
          ExpectWeights(model, wanted);
        }
      }
    }
  }
}

TEST(OptimizerTest, ARestoredStateGoesOnToTheSameBits) {
  for (const OptimizerKind kind : kAllOptimizers) {
    SCOPED_TRACE(static_cast<int>(kind));
    LearningOptions settings;
    settings.optimizer.kind = kind;
    Model model = MakeSmallModel(), other = MakeSmallModel();
    Optimizer optimizer(model, settings);
    EXPECT_EQ(optimizer.CopyState().steps, 0);
    for (int t = 0; t < 3; ++t) optimizer.Step(LossOf(model, 0.1 * t));
    const LearnerState state = optimizer.CopyState();
    EXPECT_EQ(state.steps, 3);
    other.RestoreWeights(model.CopyWeights());
    Optimizer resumed(other, settings);
    ASSERT_OK(resumed.RestoreState(state));
    for (int t = 3; t < 6; ++t) {
      optimizer.Step(LossOf(model, 0.1 * t));
      resumed.Step(LossOf(other, 0.1 * t));
    }
    const auto a = model.CopyWeights(), b = other.CopyWeights();
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << i;
    // The state of another optimiser, or for other weights, is refused.
    settings.optimizer.kind =
        kind == OptimizerKind::kAdagrad ? OptimizerKind::kSgd : OptimizerKind::kAdagrad;
    Optimizer another(other, settings);
    EXPECT_STATUS(another.RestoreState(state), kCorruption);
    LearnerState wrong = state;
    wrong.tensors.begin()->second = torch::zeros({17});
    settings.optimizer.kind = kind;
    Optimizer fresh(other, settings);
    EXPECT_STATUS(fresh.RestoreState(wrong), kCorruption);
  }
}

/// Labels of 6 rows, and a minibatch of 4 seeds among them.
struct LossCase {
  Labels labels;
  Minibatch minibatch;
  torch::Tensor scores;
};

LossCase MakeLossCase(Task task) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  LossCase made;
  made.labels.task = task;
  if (task == Task::kMulticlass) {
    made.labels.label = {0, 2, 1, 1, 2, 0};
    made.labels.classes = 3;
  } else if (task == Task::kBinary) {
    made.labels.label = {0, 1, 1, 0, 1, 0};
    made.labels.classes = 2;
  } else if (task == Task::kMultilabel) {
    made.labels.flags = {0, 1, 1, 1, 0, 255, 1, 0, 255, 255, 0, 0};
    made.labels.columns = 2;
  } else {
    made.labels.values = {1, 2, -3, nan, 5, 6, nan, nan, 0.5, 1, 2, 3};
    made.labels.columns = 2;
  }
  made.minibatch.rows = {4, 2, 3, 1, 0, 5};
  made.minibatch.seed_count = 4;
  torch::manual_seed(3);
  made.scores = torch::randn({4, made.labels.outputs()});
  return made;
}

/// Returns the loss by its definition, in double precision.
double LossInDouble(const LossCase& made, const std::vector<float>& weights, double smoothing) {
  const Labels& labels = made.labels;
  const auto outputs = static_cast<std::size_t>(labels.outputs());
  double sum = 0, total = 0;
  for (std::size_t i = 0; i < made.minibatch.seed_count; ++i) {
    const auto row = static_cast<std::size_t>(made.minibatch.rows[i]);
    const float* const scores = made.scores.data_ptr<float>() + i * outputs;
    if (labels.task == Task::kMulticlass) {
      double all = 0;
      for (std::size_t c = 0; c < outputs; ++c) all += std::exp(double{scores[c]});
      const auto label = static_cast<std::size_t>(labels.label[row]);
      for (std::size_t c = 0; c < outputs; ++c) {
        const double target =
            (c == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(outputs);
        const double weight = weights.empty() ? 1 : weights[c];
        sum -= weight * target * (double{scores[c]} - std::log(all));
      }
      total += weights.empty() ? 1 : weights[label];
      continue;
    }
    for (std::size_t c = 0; c < outputs; ++c) {
      double target = 0, weight = 1;
      if (labels.task == Task::kBinary) {
        target = labels.label[row] * (1 - smoothing) + smoothing / 2;
        if (!weights.empty()) weight = weights[static_cast<std::size_t>(labels.label[row])];
      } else if (labels.task == Task::kMultilabel) {
        if (labels.flags[row * outputs + c] == 255) continue;
        target = labels.flags[row * outputs + c];
      } else {
        target = labels.values[row * outputs + c];
        if (std::isnan(target)) continue;
        sum += (scores[c] - target) * (scores[c] - target);
        ++total;
        continue;
      }
      const double p = 1 / (1 + std::exp(-double{scores[c]}));
      sum -= weight * (target * std::log(p) + (1 - target) * std::log(1 - p));
      total += weight;
    }
  }
  return sum / total;
}

TEST(TaskLossTest, LossesAndGradientsAreThoseOfTheirDefinitions) {
  for (const Task task : {Task::kMulticlass, Task::kMultilabel, Task::kBinary, Task::kRegression}) {
    const bool classes = task == Task::kMulticlass || task == Task::kBinary;
    for (const bool weighted : {false, true}) {
      for (const double smoothing : {0.0, 0.2}) {
        if (!classes && (weighted || smoothing > 0)) continue;
        SCOPED_TRACE(::testing::Message() << TaskName(task) << weighted << smoothing);
        LossCase made = MakeLossCase(task);
        std::vector<float> weights;
        if (weighted) weights = {0.5F, 2, 1};
        if (weighted) weights.resize(static_cast<std::size_t>(made.labels.classes));
        const TaskLoss loss(made.labels, weights, smoothing);
        torch::Tensor scores = made.scores.clone().set_requires_grad(true);
        const torch::Tensor value = loss.Of(scores, made.minibatch);
        EXPECT_NEAR(value.item<double>(), LossInDouble(made, weights, smoothing), 1e-5);
        value.backward();
        for (std::int64_t i = 0; i < made.scores.numel(); ++i) {
          float& score = made.scores.data_ptr<float>()[i];
          const float at = score, up = at + 1e-2F, down = at - 1e-2F;
          score = up;
          const double above = LossInDouble(made, weights, smoothing);
          score = down;
          const double below = LossInDouble(made, weights, smoothing);
          score = at;
          const double slope = (above - below) / (double{up} - double{down});
          EXPECT_NEAR(scores.grad().data_ptr<float>()[i], slope, 1e-3) << i;
        }
      }
    }
  }
}

TEST(TaskLossTest, WhereAllIsMissingThereIsNoLossAndNoGradient) {
  for (const Task task : {Task::kMultilabel, Task::kRegression}) {
    LossCase made = MakeLossCase(task);
    std::fill(made.labels.flags.begin(), made.labels.flags.end(), 255);
    std::fill(made.labels.values.begin(), made.labels.values.end(),
              std::numeric_limits<float>::quiet_NaN());
    torch::Tensor scores = made.scores.clone().set_requires_grad(true);
    const torch::Tensor value = TaskLoss(made.labels, {}, 0).Of(scores, made.minibatch);
    value.backward();
    EXPECT_EQ(value.item<double>(), 0);
    EXPECT_EQ(scores.grad().abs().sum().item<double>(), 0);
  }
}

}  // namespace
}  // namespace rhizome
