#include "cache/ranges/cost_meter.h"

namespace rhizome {
inline namespace internal {

void CostMeter::Add(const MeasuredRange& block) {
  const bool goes_on =
      !ranges_.empty() && ranges_.back().end == block.begin &&
      (block.begin % step_ != 0 || ranges_.back().end - ranges_.back().begin < min_places_);
  if (!goes_on) {
    ranges_.push_back(block);
    return;
  }
  ranges_.back().end = block.end;
  ranges_.back().cpu_seconds += block.cpu_seconds;
}

}  // namespace internal
}  // namespace rhizome
