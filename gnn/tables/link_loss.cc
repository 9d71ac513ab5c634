#include "gnn/tables/link_loss.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace rhizome {
inline namespace internal {
namespace {

/// -log(sigmoid(x)), and its derivative.
float LogSigmoidLoss(float x) {
  return x > 0 ? std::log1p(std::exp(-x)) : std::log1p(std::exp(x)) - x;
}
float Sigmoid(float x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

/// Replaces scores by their softmax.
void Softmax(std::span<float> scores) {
  float max = kMaskedScore;
  for (const float score : scores) max = std::max(max, score);
  if (max == kMaskedScore) return;
  double sum = 0;
  for (float& score : scores) sum += score = std::exp(score - max);
  for (float& score : scores) score = static_cast<float>(score / sum);
}

/// e^x for x <= 0, without branches, so that loops over it use vectors. Below -80 it is 0. The rest
/// of x after multiples of log(2) is at most 0.35, where the series has an error below 1e-8.
float ExpOfNegative(float x) {
  constexpr float kRounding = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * std::numbers::log2e_v<float> + kRounding;
  const float n = shifted - kRounding;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // log(2) in two parts
  const float high = ((r * (1.0F / 5040) + 1.0F / 720) * r + 1.0F / 120) * r + 1.0F / 24;
  const float y = (((high * r + 1.0F / 6) * r + 0.5F) * r + 1) * r + 1;
  const auto power =
      std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounding);
  const float result = y * std::bit_cast<float>((power + 127U) << 23U);
  const std::uint32_t kept = x < -80 ? 0U : ~0U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(result) & kept);
}

/// Softmax over the candidates of each query: loops run over queries, which are adjacent.
void SoftmaxLosses(float scale, std::span<float> truths, std::span<float> negatives,
                   std::span<float> losses) {
  const std::size_t queries = truths.size();
  const std::size_t count = negatives.size() / queries;
  std::vector<float> max(truths.begin(), truths.end());
  std::vector<double> sums(queries);
  std::vector<float> factors(queries);
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t q = 0; q < queries; ++q) max[q] = std::max(max[q], negatives[k * queries + q]);
  for (std::size_t q = 0; q < queries; ++q) {
    losses[q] = max[q] - truths[q];
    truths[q] = ExpOfNegative(truths[q] - max[q]);
    sums[q] = truths[q];
  }
  for (std::size_t k = 0; k < count; ++k) {
    float* const row = negatives.data() + k * queries;
    for (std::size_t q = 0; q < queries; ++q) row[q] = ExpOfNegative(row[q] - max[q]);
    for (std::size_t q = 0; q < queries; ++q) sums[q] += row[q];
  }
  for (std::size_t q = 0; q < queries; ++q) {
    losses[q] += static_cast<float>(std::log(sums[q]));
    factors[q] = scale / static_cast<float>(sums[q]);
    truths[q] = truths[q] * factors[q] - scale;
  }
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t q = 0; q < queries; ++q) negatives[k * queries + q] *= factors[q];
}

float SelfAdversarialLoss(float margin, float& truth, std::span<float> negatives) {
  std::vector<float> weights(negatives.begin(), negatives.end());
  Softmax(weights);
  float loss = LogSigmoidLoss(margin + truth);
  truth = -Sigmoid(-margin - truth);
  for (std::size_t i = 0; i < negatives.size(); ++i) {
    if (negatives[i] == kMaskedScore) {
      negatives[i] = 0;
      continue;
    }
    loss += weights[i] * LogSigmoidLoss(-margin - negatives[i]);
    negatives[i] = weights[i] * Sigmoid(margin + negatives[i]);
  }
  return loss;
}

/// Adds the mean of a loss over the negatives that count. `one` returns the loss of a negative, and
/// replaces its score by the derivative.
template <typename One>
float MeanOver(std::span<float> negatives, const One& one) {
  const auto masked = std::count(negatives.begin(), negatives.end(), kMaskedScore);
  const auto counted = static_cast<float>(negatives.size() - static_cast<std::size_t>(masked));
  float sum = 0;
  for (float& score : negatives) {
    if (score == kMaskedScore) {
      score = 0;
      continue;
    }
    sum += one(score);
    score /= counted;
  }
  return counted == 0 ? 0 : sum / counted;
}

float MarginLoss(float margin, float& truth, std::span<float> negatives) {
  const float of_truth = truth;
  float by_truth = 0;
  const float loss = MeanOver(negatives, [&](float& score) {
    const float violation = margin - of_truth + score;
    score = violation > 0 ? 1 : 0;
    // A comparison with NaN is false, so that NaN stays in the loss.
    return violation < 0 ? 0 : violation;
  });
  for (const float derivative : negatives) by_truth -= derivative;
  truth = by_truth;
  return loss;
}

float CrossEntropyLoss(float& truth, std::span<float> negatives) {
  const float of_truth = LogSigmoidLoss(truth);
  truth = -Sigmoid(-truth);
  return of_truth + MeanOver(negatives, [](float& score) {
           const float loss = LogSigmoidLoss(-score);
           score = Sigmoid(score);
           return loss;
         });
}

/// The loss of one query; replaces scores by derivatives.
float LossOfQuery(LinkLoss loss, float margin, float& truth, std::span<float> negatives) {
  if (loss == LinkLoss::kSelfAdversarial) return SelfAdversarialLoss(margin, truth, negatives);
  if (loss == LinkLoss::kMargin) return MarginLoss(margin, truth, negatives);
  return CrossEntropyLoss(truth, negatives);
}

}  // namespace

void LossesOfQueries(LinkLoss loss, float margin, float scale, std::span<float> truths,
                     std::span<float> negatives, std::span<float> losses) {
  if (loss == LinkLoss::kSoftmax) return SoftmaxLosses(scale, truths, negatives, losses);
  const std::size_t queries = truths.size();
  std::vector<float> of_query(negatives.size() / queries);
  for (std::size_t q = 0; q < queries; ++q) {
    for (std::size_t k = 0; k < of_query.size(); ++k) of_query[k] = negatives[k * queries + q];
    losses[q] = LossOfQuery(loss, margin, truths[q], of_query);
    truths[q] *= scale;
    for (std::size_t k = 0; k < of_query.size(); ++k)
      negatives[k * queries + q] = scale * of_query[k];
  }
}

}  // namespace internal
}  // namespace rhizome
