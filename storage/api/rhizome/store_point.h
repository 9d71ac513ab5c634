#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/hash.h"
#include "rhizome/status.h"
#include "rhizome/store_id.h"

namespace RHIZOME_API rhizome {

/// Hashes that distinguish a state of a store from states of its copies: copies that were written
/// to independently have commits, generations and manifests with equal numbers. All zeros: unknown,
/// because it was recorded by an older version of Rhizome.
struct StateId {
  Hash128 files{};    ///< hash of the files from which the state is read
  Hash128 commits{};  ///< HistoryState::commits after the last commit
  friend bool operator==(const StateId&, const StateId&) = default;

  bool known() const { return *this != StateId{}; }
  /// Returns 64 hex digits; empty if unknown.
  std::string ToString() const;
  /// Parses such digits. Returns nullopt if `text` is anything else.
  static std::optional<StateId> Parse(std::string_view text);
};

/// Creates the error that two states with equal numbers differ (kInvalidArgument). `ours` and
/// `theirs` say what has these states, as in "'b.rz'" and "the checkpoint 'x'"; `remedy` says what
/// the caller can do.
Status DivergedStates(std::string_view ours, const StateId& our_state, std::string_view theirs,
                      const StateId& their_state, std::string_view remedy);

/// A state of a store, identified by numbers and hashes, so that another process can open exactly
/// that state while a reader holds it: GraphSnapshot::point (rhizome/graph.h) returns it,
/// StoreOptions::at opens it.
struct StorePoint {
  StoreId store;
  std::uint64_t generation = 0;
  std::uint64_t manifest_version = 0;
  std::uint64_t base_sequence = 0;  ///< commits up to this one are in the generation's files
  std::uint64_t first_commit = 0;   ///< the first commit of the delta; 0: the delta is empty
  std::uint64_t sequence = 0;       ///< the last commit
  StateId state = {};               ///< its `files` is Store::HashOfFiles
  friend bool operator==(const StorePoint&, const StorePoint&) = default;
};

}  // namespace rhizome
