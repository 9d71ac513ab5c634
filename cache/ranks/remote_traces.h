#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/cache/row_homes.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// A training over ranks, as far as its minibatches depend on it.
struct RemoteTraceOptions {
  std::string split = "split";  ///< array, or NAME:K; its training vertices are seeds
  std::uint32_t ranks = 4;
  std::vector<std::int64_t> fanouts = {25, 10};
  std::uint64_t batch_size = 1000;  ///< seeds of a home in a step, on average
  std::uint32_t epochs = 1;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
};

/// The rows that minibatches of one rank ask of the others: a step for each minibatch, its distinct
/// rows that other ranks have. Rows of its own disk are left out.
struct RemoteTrace {
  Trace rows;
  std::vector<std::size_t> epochs = {0};  ///< [epochs + 1] the step that each begins with
  std::uint64_t rows_requested = 0;       ///< its own included
  std::uint64_t epoch_steps = 0;          ///< minibatches of an epoch
  std::vector<Row> training_rows;         ///< its seeds
};

/// Samples the training minibatches of each rank, which are those of HomeEpochs. Errors: those of
/// CheckRanks, of ReadLabels and of sampling; kInvalidArgument, no epochs, no seeds in a minibatch,
/// or no training vertices; kInterrupted. Memory: 8 bytes for each row that is asked for.
Result<std::vector<RemoteTrace>> DrawRemoteTraces(const GraphSnapshot& graph, const RowHomes& homes,
                                                  const RemoteTraceOptions& options,
                                                  const JobControl& control);

}  // namespace rhizome::inline internal
