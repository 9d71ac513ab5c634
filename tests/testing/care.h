#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace rhizome::testing {

/// The result of a check: a description of the failure, or nullopt on success. Each check creates a
/// store and damages it or its environment. The checks are here because both the unit tests and the
/// tests with seeded faults run them.
using Complaint = std::optional<std::string>;

/// If files cannot be opened, listed or read for a reason that does not prove damage, verify of an
/// intact store reports no damage, and repair of a damaged store changes nothing.
Complaint FaultsAreNoDamage();

/// The same with few free descriptors, also for RocksDB's files.
Complaint FewDescriptorsAreNoDamage();

/// A repair of the catalogue with few free descriptors loses no commit of the delta.
Complaint FewDescriptorsKeepTheDelta();

/// Repair changes nothing because of bytes that were read wrongly only once.
Complaint DamageIsReadTwice();

/// No writer can start between a repair's check and its last change.
Complaint RepairKeepsTheLock();

/// Repair leaves the scratch folders of running jobs alone.
Complaint RepairKeepsOtherJobs();

/// A repair fails and changes nothing while there is a writer. Readers and jobs that started before
/// a repair remain usable after it: readers can read, and jobs can publish their arrays.
Complaint JobsGoOnAfterARepair();

/// In a damaged chunk of layout row only the rows with wrong checksums are lost.
Complaint OneRowCostsOneRow();

/// A damaged file of an earlier backup is not shared but copied again.
Complaint RottenSharedFilesAreCopiedAgain();

/// A verification does not block writers, neither while it reads nor while it checks for a writer.
Complaint VerifyLetsWritersIn();

/// Opening a store does not follow links inside it, and removes nothing behind a link.
Complaint LinksAreNotFollowed();

/// Opening a store does not remove a folder in scratch/ that has no job mark.
Complaint UnmarkedFoldersStay();

/// No output path of a user may be inside a store or a folder of backups.
Complaint OutputsStayOutside();

/// Missing files of a store are reported as damage, not as a user error.
Complaint MissingFilesAreDamage();

/// No memory is allocated for the rows of a file that is shorter than the manifest says.
Complaint ClaimedLengthsAreCompared();

/// A forked child cannot use the inherited handles, and the parent is not affected.
Complaint ForksAreNoticed();

/// The child of a writer terminates when it calls exit().
Complaint ForksMayExit();

/// If no thread can be started, a compaction fails and changes nothing, and the next one succeeds.
Complaint ThreadsThatDoNotStartAreErrors();

/// Returns all checks by name.
const std::map<std::string, std::function<Complaint()>>& Complaints();

/// Returns why a check cannot run under a sanitizer, or an empty string if it can.
std::string UnfitForSanitizers(const std::string& name);

}  // namespace rhizome::testing
