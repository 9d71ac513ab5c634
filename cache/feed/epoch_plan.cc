#include "rhizome/cache/epoch_plan.h"

#include <algorithm>
#include <random>
#include <utility>

#include "rhizome/storage/check.h"

namespace rhizome::inline internal {
namespace {

// A tag, and the sampling key of a training batch, has the bits: epoch, validation bit, batch.
constexpr int kEpochShift = 41;
constexpr std::uint64_t kValidBit = std::uint64_t{1} << 40;

}  // namespace

EpochPlan::EpochPlan(std::vector<VertexId> train, std::vector<VertexId> valid,
                     const EpochPlanOptions& options)
    : train_(std::move(train)), valid_(std::move(valid)), options_(options) {
  RHIZOME_CHECK(options.batch_size > 0 && options.epochs <= kMostEpochs && options.valid_every > 0);
}

std::uint64_t EpochPlan::train_batches() const {
  const std::uint64_t all =
      options_.drop_last ? train_.size() / options_.batch_size : Batches(train_.size());
  return options_.most_train_batches == 0 ? all : std::min(all, options_.most_train_batches);
}

bool EpochPlan::HasValid(std::uint32_t epoch) const {
  if (valid_.empty()) return false;
  return (epoch + 1) % options_.valid_every == 0 || epoch + 1 == options_.epochs;
}

std::uint64_t EpochPlan::Before(std::uint32_t epoch) const {
  const std::uint32_t e = std::min(epoch, options_.epochs);
  const bool extra = e == options_.epochs && e % options_.valid_every != 0;  // after the last one
  return e * train_batches() + (e / options_.valid_every + (extra ? 1 : 0)) * valid_batches();
}

EpochPlan::Tag EpochPlan::Decode(std::uint64_t tag) {
  return {.epoch = static_cast<std::uint32_t>(tag >> kEpochShift),
          .is_valid = (tag & kValidBit) != 0,
          .batch = tag & (kValidBit - 1)};
}

// Fisher-Yates, written out because std::shuffle differs between standard libraries. The modulo's
// bias is below 2^-32 for any graph that fits on a disk.
void EpochPlan::Shuffle() {
  if (!options_.shuffle) return;
  shuffled_ = train_;
  std::seed_seq sequence{static_cast<std::uint32_t>(options_.seed),
                         static_cast<std::uint32_t>(options_.seed >> 32), epoch_};
  std::mt19937_64 random(sequence);
  for (std::size_t i = shuffled_.size(); i > 1; --i) {
    std::swap(shuffled_[i - 1], shuffled_[random() % i]);
  }
}

SeedBatch EpochPlan::Take(const std::vector<VertexId>& from, bool is_valid) const {
  const std::uint64_t batch = is_valid ? batch_ - train_batches() : batch_;
  const std::uint64_t begin = batch * options_.batch_size;
  const std::uint64_t end = std::min<std::uint64_t>(begin + options_.batch_size, from.size());
  RHIZOME_DCHECK(begin < end && batch < kValidBit);
  const std::uint64_t part = (is_valid ? kValidBit : 0) | batch;
  const std::uint64_t tag = std::uint64_t{epoch_} << kEpochShift | part;
  return {.tag = tag,
          .key = is_valid ? part : tag,
          .vertices = {from.begin() + static_cast<std::ptrdiff_t>(begin),
                       from.begin() + static_cast<std::ptrdiff_t>(end)},
          .is_valid = is_valid};
}

void EpochPlan::Skip(std::uint64_t minibatches) {
  batch_ += minibatches;
  while (epoch_ < options_.epochs && batch_ >= BatchesOf(epoch_)) batch_ -= BatchesOf(epoch_++);
  if (epoch_ == options_.epochs) batch_ = 0;
  if (epoch_ < options_.epochs) Shuffle();
}

std::optional<SeedBatch> EpochPlan::Next() {
  if (epoch_ == options_.epochs) return std::nullopt;
  if (batch_ == 0) Shuffle();
  const bool is_valid = batch_ >= train_batches();
  const std::vector<VertexId>& train = options_.shuffle ? shuffled_ : train_;
  SeedBatch taken = Take(is_valid ? valid_ : train, is_valid);
  if (++batch_ == BatchesOf(epoch_)) {
    batch_ = 0;
    ++epoch_;
  }
  return taken;
}

}  // namespace rhizome::inline internal
