#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/store_options.h"

namespace RHIZOME_API rhizome {

class FileDeriver;

/// A defect of a store, proven by the bytes that were read or by a missing file.
struct Damage {
  std::string file;                ///< relative to the store
  std::uint64_t offset_bytes = 0;  ///< from the start of the file
  std::string what;                ///< the defect in words

  /// True if only an earlier version of the current generation's arrays refers to the file, so that
  /// the current version is intact. The next writer removes the file once no process reads that
  /// version.
  bool earlier = false;
};

/// A file that could not be read, for lack of permission, descriptors or memory, or because of a
/// device error. This does not mean that its bytes are damaged.
struct Unread {
  std::string file;  ///< relative to the store
  Status why;
};

/// The result of a verification.
struct VerifyReport {
  std::uint64_t files = 0;      ///< files that were checked
  std::uint64_t bytes = 0;      ///< bytes that were read
  std::vector<Damage> damaged;  ///< files that are damaged or missing
  std::vector<Unread> unread;   ///< files that could not be read; they may be intact or not

  /// True if the rows of the current generation's row arrays were compared with their sidecars, so
  /// that VerifyGraph need not read them again.
  bool rows_checked = false;

  /// Leftovers of killed writers and jobs, which are not damage: files, generations and scratch
  /// folders, relative to the store. The next opening for writing removes them. In a folder of
  /// backups: files that the next backup removes and, beginning with "backups/", truncated records.
  std::vector<std::string> orphans;

  /// Files and folders with names that stores never use (.DS_Store, lost+found), and folders in
  /// scratch/ without the mark of a job of this version. They are not damage, and are never
  /// removed.
  std::vector<std::string> strangers;
  bool ok() const { return damaged.empty() && unread.empty(); }

  /// Returns kCorruption if damage was found; otherwise the first error of `unread`, or OK.
  Status verdict() const;
};

/// A note on what repair did, or could not do, with a file or an array.
struct RepairNote {
  std::string what;  ///< a file, relative to the store, or an array ("array 'emb'")
  std::string how;   ///< in words
};

struct RepairOptions {
  /// If false, an array that lost rows is dropped. If true, it is kept with the values of
  /// FillLostRows (array_facts.h) in the lost rows, which its attribute "lost_rows" lists. An edge
  /// attribute is always kept if there are commits since the last compaction, because these have
  /// values of it.
  bool fill_holes = false;
  bool dry_run = false;            ///< change nothing, and report what would be done
  LockWait wait = {};              ///< time to wait for the writer's lock
  FileDeriver* deriver = nullptr;  ///< borrowed; nullptr: files that need it are lost
};

struct RepairReport {
  std::vector<Damage> found;            ///< by VerifyFiles, before the repair
  std::vector<RepairNote> rebuilt;      ///< files that have their committed content again
  std::vector<RepairNote> quarantined;  ///< files moved out of the store; `how` is the new path
  std::vector<RepairNote> lost;         ///< lost data, with advice
  std::string quarantine;               ///< the folder next to the store; empty if none was needed
  VerifyReport after;                   ///< by VerifyFiles, after the repair
};

}  // namespace rhizome
