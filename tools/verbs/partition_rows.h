#pragma once

#include <cstdint>
#include <string>

#include "index/homes/home_partitioner.h"
#include "index/partition/partition_input.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Input of `partition --rows` in addition to the edges.
struct RowsFlags {
  HomeOptions options;
  std::string seeds;   ///< a file of vertex numbers; empty: no vertex is a seed
  std::string beside;  ///< a file of homes made by another program, for comparison; empty: none
  std::string out;     ///< output file; empty: homes are measured but not written
};

/// Assigns rows to homes and measures the result; measures the homes of `beside` in the same way.
/// Errors: as DivideRows, naming the invalid file; kIoError.
Result<Answer> PartitionRows(const PartitionInput& input, const RowsFlags& flags, Session& session);

}  // namespace rhizome
