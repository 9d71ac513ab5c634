#include "cache/tables/single_negatives.h"

#include "index/base/counter_random.h"

namespace rhizome {
inline namespace internal {

const NegativeShare& SingleNegatives::PickSource(CounterRandom& random) const {
  double rest = random.Unit();
  for (const NegativeShare& share : mixture_) {
    rest -= share.share;
    if (rest < 0) return share;
  }
  return mixture_.back();
}

Status SingleNegatives::Draw(std::uint32_t group, TypeId type, std::uint64_t count,
                             std::span<const VertexId> in_batch, CounterRandom& random,
                             std::vector<VertexId>& out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const NegativeShare& share = PickSource(random);
    if (share.source != NegativeSource::kInBatch) {
      RHIZOME_RETURN_IF_ERROR(vertices_.Draw(share, group, type, 1, random, out));
      continue;
    }
    if (in_batch.empty())
      return Status::InvalidArgument("negatives in-batch: the batch has no end of the type");
    out.push_back(in_batch[random.Below(in_batch.size())]);
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
