#pragma once

#include <cstdint>
#include <string>

#include "cli.h"
#include "rhizome/index/home_partitioner.h"
#include "rhizome/index/partition_input.h"

namespace rhizome {

/// The input of `partition --rows` besides the edges.
struct RowsFlags {
  HomeOptions options;
  std::string seeds;   ///< a file of vertex numbers; empty: no vertex is a seed
  std::string beside;  ///< a file of homes that another program made; empty: none
  std::string out;     ///< empty: homes are measured and not written
};

/// Divides rows, measures the homes, and those of `beside` in the same way. Errors: those of
/// DivideRows, naming the file that was wrong; kIoError.
Result<Answer> PartitionRows(const PartitionInput& input, const RowsFlags& flags, Session& session);

}  // namespace rhizome
