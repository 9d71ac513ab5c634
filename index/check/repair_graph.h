#pragma once

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/repair.h"

namespace RHIZOME_API rhizome {

/// RepairStore (storage/repair.h), which here also understands the files of the graph. What it
/// derives, as far as the rest is sound: one direction of the order from the other, entry by entry;
/// the sorted side of the external ids from the ids; of a partition the lists of one direction,
/// with their edge types and edge ids, from those of the other, and what it says of boundary
/// vertices from the other partitions. It must have the hash that was committed. Memory: the
/// largest partition several times, and 16 bytes a vertex.
Result<RepairReport> RepairGraph(FileSystem& fs, const Path& store, RepairOptions options,
                                 const JobControl& control);

}  // namespace rhizome
