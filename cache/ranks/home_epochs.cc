#include "rhizome/cache/home_epochs.h"

#include <algorithm>
#include <random>
#include <utility>

#include "rhizome/storage/check.h"

namespace rhizome::inline internal {
namespace {

constexpr int kEpochShift = 41;  // of a tag, as EpochPlan has it

/// Fisher-Yates, as EpochPlan shuffles.
std::vector<VertexId> ShuffledFor(std::vector<VertexId> vertices, std::uint64_t seed,
                                  std::uint32_t epoch, std::uint32_t home) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                         epoch, home};
  std::mt19937_64 random(sequence);
  for (std::size_t i = vertices.size(); i > 1; --i)
    std::swap(vertices[i - 1], vertices[random() % i]);
  return vertices;
}

}  // namespace

HomeEpochs::HomeEpochs(std::vector<std::vector<VertexId>> train_of_home, std::uint64_t batch_size,
                       std::uint64_t seed)
    : train_of_home_(std::move(train_of_home)), batch_size_(batch_size), seed_(seed) {
  RHIZOME_CHECK(batch_size > 0 && !train_of_home_.empty());
  std::uint64_t vertices = 0;
  for (const auto& of_home : train_of_home_) vertices += of_home.size();
  const std::uint64_t in_step = batch_size * train_of_home_.size();
  steps_ = (vertices + in_step - 1) / in_step;
}

void HomeEpochs::Begin(std::uint32_t epoch) {
  epoch_ = epoch;
  shuffled_.clear();
  of_one_home_.clear();
  if (homes() == 1) {
    EpochPlan plan(train_of_home_[0], {},
                   {.batch_size = batch_size_, .epochs = epoch + 1, .seed = seed_});
    plan.Skip(plan.Before(epoch));
    while (std::optional<SeedBatch> batch = plan.Next()) of_one_home_.push_back(*std::move(batch));
    return;
  }
  for (std::uint32_t home = 0; home < homes(); ++home)
    shuffled_.push_back(ShuffledFor(train_of_home_[home], seed_, epoch, home));
}

SeedBatch HomeEpochs::Take(std::uint32_t home, std::uint64_t step) const {
  RHIZOME_DCHECK(home < homes() && step < steps_);
  if (homes() == 1) return of_one_home_[step];
  const std::vector<VertexId>& vertices = shuffled_[home];
  const auto place = [&](std::uint64_t s) {
    return vertices.begin() + static_cast<std::ptrdiff_t>(s * vertices.size() / steps_);
  };
  const std::uint64_t tag = std::uint64_t{epoch_} << kEpochShift | (step * homes() + home);
  return {.tag = tag, .key = tag, .vertices = {place(step), place(step + 1)}};
}

}  // namespace rhizome::inline internal
