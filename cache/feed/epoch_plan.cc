#include "rhizome/cache/epoch_plan.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

namespace rhizome {
namespace {

// A tag, and the sampling key of a training batch, has the bits: epoch, validation bit, batch.
constexpr int kEpochShift = 41;
constexpr std::uint64_t kValidBit = std::uint64_t{1} << 40;

}  // namespace

EpochPlan::EpochPlan(std::vector<VertexId> train, std::vector<VertexId> valid,
                     std::uint64_t batch_size, std::uint32_t epochs, std::uint64_t seed,
                     std::uint64_t most_train_batches)
    : train_(std::move(train)),
      valid_(std::move(valid)),
      batch_size_(std::max<std::uint64_t>(batch_size, 1)),
      epochs_(epochs),
      seed_(seed),
      most_train_(most_train_batches == 0 ? std::numeric_limits<std::uint64_t>::max()
                                          : most_train_batches) {}

EpochPlan::Tag EpochPlan::Decode(std::uint64_t tag) {
  return {.epoch = static_cast<std::uint32_t>(tag >> kEpochShift),
          .is_valid = (tag & kValidBit) != 0,
          .batch = tag & (kValidBit - 1)};
}

// Fisher-Yates, written out because std::shuffle differs between standard libraries. The modulo's
// bias is below 2^-32 for any graph that fits on a disk.
void EpochPlan::Shuffle() {
  shuffled_ = train_;
  std::seed_seq sequence{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32),
                         epoch_};
  std::mt19937_64 random(sequence);
  for (std::size_t i = shuffled_.size(); i > 1; --i) {
    std::swap(shuffled_[i - 1], shuffled_[random() % i]);
  }
}

SeedBatch EpochPlan::Take(const std::vector<VertexId>& from, bool is_valid) const {
  const std::uint64_t batch = is_valid ? batch_ - train_batches() : batch_;
  const std::uint64_t begin = batch * batch_size_;
  const std::uint64_t end = std::min<std::uint64_t>(begin + batch_size_, from.size());
  const std::uint64_t part = (is_valid ? kValidBit : 0) | batch;
  const std::uint64_t tag = std::uint64_t{epoch_} << kEpochShift | part;
  return {.tag = tag,
          .key = is_valid ? part : tag,
          .vertices = {from.begin() + static_cast<std::ptrdiff_t>(begin),
                       from.begin() + static_cast<std::ptrdiff_t>(end)}};
}

void EpochPlan::Skip(std::uint64_t minibatches) {
  const std::uint64_t an_epoch = train_batches() + valid_batches();
  const std::uint64_t at = epoch_ * an_epoch + batch_ + minibatches;
  epoch_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(at / an_epoch, epochs_));
  batch_ = epoch_ == epochs_ ? 0 : at % an_epoch;
  if (epoch_ < epochs_) Shuffle();
}

std::optional<SeedBatch> EpochPlan::Next() {
  if (epoch_ == epochs_) return std::nullopt;
  if (batch_ == 0) Shuffle();
  const bool is_valid = batch_ >= train_batches();
  SeedBatch taken = Take(is_valid ? valid_ : shuffled_, is_valid);
  if (++batch_ == train_batches() + valid_batches()) {
    batch_ = 0;
    ++epoch_;
  }
  return taken;
}

}  // namespace rhizome
