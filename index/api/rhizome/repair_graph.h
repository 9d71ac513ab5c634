#pragma once

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/repair.h"

namespace RHIZOME_API rhizome {

/// Runs RepairStore (rhizome/repair.h) with knowledge of the graph's files. From intact data it
/// derives: one direction of the order from the other, entry by entry; the sorted side of the
/// external ids from the ids; the chunks of coordinates from the order and the ids; the lists of
/// one direction of a partition, with their edge types and edge ids, from the other direction; and
/// a partition's data on boundary vertices from the other partitions. A derived file must have the
/// committed hash.
/// Memory: the largest partition several times, and 16 bytes a vertex.
/// Errors: as RepairStore.
Result<RepairReport> RepairGraph(FileSystem& fs, const Path& store, RepairOptions options,
                                 const JobControl& control);

}  // namespace rhizome
