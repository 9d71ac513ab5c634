#pragma once

#include <optional>
#include <string>

#include "cli.h"
#include "rhizome/index/graph.h"

namespace rhizome {

/// The field of a change's JSON line that says which changes these are. No edge attribute can have
/// its name.
inline constexpr const char* kMarkField = "$changes";

/// The states that the first and the last line of `changes` name: that which the changes continue,
/// and the one that they lead to. A single line says both.
struct ChangeMark {
  std::optional<LeaderState> continues;
  std::optional<LeaderState> reaches;
};

Json MarkJson(const ChangeMark& mark);
/// Returns nothing if `json` is not such a mark.
std::optional<ChangeMark> ParseMark(const Json& json);

/// Checks that changes are applied to the store that has what they continue, all of them, and in
/// order.
class ChangeMarks {
 public:
  /// `graph` is the follower's, before anything is applied.
  explicit ChangeMarks(const GraphSnapshot& graph)
      : graph_(graph), known_(graph.history().leader) {}

  /// Takes the mark of a line. Errors: kInvalidArgument, saying what does not fit.
  Status Take(const ChangeMark& mark);

  /// Checks that all of the changes were there. Errors: kInvalidArgument.
  Status Finish() const;

  /// The state that all lines so far have led to; nothing if none has a mark, or the last changes
  /// are not complete.
  std::optional<LeaderState> reached() const { return reached_; }

 private:
  Status CheckContinues(const LeaderState& state) const;

  const GraphSnapshot& graph_;
  std::optional<LeaderState> known_;    // what the follower has of its leader
  std::optional<LeaderState> reached_;  // by the lines so far
  std::optional<LeaderState> open_;     // changes have begun that are not complete
};

}  // namespace rhizome
