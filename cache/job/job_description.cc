#include "cache/job/job_description.h"

#include <fmt/format.h>

#include "storage/section/untrusted_json.h"
#include "storage/store/diverged_states.h"

namespace rhizome {
namespace {

/// Removes the store's state from a description and returns it.
StateId TakeState(nlohmann::json& description) {
  if (!description.is_object() || !description.contains(kStateField)) return {};
  const nlohmann::json field = description[kStateField];
  description.erase(kStateField);
  return field.is_string() ? StateId::Parse(field.get<std::string>()).value_or(StateId{})
                           : StateId{};
}

}  // namespace

Result<bool> internal::CompareJobs(const std::string& earlier, const std::string& now,
                                   const EarlierJob& about) {
  if (earlier == now) return true;
  nlohmann::json left = ParseUntrustedJson(earlier);
  nlohmann::json wanted = ParseUntrustedJson(now);
  const StateId theirs = TakeState(left);
  const StateId ours = TakeState(wanted);
  if (left.is_discarded() || wanted.is_discarded() || left != wanted)
    return Fail(Status::InvalidArgument(std::string(about.other)));
  if (!theirs.known() || !ours.known()) return false;
  if (theirs == ours) return true;
  return Fail(DivergedStates("the store", ours, about.place, theirs, about.remedy));
}

}  // namespace rhizome
