#include "cache/ranks/home_epochs.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Fisher-Yates shuffle as in EpochPlan; a single home gets the same order as there.
std::vector<VertexId> ShuffledFor(std::vector<VertexId> vertices, std::uint64_t seed,
                                  std::uint32_t epoch, std::optional<std::uint32_t> home) {
  std::vector<std::uint32_t> words{static_cast<std::uint32_t>(seed),
                                   static_cast<std::uint32_t>(seed >> 32), epoch};
  if (home) words.push_back(*home);
  std::seed_seq sequence(words.begin(), words.end());
  std::mt19937_64 random(sequence);
  for (std::size_t i = vertices.size(); i > 1; --i)
    std::swap(vertices[i - 1], vertices[random() % i]);
  return vertices;
}

/// Returns the number of steps that cover the vertices of all homes.
std::uint64_t StepsOf(const std::vector<std::vector<VertexId>>& of_home, std::uint64_t batch_size) {
  std::uint64_t vertices = 0;
  for (const auto& its : of_home) vertices += its.size();
  const std::uint64_t in_step = batch_size * of_home.size();
  return (vertices + in_step - 1) / in_step;
}

}  // namespace

HomeEpochs::HomeEpochs(std::vector<std::vector<VertexId>> train,
                       std::vector<std::vector<VertexId>> valid, const HomeEpochsOptions& options)
    : train_(std::move(train)), valid_(std::move(valid)), options_(options) {
  RHIZOME_CHECK(options.batch_size > 0 && !train_.empty() && valid_.size() == train_.size());
  all_train_steps_ = StepsOf(train_, options.batch_size);
  counts_ = {.epochs = options.epochs,
             .valid_every = options.valid_every,
             .train = options.max_train_steps == 0
                          ? all_train_steps_
                          : std::min(all_train_steps_, options.max_train_steps),
             .valid = StepsOf(valid_, options.batch_size)};
}

/// Returns the range [first, second) of a home's vertices in a step.
std::pair<std::uint64_t, std::uint64_t> HomeEpochs::RangeOf(std::uint32_t home, bool is_valid,
                                                            std::uint64_t step) const {
  const std::uint64_t size = (is_valid ? valid_ : train_)[home].size();
  if (homes() == 1) {
    const std::uint64_t begin = std::min(size, step * options_.batch_size);
    return {begin, std::min(size, begin + options_.batch_size)};
  }
  const std::uint64_t steps = is_valid ? counts_.valid : all_train_steps_;
  return {step * size / steps, (step + 1) * size / steps};
}

std::uint64_t HomeEpochs::SeedsOf(std::uint32_t home, bool is_valid, std::uint64_t step) const {
  const auto [begin, end] = RangeOf(home, is_valid, step);
  return end - begin;
}

void HomeEpochs::Begin(std::uint32_t epoch, std::uint32_t first_home, std::uint32_t end_home) {
  RHIZOME_DCHECK(first_home <= end_home && end_home <= homes());
  epoch_ = epoch;
  shuffled_.assign(homes(), {});
  for (std::uint32_t home = first_home; home < end_home; ++home) {
    const std::uint32_t key =
        RHIZOME_MUTANT("orders depend on the rank") ? home - first_home : home;
    shuffled_[home] = ShuffledFor(train_[home], options_.seed, epoch,
                                  homes() == 1 ? std::nullopt : std::optional(key));
  }
}

SeedBatch HomeEpochs::Take(std::uint32_t home, bool is_valid, std::uint64_t step) const {
  RHIZOME_DCHECK(home < homes() && step < (is_valid ? counts_.valid : counts_.train));
  const auto [begin, end] = RangeOf(home, is_valid, step);
  const auto& vertices = is_valid ? valid_[home] : shuffled_[home];
  const EpochPlan::Tag tag{.epoch = epoch_, .is_valid = is_valid, .batch = step * homes() + home};
  EpochPlan::Tag key = tag;
  if (is_valid) key.epoch = 0;
  return {.tag = EpochPlan::Encode(tag),
          .key = EpochPlan::Encode(key),
          .vertices = {vertices.begin() + static_cast<std::ptrdiff_t>(begin),
                       vertices.begin() + static_cast<std::ptrdiff_t>(end)},
          .is_valid = is_valid};
}

HomeEpochs::Place HomeEpochs::Decode(std::uint64_t tag) const {
  const EpochPlan::Tag decoded = EpochPlan::Decode(tag);
  return {.home = static_cast<std::uint32_t>(decoded.batch % homes()),
          .is_valid = decoded.is_valid,
          .step = decoded.batch / homes()};
}

void HomeSeeds::Skip(std::uint64_t steps) {
  step_ += steps;
  begin_ = steps;
  const EpochCounts& counts = epochs_.counts();
  while (epoch_ < counts.epochs && step_ >= counts.Of(epoch_)) step_ -= counts.Of(epoch_++);
}

void HomeSeeds::Advance() {
  if (++home_ < end_) return;
  home_ = first_;
  if (++step_ < epochs_.counts().Of(epoch_)) return;
  step_ = 0;
  begun_ = false;
  ++epoch_;
}

std::optional<SeedBatch> HomeSeeds::Next() {
  const EpochCounts& counts = epochs_.counts();
  std::optional<SeedBatch> taken;
  while (!taken && epoch_ < counts.epochs) {
    if (!begun_) epochs_.Begin(epoch_, first_, end_);
    begun_ = true;
    const bool is_valid = step_ >= counts.train;
    const std::uint64_t of_part = is_valid ? step_ - counts.train : step_;
    if (epochs_.SeedsOf(home_, is_valid, of_part) > 0) {
      taken = epochs_.Take(home_, is_valid, of_part);
      taken_step_ = counts.Before(epoch_) + step_;
      const std::uint64_t superbatch =
          superbatch_ == 0 ? epoch_ : (taken_step_ - begin_) / superbatch_;
      taken->begins_superbatch = std::exchange(taken_superbatch_, superbatch) != superbatch;
    }
    Advance();
  }
  return taken;
}

}  // namespace internal
}  // namespace rhizome
