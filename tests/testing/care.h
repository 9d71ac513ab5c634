#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace rhizome::testing {

/// What is wrong; nothing where all is well. Each makes a store of its own and harms it or its
/// surroundings. They stand here because the seeded mistakes are looked for by them, too.
using Complaint = std::optional<std::string>;

/// Files that cannot be opened, listed or read, for every reason but those that prove damage:
/// verify of a sound store calls nothing damaged, repair of a damaged one changes nothing.
Complaint FaultsAreNoDamage();

/// The same with few free descriptors, for RocksDB's files, too.
Complaint FewDescriptorsAreNoDamage();

/// A repair of the catalogue with few free descriptors loses no commit of the delta.
Complaint FewDescriptorsKeepTheDelta();

/// Bytes that are read wrongly once only are no reason to repair anything.
Complaint DamageIsReadTwice();

/// A writer never comes in between a repair's look and its last change.
Complaint RepairKeepsTheLock();

/// Repair leaves the scratch folders of jobs that run.
Complaint RepairKeepsOtherJobs();

/// A repair beside a writer is refused and changes nothing; readers and jobs that were there before
/// one go on after it: they read on, and publish what they made.
Complaint JobsGoOnAfterARepair();

/// Of a chunk of layout row only the rows are lost whose checksums do not hold.
Complaint OneRowCostsOneRow();

/// A file of an earlier backup that is rotten by now is not shared, but copied again.
Complaint RottenSharedFilesAreCopiedAgain();

/// A verification does not hold writers off, neither while it reads nor in the instants in which it
/// looks whether there is one.
Complaint VerifyLetsWritersIn();

/// Opening a store follows no link in it, and removes nothing beyond one.
Complaint LinksAreNotFollowed();

/// Nor does it remove a folder in scratch/ that no job has marked.
Complaint UnmarkedFoldersStay();

/// Nothing that a user asks for is put into a store or a folder of backups.
Complaint OutputsStayOutside();

/// What is missing of a store is damage, and no wrong word of the user's.
Complaint MissingFilesAreDamage();

/// No memory is taken for rows of a file that is shorter than the manifest says.
Complaint ClaimedLengthsAreCompared();

/// A forked child is refused what it inherited, and the parent notices nothing.
Complaint ForksAreNoticed();

/// A child of a writer that ends by exit() ends.
Complaint ForksMayExit();

/// Where the system gives no thread, a compaction fails and changes nothing, and the next is done.
Complaint ThreadsThatDoNotStartAreErrors();

/// All of them, by name.
const std::map<std::string, std::function<Complaint()>>& Complaints();

/// Why a sanitizer's runtime is no place to look for this one; empty where it may run.
std::string UnfitForSanitizers(const std::string& name);

}  // namespace rhizome::testing
