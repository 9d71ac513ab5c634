#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/ranks/row_homes.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// The options of distributed training that determine its minibatches.
struct RemoteTraceOptions {
  std::string split = "split";  ///< array, or NAME:K; its training vertices are the seeds
  std::uint32_t ranks = 4;
  std::vector<std::int64_t> fanouts = {25, 10};
  std::uint64_t batch_size = 1000;  ///< seeds per home and step, on average
  std::uint32_t epochs = 1;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
};

/// The rows that the minibatches of one rank request from other ranks: one step per minibatch, with
/// its distinct remote rows. Own rows are excluded.
struct RemoteTrace {
  Trace rows;
  std::vector<std::size_t> epochs = {0};  ///< [epochs + 1] first step of each epoch
  std::uint64_t rows_requested = 0;       ///< including own rows
  std::uint64_t epoch_steps = 0;          ///< minibatches per epoch
  std::vector<Row> training_rows;         ///< rows of its seeds
};

/// Samples the training minibatches of each rank, as defined by HomeEpochs. Errors: as CheckRanks,
/// ReadLabels and sampling; kInvalidArgument, no epochs, no seeds in a minibatch, or no training
/// vertices; kInterrupted. Memory: 8 bytes per requested row.
Result<std::vector<RemoteTrace>> DrawRemoteTraces(const GraphSnapshot& graph, const RowHomes& homes,
                                                  const RemoteTraceOptions& options,
                                                  const JobControl& control);

}  // namespace internal
}  // namespace rhizome
