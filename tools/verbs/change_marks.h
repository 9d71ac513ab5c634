#pragma once

#include <optional>
#include <string>

#include "rhizome/graph.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// JSON field of a line of `changes` that identifies the range of commits. No edge attribute can
/// have this name.
inline constexpr const char* kMarkField = "$changes";

/// Range of commits of an export by `changes`, as recorded in its first line (`continues`, the
/// state that the changes continue) and its last line (`reaches`, the state that they lead to). A
/// single line records both.
struct ChangeMark {
  std::optional<LeaderState> continues;
  std::optional<LeaderState> reaches;
};

Json MarkJson(const ChangeMark& mark);
/// Returns nullopt if `json` is not a mark.
std::optional<ChangeMark> ParseMark(const Json& json);

/// Checks that changes are applied to a store that has the state they continue, completely and in
/// order.
class ChangeMarks {
 public:
  /// `graph` is the graph of the follower, before any change is applied.
  explicit ChangeMarks(const GraphSnapshot& graph)
      : graph_(graph), known_(graph.history().leader) {}

  /// Processes the mark of a line. Errors: kInvalidArgument, naming the mismatch.
  Status Take(const ChangeMark& mark);

  /// Checks that no changes are missing at the end. Errors: kInvalidArgument.
  Status Finish() const;

  /// State reached by the lines so far; nullopt if no line had a mark, or the last changes are
  /// incomplete.
  std::optional<LeaderState> reached() const { return reached_; }

 private:
  Status CheckContinues(const LeaderState& state) const;

  const GraphSnapshot& graph_;
  std::optional<LeaderState> known_;    // the leader's state that the follower has
  std::optional<LeaderState> reached_;  // state after the lines so far
  std::optional<LeaderState> open_;     // set while changes have begun and are not complete
};

}  // namespace rhizome
