#include "cache/feed/epoch_plan.h"

#include <algorithm>
#include <random>
#include <utility>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

// Bits of a tag, and of the sampling key of a training batch: epoch, validation bit, batch.
constexpr int kEpochShift = 41;
constexpr std::uint64_t kValidBit = std::uint64_t{1} << 40;

std::vector<VertexId> Part(const std::vector<VertexId>& from, std::uint64_t begin,
                           std::uint64_t end) {
  return {from.begin() + static_cast<std::ptrdiff_t>(begin),
          from.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

EpochPlan::EpochPlan(std::vector<VertexId> train, std::vector<VertexId> valid,
                     const EpochPlanOptions& options)
    : train_(std::move(train)), valid_(std::move(valid)), options_(options) {
  RHIZOME_CHECK(options.batch_size > 0 && options.epochs <= kMaxEpochs && options.valid_every > 0 &&
                options.rank < options.ranks);
}

/// Returns the number of rounds in an epoch, including an incomplete last one unless drop_last is
/// set.
std::uint64_t EpochPlan::Rounds() const {
  const std::uint64_t whole = train_.size() / options_.batch_size / options_.ranks;
  const bool some_left = whole * options_.batch_size * options_.ranks < train_.size();
  return whole + (some_left && !options_.drop_last ? 1 : 0);
}

std::uint64_t EpochPlan::train_batches() const {
  const std::uint64_t all = Rounds();
  return options_.max_train_batches == 0 ? all : std::min(all, options_.max_train_batches);
}

bool EpochPlan::IsEven() const {
  return options_.drop_last || train_.size() >= Rounds() * options_.ranks;
}

/// Returns the range [begin, end) of this rank's vertices of a round, in the order of the epoch.
std::pair<std::uint64_t, std::uint64_t> EpochPlan::TrainRange(std::uint64_t round) const {
  const std::uint64_t ranks = options_.ranks, in_round = options_.batch_size * ranks;
  const std::uint64_t at = round * ranks + options_.rank;
  const std::uint64_t left = options_.drop_last ? 0 : train_.size() % in_round;
  std::uint64_t full = train_.size() / in_round;  // rounds of full minibatches
  if (full > 0 && left > 0 && left < ranks) --full;
  if (round < full) return {at * options_.batch_size, (at + 1) * options_.batch_size};
  const std::uint64_t first = full * in_round, parts = (Rounds() - full) * ranks;
  const std::uint64_t part = at - full * ranks, size = (train_.size() - first) / parts;
  const std::uint64_t larger = (train_.size() - first) % parts;  // parts with one extra vertex
  const auto begin = [&](std::uint64_t i) { return first + i * size + std::min(i, larger); };
  return {begin(part), begin(part + 1)};
}

bool EpochCounts::HasValid(std::uint32_t epoch) const {
  if (valid == 0) return false;
  return (epoch + 1) % valid_every == 0 || epoch + 1 == epochs;
}

std::uint64_t EpochCounts::Before(std::uint32_t epoch) const {
  const std::uint32_t e = std::min(epoch, epochs);
  const bool extra = e == epochs && e % valid_every != 0;  // for the last epoch
  return e * train + (e / valid_every + (extra ? 1 : 0)) * valid;
}

EpochPlan::Tag EpochPlan::Decode(std::uint64_t tag) {
  return {.epoch = static_cast<std::uint32_t>(tag >> kEpochShift),
          .is_valid = (tag & kValidBit) != 0,
          .batch = tag & (kValidBit - 1)};
}

std::uint64_t EpochPlan::Encode(const Tag& tag) {
  return std::uint64_t{tag.epoch} << kEpochShift | (tag.is_valid ? kValidBit : 0) | tag.batch;
}

// Fisher-Yates shuffle, written out because std::shuffle differs between standard libraries. The
// bias of the modulo is below 2^-32 for any graph that fits on a disk.
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

SeedBatch EpochPlan::TakeTrain() const {
  const auto [begin, end] = TrainRange(batch_);
  const std::uint64_t batch = batch_ * options_.ranks + options_.rank;
  RHIZOME_DCHECK(begin < end && batch < kValidBit);
  const std::uint64_t tag = Encode({.epoch = epoch_, .batch = batch});
  return {
      .tag = tag, .key = tag, .vertices = Part(options_.shuffle ? shuffled_ : train_, begin, end)};
}

SeedBatch EpochPlan::TakeValid() const {
  const std::uint64_t batch = batch_ - train_batches(), begin = batch * options_.batch_size;
  const std::uint64_t end = std::min<std::uint64_t>(begin + options_.batch_size, valid_.size());
  RHIZOME_DCHECK(begin < end && batch < kValidBit);
  return {.tag = Encode({.epoch = epoch_, .is_valid = true, .batch = batch}),
          .key = Encode({.is_valid = true, .batch = batch}),
          .vertices = Part(valid_, begin, end),
          .is_valid = true};
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
  SeedBatch taken = batch_ < train_batches() ? TakeTrain() : TakeValid();
  if (++batch_ == BatchesOf(epoch_)) {
    batch_ = 0;
    ++epoch_;
  }
  return taken;
}

}  // namespace internal
}  // namespace rhizome
