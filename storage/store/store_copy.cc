#include "storage/store/store_copy.h"

#include <algorithm>

#include "storage/store/store_impl.h"

namespace rhizome {
inline namespace internal {

std::uint64_t StoreCopy::Sequence(const Store& store) { return store.impl_->sequence(); }

Status StoreCopy::ScanDelta(
    const Store& store,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  return store.impl_->catalog_->ScanDeltaEntries(store.base_sequence(), visit);
}

Status StoreCopy::PutDelta(Store& store, Entries entries) {
  return store.impl_->catalog_->PutDeltaEntries(entries);
}

HistoryState StoreCopy::BaseState(const Store& store) { return store.impl_->numbers().base_state; }

Status StoreCopy::Commit(Store& store, const Manifest& manifest, std::uint64_t sequence,
                         std::uint64_t base_sequence, const HistoryState& base_state) {
  {
    const MutexLock lock(store.impl_->shown_);
    store.impl_->numbers_.sequence = std::max(store.impl_->numbers_.sequence, sequence);
    store.impl_->numbers_.base_state = base_state;
  }
  return store.impl_->CommitManifest(manifest, base_sequence);
}

}  // namespace internal
}  // namespace rhizome
