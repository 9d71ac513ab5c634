#pragma once

#include <limits>
#include <span>

#include "rhizome/link_training.h"

namespace rhizome {
inline namespace internal {

/// The score of a negative that does not count.
inline constexpr float kMaskedScore = -std::numeric_limits<float>::infinity();

/// Computes the losses of queries, each with the score of its true end in `truths`, [queries], and
/// scores of negatives, [negatives, queries]; and replaces each score by the derivative of the
/// query's loss by it, times `scale`. A masked negative is not counted. A loss is NaN if a score
/// is.
///   - softmax: cross entropy of the truth among all candidates (Lacroix et al., ICML 2018);
///   - self-adversarial: log-sigmoid with a margin, in which negatives weigh as their softmax (Sun
///     et al., ICLR 2019, eq. 5 and 6); the weights count as constants;
///   - margin: the mean of max(0, margin - truth + negative) (Bordes et al., NeurIPS 2013);
///   - bce: cross entropy of the truth, plus the mean one of the negatives.
void LossesOfQueries(LinkLoss loss, float margin, float scale, std::span<float> truths,
                     std::span<float> negatives, std::span<float> losses);

}  // namespace internal
}  // namespace rhizome
