#pragma once

#include <string>
#include <string_view>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store_point.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The field of a job's description, a JSON object, that holds the state of the store
/// (StateId::ToString). Older versions wrote the store's numbers only.
inline constexpr const char* kStateField = "state";

/// The description that a killed run left, and where.
struct EarlierJob {
  std::string_view place;   ///< "checkpoint 'x'", for messages
  std::string_view other;   ///< the message if it is of another job
  std::string_view remedy;  ///< what to do about a store whose copies have diverged
};

/// Compares the description that an earlier run left with that of this run, which goes on with it.
/// Returns whether the states of the store were compared; false: by their numbers alone, because an
/// older version wrote the description. Errors: kInvalidArgument, they are not the same job, or the
/// stores are copies that have diverged.
Result<bool> CompareJobs(const std::string& earlier, const std::string& now,
                         const EarlierJob& about);

}  // namespace internal
}  // namespace rhizome
