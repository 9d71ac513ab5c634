#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rhizome/store.h"

namespace rhizome {
inline namespace internal {

/// Access to a store for code that copies whole stores: the stored form of the delta, and a commit
/// that continues the numbers of another store. Threads: as for Store.
class StoreCopy {
 public:
  /// Returns the number of the last commit that `store` sees.
  static std::uint64_t Sequence(const Store& store);

  /// Returns the state after the commits that the generation contains.
  static HistoryState BaseState(const Store& store);

  /// Visits the stored entries of commits after those that the generation contains, in order of
  /// their keys, and checks each entry.
  static Status ScanDelta(
      const Store& store,
      const std::function<Status(std::string_view key, std::string_view value)>& visit);

  /// Writes such entries; they are durable after Commit.
  using Entries = std::span<const std::pair<std::string, std::string>>;
  static Status PutDelta(Store& store, Entries entries);

  /// Commits `manifest`, all of whose files exist, as the first manifest of a store that was just
  /// created. Commits are numbered from `sequence` on. `base_state` is the state of the copied
  /// store; if unknown, it is derived from the files.
  static Status Commit(Store& store, const Manifest& manifest, std::uint64_t sequence,
                       std::uint64_t base_sequence, const HistoryState& base_state);
};

}  // namespace internal
}  // namespace rhizome
