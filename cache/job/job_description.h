#pragma once

#include <string>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Field of a job description (a JSON object) that holds the state of the store
/// (StateId::ToString). Older versions wrote only the store's numbers.
inline constexpr const char* kStateField = "state";

/// A description left by a killed run, and the messages to use when it does not match.
struct EarlierJob {
  std::string_view place;   ///< "checkpoint 'x'", for messages
  std::string_view other;   ///< message if the description is of another job
  std::string_view remedy;  ///< advice for a store whose copies have diverged
};

/// Compares the description left by an earlier run with the description of the run that resumes it.
/// Returns whether the states of the store were compared. False means that only the store's numbers
/// were, because an older version wrote the description. Errors: kInvalidArgument, the jobs differ,
/// or the stores are copies that have diverged.
Result<bool> CompareJobs(const std::string& earlier, const std::string& now,
                         const EarlierJob& about);

}  // namespace internal
}  // namespace rhizome
