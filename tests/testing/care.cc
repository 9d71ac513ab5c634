#include "testing/care.h"

#include <functional>
#include <map>
#include <string>

namespace rhizome::testing {

const std::map<std::string, std::function<Complaint()>>& Complaints() {
  static const std::map<std::string, std::function<Complaint()>> complaints = {
      {"FaultsAreNoDamage", FaultsAreNoDamage},
      {"FewDescriptorsAreNoDamage", FewDescriptorsAreNoDamage},
      {"FewDescriptorsKeepTheDelta", FewDescriptorsKeepTheDelta},
      {"DamageIsReadTwice", DamageIsReadTwice},
      {"RepairKeepsTheLock", RepairKeepsTheLock},
      {"RepairKeepsOtherJobs", RepairKeepsOtherJobs},
      {"JobsGoOnAfterARepair", JobsGoOnAfterARepair},
      {"OneRowCostsOneRow", OneRowCostsOneRow},
      {"RottenSharedFilesAreCopiedAgain", RottenSharedFilesAreCopiedAgain},
      {"VerifyLetsWritersIn", VerifyLetsWritersIn},
      {"LinksAreNotFollowed", LinksAreNotFollowed},
      {"UnmarkedFoldersStay", UnmarkedFoldersStay},
      {"OutputsStayOutside", OutputsStayOutside},
      {"MissingFilesAreDamage", MissingFilesAreDamage},
      {"ClaimedLengthsAreCompared", ClaimedLengthsAreCompared},
      {"ForksAreNoticed", ForksAreNoticed},
      {"ForksMayExit", ForksMayExit},
      {"ThreadsThatDoNotStartAreErrors", ThreadsThatDoNotStartAreErrors},
  };
  return complaints;
}

std::string UnfitForSanitizers(const std::string& name) {
  static const std::map<std::string, std::string> reasons = {
      // The sanitizer uses a pipe to test whether a vtable is readable. Without a free descriptor
      // it reports a valid object as invalid (LLVM, IsAccessibleMemoryRange).
      {"FewDescriptorsAreNoDamage", "a sanitizer needs descriptors to look at a vtable"},
      {"FewDescriptorsKeepTheDelta", "a sanitizer needs descriptors to look at a vtable"},
      {"ForksAreNoticed", "children of a sanitized process with threads hang"},
      {"ForksMayExit", "children of a sanitized process with threads hang"},
      {"ThreadsThatDoNotStartAreErrors", "a sanitizer makes the stacks of threads itself"},
  };
  const auto reason = reasons.find(name);
  return reason == reasons.end() ? std::string() : reason->second;
}

}  // namespace rhizome::testing
