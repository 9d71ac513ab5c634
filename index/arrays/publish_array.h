#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rhizome/storage/array_change.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// An array of vertices that a job made for a snapshot: rows of the generation's vertices in its
/// order, and behind them, if the job has them, those of the vertices that the delta added, in the
/// order of their ids.
struct MadeArray {
  /// Of an array that takes the place of one that is there, with rows appended to it: which rows
  /// those are. After a compaction the others, and what was put into these, are what the store
  /// has by then.
  struct Appended {
    std::string array;  ///< as it is stored
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  /// The snapshot, which the job has held since: it pins the generation whose rows the array has.
  const Store& made_for;
  ArraySource source;              ///< the array first; files by path
  std::uint64_t memory_bytes = 0;  ///< for rows that change their places; 0: 256 MiB
  std::optional<Appended> appended = {};
};

/// Where an array was published, and which vertices it has no row of.
struct PublishReport {
  std::uint64_t generation = 0;  ///< that it was published in
  std::uint64_t new_vertices =
      0;  ///< behind the job's last, and not deleted: it has no row of them
};

/// ArrayChange::Run for a job's array. If compactions came in between, the rows are brought into
/// the order of the generation that is current now, below the source's root: vertices keep their
/// ids. An array's files have a row for each vertex of the generation: rows of vertices that came
/// after it are put into its delta, before the array is committed, under its array_id (from a
/// crash in between they stay there, unseen, until compaction). New vertices that the job did not
/// have get rows as FillMissingRows has them, which `rows_given` says; of an array that `infer`
/// computed, all rows that later commits can have changed are marked (`stale_rows`, NAME.stale):
/// the marks are published with it. Deleted vertices keep their rows. `steps` gets the source to
/// publish; it is called again should a further compaction come in between.
/// Errors: those of ArrayChange::Run; kNotFound, the array to append to is gone; kOutOfSpace;
/// kInterrupted.
Result<PublishReport> PublishMade(
    const Path& path, const MadeArray& made, const JobControl& control,
    const std::function<Status(ArrayChange& change, const ArraySource& source)>& steps);

}  // namespace rhizome
