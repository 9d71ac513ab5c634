#pragma once

#include <string>

#include "storage/io/io_queue.h"
#include "tools/cli/cli.h"
#include "tools/cli/rank_flags.h"

namespace rhizome {

struct DoctorRankFlags {
  RankFlags ranks;
  std::string store;  ///< store whose rows the ranks serve to measure the rate; empty: not measured
  std::string features;  ///< the array of rows
  IoMaker io = IoMaker::kAuto;
};

/// Examines the ranks of a job: their hosts, their MPI, the speed of each pair and, if a store is
/// given, the rate at which they serve its rows. All ranks call it. The answer of rank 0 describes
/// all ranks; the other ranks print no answer.
/// Errors: as OpenRanks, LocalRanks, the transport and MeasureServing; kInvalidArgument, neither a
/// launcher nor a number of ranks.
Result<Answer> ExamineRanks(const DoctorRankFlags& flags, Session& session);

}  // namespace rhizome
