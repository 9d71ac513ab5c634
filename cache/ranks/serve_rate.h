#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace RHIZOME_API rhizome {

/// The array that is served, and how often.
struct ServeRateOptions {
  std::string features = "feat";    ///< the array whose rows are served, in layout `row`
  IoMaker io = IoMaker::kAuto;      ///< how owners read them
  std::uint64_t batch_rows = 8192;  ///< that are asked for together
  std::uint64_t rounds = 5;         ///< of each, served rows and plain replies, in turns
  std::uint64_t batches_a_round = 4;
};

/// How fast a rank serves its rows to another, beside plain replies of as many bytes.
struct ServeRate {
  std::uint32_t asker = 0, owner = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t batch_rows = 0;
  double rows_per_second = 0;        ///< read by the owner, sent, and checked: median of the rounds
  double plain_rows_per_second = 0;  ///< the bytes of as many rows from memory, unchecked: likewise
  double processor_seconds_per_row = 0;  ///< of served rows, of both processes together
};

/// Measures how fast each rank serves its rows to each rank before it, one pair after another. All
/// ranks make this call, with a graph of one store; a rank returns the pairs that it asked in.
/// Rows are drawn without repetition within a batch, by a seed, and are those that training over
/// so many ranks would ask this owner for; what lies in the page cache comes from there unless
/// `io` and the file system read past it.
/// Errors: those of opening and reading the array; kInvalidArgument, more ranks than homes; a rank
/// is lost or has failed; kInterrupted.
Result<std::vector<ServeRate>> MeasureServing(const GraphSnapshot& graph, Transport& transport,
                                              const ServeRateOptions& options,
                                              const JobControl& control);

}  // namespace rhizome
