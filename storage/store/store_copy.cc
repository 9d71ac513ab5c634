#include "storage/store/store_copy.h"

#include <algorithm>

#include "storage/catalog/catalog.h"

namespace rhizome {
inline namespace internal {

std::uint64_t StoreCopy::Sequence(const Store& store) { return store.sequence(); }

Status StoreCopy::ScanDelta(
    const Store& store,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  return store.catalog_->ScanDeltaEntries(store.base_sequence(), visit);
}

Status StoreCopy::PutDelta(Store& store, Entries entries) {
  return store.catalog_->PutDeltaEntries(entries);
}

HistoryState StoreCopy::BaseState(const Store& store) { return store.numbers().base_state; }

Status StoreCopy::Commit(Store& store, const Manifest& manifest, std::uint64_t sequence,
                         std::uint64_t base_sequence, const HistoryState& base_state) {
  {
    const MutexLock lock(store.shown_);
    store.numbers_.sequence = std::max(store.numbers_.sequence, sequence);
    store.numbers_.base_state = base_state;
  }
  return store.CommitManifest(manifest, base_sequence);
}

}  // namespace internal
}  // namespace rhizome
