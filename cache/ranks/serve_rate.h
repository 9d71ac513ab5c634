#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/transport.h"
#include "storage/io/io_queue.h"

namespace RHIZOME_API rhizome {

/// Parameters of the measurement.
struct ServeRateOptions {
  std::string features = "feat";    ///< array whose rows are served, in layout `row`
  IoMaker io = IoMaker::kAuto;      ///< how owners read the rows
  std::uint64_t batch_rows = 8192;  ///< rows requested together
  std::uint64_t rounds = 5;         ///< rounds of served rows and of plain replies each,
                                    ///< alternating
  std::uint64_t batches_a_round = 4;
};

/// Rate at which one rank serves rows to another, compared to plain replies of equal size.
struct ServeRate {
  std::uint32_t asker = 0, owner = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t batch_rows = 0;
  double rows_per_second = 0;        ///< read by the owner, sent, and verified; median of the
                                     ///< rounds
  double plain_rows_per_second = 0;  ///< equal bytes from memory, unverified; median of the rounds
  double processor_seconds_per_row = 0;  ///< for served rows, of both processes together
};

/// Measures how fast each rank serves its rows to every rank with a lower number, one pair at a
/// time. All ranks must make this call, with a graph of one store; each returns the pairs in which
/// it requested rows. Rows are drawn with a fixed seed, without repetition within a batch, among
/// the rows that distributed training with this number of ranks would request from the owner. Rows
/// in the page cache are read from there, unless `io` and the file system bypass it.
/// Errors: any error of opening and reading the array; kInvalidArgument, more ranks than homes; a
/// rank is lost or has failed; kInterrupted.
Result<std::vector<ServeRate>> MeasureServing(const GraphSnapshot& graph, Transport& transport,
                                              const ServeRateOptions& options,
                                              const JobControl& control);

}  // namespace rhizome
