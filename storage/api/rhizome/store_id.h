#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/hash.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

/// 128 random bits that are stored in every file of a store, so that a file of another store is
/// detected.
struct StoreId {
  std::array<std::byte, 16> bytes{};

  friend bool operator==(const StoreId&, const StoreId&) = default;

  /// Creates an id from the kernel's generator, hashed with time, pid and a counter, so that a
  /// broken generator does not repeat ids.
  static StoreId Random();

  /// Parses 32 hex digits. Errors: kInvalidArgument.
  static Result<StoreId> Parse(std::string_view hex);
  std::string ToString() const;
};

/// A state of another store (the leader) whose changes were applied to this one.
struct LeaderState {
  StoreId store;
  std::uint64_t commit = 0;  ///< the last commit of the leader that was applied
  Hash128 commits{};         ///< the leader's HistoryState::commits after that commit
  friend bool operator==(const LeaderState&, const LeaderState&) = default;
};

/// Identifies the changes of a store up to a commit. Copies of a store that were written to
/// independently have commits with equal numbers and different hashes.
struct HistoryState {
  Hash128 commits{};                       ///< running hash over the commits; zeros: unknown
  std::optional<LeaderState> leader = {};  ///< the store that this one follows
  friend bool operator==(const HistoryState&, const HistoryState&) = default;

  bool known() const { return commits != Hash128{}; }
};

}  // namespace rhizome
