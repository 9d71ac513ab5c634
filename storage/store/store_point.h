#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"
#include "rhizome/storage/hash.h"
#include "rhizome/storage/status.h"
#include "rhizome/storage/store_id.h"

namespace RHIZOME_API rhizome {

/// Hashes that tell a state of a store from those of its copies: copies that were written to
/// independently have commits, generations and manifests of equal numbers. All zeros: not known,
/// because an older version of Rhizome wrote it down.
struct StateId {
  Hash128 files{};    ///< of the files that the state is read from
  Hash128 commits{};  ///< HistoryState::commits after the last commit
  friend bool operator==(const StateId&, const StateId&) = default;

  bool known() const { return *this != StateId{}; }
  /// 64 hex digits; empty: not known.
  std::string ToString() const;
  /// Parses them. Returns nothing if `text` is something else.
  static std::optional<StateId> Parse(std::string_view text);
};

/// Makes the error that two states of equal numbers differ (kInvalidArgument). `ours` and `theirs`
/// say what has them, as in "'b.rz'" and "the checkpoint 'x'"; `remedy` says what the caller can
/// do.
Status DivergedStates(std::string_view ours, const StateId& our_state, std::string_view theirs,
                      const StateId& their_state, std::string_view remedy);

/// A state of a store, by numbers and hashes, so that another process can open just that one while
/// somebody holds it: GraphSnapshot::point (index/graph.h) names it, StoreOptions::at opens it.
struct StorePoint {
  StoreId store;
  std::uint64_t generation = 0;
  std::uint64_t manifest_version = 0;
  std::uint64_t base_sequence = 0;  ///< commits up to it are in the generation's files
  std::uint64_t first_commit = 0;   ///< the first commit of the delta; 0: there is none
  std::uint64_t sequence = 0;       ///< the last commit
  StateId state = {};               ///< its files are those of the manifest
  friend bool operator==(const StorePoint&, const StorePoint&) = default;
};

}  // namespace rhizome
