#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/link_training.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The state of a training of a table, except its rows. It is the progress of the table's
/// checkpoints (RowTable::Checkpoint).
struct TableProgress {
  std::uint64_t epoch = 0;               ///< complete epochs
  std::uint64_t batch = 0;               ///< completed batches of the epoch in progress
  std::uint64_t steps = 0;               ///< batches that had edges, over all epochs
  std::vector<float> relations;          ///< rows, [value | state]
  TableModelEpoch current;               ///< of the epoch in progress; its loss is a sum
  std::vector<TableModelEpoch> reports;  ///< of the complete epochs
};

/// Encodes the progress of the job with a description (TableJob::description).
std::vector<std::byte> EncodeTableProgress(const TableProgress& progress,
                                           const std::string& description);

/// Errors: kInvalidArgument, another job wrote it, naming the differences; kCorruption.
Result<TableProgress> DecodeTableProgress(std::span<const std::byte> bytes,
                                          const std::string& description);

}  // namespace internal
}  // namespace rhizome
