#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rhizome/storage/store.h"

namespace rhizome::inline internal {

/// What only a copy of a whole store needs of it: its delta as it is stored, and a commit that
/// carries on from the numbers of another store. Threads: as Store.
class StoreCopy {
 public:
  /// The last commit that `store` sees.
  static std::uint64_t Sequence(const Store& store);

  /// Visits what later commits than the generation holds put, in order of their keys, checked.
  static Status ScanDelta(
      const Store& store,
      const std::function<Status(std::string_view key, std::string_view value)>& visit);

  using Entries = std::span<const std::pair<std::string, std::string>>;
  static Status PutDelta(Store& store, Entries entries);

  /// Commits `manifest`, whose files are all there, as the first of a store that was just created;
  /// commits are numbered on from `sequence`.
  static Status Commit(Store& store, const Manifest& manifest, std::uint64_t sequence,
                       std::uint64_t base_sequence);
};

}  // namespace rhizome::inline internal
