#include "gnn/link_train/link_epochs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cache/feed/epoch_plan.h"
#include "cache/feed/seed_numbers.h"

namespace rhizome {
inline namespace internal {

LinkEpochs::LinkEpochs(const LinkJob& job, const EpochCounts& counts, std::uint64_t batch_size,
                       std::uint64_t done)
    : job_(job), counts_(counts), batch_size_(batch_size) {
  while (epoch_ < counts.epochs && counts.Before(epoch_ + 1) <= done) ++epoch_;
  batch_ = done - counts.Before(epoch_);
}

Result<std::optional<SeedBatch>> LinkEpochs::Next() {
  if (epoch_ == counts_.epochs) return std::optional<SeedBatch>();
  SeedBatch seeds;
  if (batch_ < counts_.train) {
    RHIZOME_ASSIGN_OR_RETURN(seeds, Train());
  } else {
    seeds = Valid();
  }
  if (++batch_ == counts_.Of(epoch_)) {
    batch_ = 0;
    ++epoch_;
  }
  return std::optional(std::move(seeds));
}

Result<SeedBatch> LinkEpochs::Train() {
  RHIZOME_RETURN_IF_ERROR(job_.batches->Make(epoch_, batch_, links_));
  const std::uint64_t tag = EpochPlan::Encode({.epoch = epoch_, .batch = batch_});
  SeedBatch seeds{.tag = tag, .key = tag, .vertices = {}};
  seeds.leave_out = job_.leave_out;
  SeedNumbers numbers(seeds.vertices);
  for (const VertexPair& edge : links_.edges) seeds.pairs.push_back(numbers.Of(edge));
  for (std::size_t side = 0; side < 2; ++side)
    for (const TypedNegatives& typed : links_.negatives[side])
      seeds.negatives[side].push_back({.type = typed.type, .vertices = numbers.Of(typed.vertices)});
  // All edges of the batch were deleted since the generation: the step has no loss.
  if (seeds.vertices.empty()) seeds.vertices.push_back(0);
  return seeds;
}

SeedBatch LinkEpochs::Valid() const {
  const std::uint64_t batch = batch_ - counts_.train;
  const std::uint64_t begin = batch * batch_size_;
  const std::uint64_t end = std::min<std::uint64_t>(begin + batch_size_, job_.valid.edges.size());
  SeedBatch seeds{.tag = EpochPlan::Encode({.epoch = epoch_, .is_valid = true, .batch = batch}),
                  .key = EpochPlan::Encode({.is_valid = true, .batch = batch}),
                  .vertices = {},
                  .is_valid = true};
  seeds.leave_out = true;
  SeedNumbers numbers(seeds.vertices);
  for (std::uint64_t i = begin; i < end; ++i)
    seeds.pairs.push_back(numbers.Of(job_.valid.edges[i]));
  for (const ValidCandidates& of_type : job_.valid.candidates) {
    const MinibatchNegatives candidates{.type = of_type.type,
                                        .vertices = numbers.Of(of_type.vertices)};
    for (auto& side : seeds.negatives) side.push_back(candidates);
  }
  return seeds;
}

EpochCounts LinkEpochs::CountsOf(const LinkJob& job, const TrainOptions& options) {
  const MinibatchOptions& minibatch = *options.minibatch();
  std::uint64_t train = job.batches->batches();
  if (minibatch.steps > 0) train = std::min<std::uint64_t>(train, minibatch.steps);
  return {.epochs = options.learning.epochs,
          .valid_every = options.learning.eval_every,
          .train = train,
          .valid = (job.valid.edges.size() + minibatch.batch_size - 1) / minibatch.batch_size};
}

TrainingSeeds LinkTrainingSeeds(const LinkJob& job, const TrainOptions& options) {
  const EpochCounts counts = LinkEpochs::CountsOf(job, options);
  const std::uint64_t batch_size = options.minibatch()->batch_size;
  const auto from = [&job, counts, batch_size](std::uint64_t done) -> FeedPipeline::NextSeeds {
    const auto seeds = std::make_shared<LinkEpochs>(job, counts, batch_size, done);
    return [seeds] { return seeds->Next(); };
  };
  TrainingSeeds all{
      .counts = counts, .stream = {.next = from(0), .minibatches = counts.all()}, .after = from};
  if (counts.valid == 0) return all;
  std::uint32_t epoch = 0;
  while (!counts.HasValid(epoch)) ++epoch;  // the last epoch has validation minibatches
  all.stream.first_valid = from(counts.Before(epoch) + counts.train);
  return all;
}

}  // namespace internal
}  // namespace rhizome
