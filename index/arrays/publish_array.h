#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rhizome/array_change.h"
#include "rhizome/export.h"
#include "rhizome/job_control.h"
#include "rhizome/store.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A vertex array that a job computed for a snapshot. It has the rows of the generation's vertices
/// in its order, followed by the rows of the vertices that the delta added, in the order of their
/// ids, if the job computed them.
struct MadeArray {
  /// Describes the rows that are appended to an existing array, which this one replaces. After a
  /// compaction, all other rows, and rows that were put among these, come from the store.
  struct Appended {
    std::string array;  ///< the stored name
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  /// The job's snapshot. It pins the generation that determines the order of the rows.
  const Store& made_for;
  ArraySource source;              ///< the array comes first; files are sorted by path
  std::uint64_t memory_bytes = 0;  ///< for rows that change position; 0: 256 MiB
  std::optional<Appended> appended = {};
  double wait_seconds = 0;  ///< time to wait for the writer's lock (LockWait)
};

/// The generation in which an array was published, and the number of vertices without a row.
struct PublishReport {
  std::uint64_t generation = 0;  ///< the generation with the published array
  /// Number of vertices after the job's last one that are not deleted and have no row.
  std::uint64_t new_vertices = 0;
};

/// Runs ArrayChange::Run for a job's array. If compactions happened in between, the rows are first
/// permuted into the order of the current generation, below the source's root; vertices keep their
/// ids. The files of an array have one row for each vertex of the generation; rows of later
/// vertices are put into the delta under the array's array_id, before the array is committed.
/// (After a crash in between, they remain there, unused, until compaction.) New vertices that the
/// job did not have get the values of FillMissingRows, which `rows_given` records. In an array that
/// `infer` computed, all rows that later commits may have changed are marked (`stale_rows`,
/// NAME.stale), and the marks are published with it. Deleted vertices keep their rows. `steps`
/// receives the source to publish; it is called again if another compaction happens in between.
/// Errors: as ArrayChange::Run, which never changes another store than the one that the array was
/// computed for; kNotFound, the array to append to is gone; kOutOfSpace; kInterrupted.
Result<PublishReport> PublishMade(
    const Path& path, const MadeArray& made, const JobControl& control,
    const std::function<Status(ArrayChange& change, const ArraySource& source)>& steps);

}  // namespace internal
}  // namespace rhizome
