#include "rhizome/storage/store_copy.h"

#include <algorithm>

#include "rhizome/storage/catalog.h"

namespace rhizome::inline internal {

std::uint64_t StoreCopy::Sequence(const Store& store) {
  const MutexLock lock(store.shown_);
  return store.sequence_;
}

Status StoreCopy::ScanDelta(
    const Store& store,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  return store.catalog_->ScanDeltaEntries(store.base_sequence(), visit);
}

Status StoreCopy::PutDelta(Store& store, Entries entries) {
  return store.catalog_->PutDeltaEntries(entries);
}

Status StoreCopy::Commit(Store& store, const Manifest& manifest, std::uint64_t sequence,
                         std::uint64_t base_sequence) {
  {
    const MutexLock lock(store.shown_);
    store.sequence_ = std::max(store.sequence_, sequence);
  }
  return store.CommitManifest(manifest, base_sequence);
}

}  // namespace rhizome::inline internal
