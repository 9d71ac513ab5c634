#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace rhizome::testing {

/// The result of a check: what is wrong, or nothing if all is well. Each check makes a store and
/// harms it or its surroundings. The checks are here because the tests of seeded mistakes run them
/// too.
using Complaint = std::optional<std::string>;

/// Files that cannot be opened, listed or read, for any reason that does not prove damage, make
/// verify of a sound store report no damage, and make repair of a damaged store change nothing.
Complaint FaultsAreNoDamage();

/// The same holds with few free descriptors, also for RocksDB's files.
Complaint FewDescriptorsAreNoDamage();

/// A repair of the catalogue with few free descriptors loses no commit of the delta.
Complaint FewDescriptorsKeepTheDelta();

/// Bytes that are read wrongly only once are no reason to repair anything.
Complaint DamageIsReadTwice();

/// No writer can start between a repair's check and its last change.
Complaint RepairKeepsTheLock();

/// Repair leaves the scratch folders of running jobs alone.
Complaint RepairKeepsOtherJobs();

/// A repair beside a writer is refused and changes nothing. Readers and jobs that began before a
/// repair go on after it: they read on, and publish what they made.
Complaint JobsGoOnAfterARepair();

/// In a damaged chunk of layout row only the rows with wrong checksums are lost.
Complaint OneRowCostsOneRow();

/// A file of an earlier backup that is damaged by now is not shared but copied again.
Complaint RottenSharedFilesAreCopiedAgain();

/// A verification does not block writers, neither while it reads nor while it checks whether there
/// is one.
Complaint VerifyLetsWritersIn();

/// Opening a store follows no link in it, and removes nothing beyond one.
Complaint LinksAreNotFollowed();

/// Opening a store does not remove a folder in scratch/ without a job's mark.
Complaint UnmarkedFoldersStay();

/// No output that a user asks for is put into a store or a folder of backups.
Complaint OutputsStayOutside();

/// Missing files of a store are reported as damage, not as a mistake of the user's.
Complaint MissingFilesAreDamage();

/// No memory is allocated for rows of a file that is shorter than the manifest says.
Complaint ClaimedLengthsAreCompared();

/// A forked child may not use what it inherited, and the parent is not affected.
Complaint ForksAreNoticed();

/// A child of a writer that calls exit() terminates.
Complaint ForksMayExit();

/// If the system gives no thread, a compaction fails and changes nothing, and the next one
/// succeeds.
Complaint ThreadsThatDoNotStartAreErrors();

/// Returns all checks, by name.
const std::map<std::string, std::function<Complaint()>>& Complaints();

/// Returns why this check cannot run under a sanitizer; empty if it can.
std::string UnfitForSanitizers(const std::string& name);

}  // namespace rhizome::testing
