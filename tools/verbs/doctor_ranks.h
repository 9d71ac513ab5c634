#pragma once

#include <string>

#include "cli.h"
#include "rank_flags.h"
#include "rhizome/storage/io_queue.h"

namespace rhizome {

struct DoctorRankFlags {
  RankFlags ranks;
  std::string store;     ///< whose rows are served, to measure that; empty: none
  std::string features;  ///< its array
  IoMaker io = IoMaker::kAuto;
};

/// Examines the ranks of a job: where they are, what their MPI is, how fast each pair is, and with
/// a store how fast they serve its rows. All ranks call it; the answer of the first describes them,
/// those of the others are silent.
/// Errors: those of OpenRanks, LocalRanks, the transport and MeasureServing; kInvalidArgument,
/// neither a launcher nor a number of ranks.
Result<Answer> ExamineRanks(const DoctorRankFlags& flags, Session& session);

}  // namespace rhizome
