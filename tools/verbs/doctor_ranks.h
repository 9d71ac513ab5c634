#pragma once

#include "cli.h"
#include "rank_flags.h"

namespace rhizome {

/// Examines the ranks of a job: where they are, what their MPI is, and how fast each pair is. All
/// ranks call it; the answer of the first describes them, those of the others are silent.
/// Errors: those of OpenRanks, LocalRanks and the transport; kInvalidArgument, neither a launcher
/// nor a number of ranks.
Result<Answer> ExamineRanks(const RankFlags& flags, Session& session);

}  // namespace rhizome
