#pragma once

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/repair.h"

namespace RHIZOME_API rhizome {

/// Runs RepairStore (storage/repair.h) with an understanding of the graph's files. As far as the
/// rest is sound, it derives: one direction of the order from the other, entry by entry; the sorted
/// side of the external ids from the ids; the chunks of coordinates from the order and the ids; of
/// a partition, the lists of one direction, with their edge types and edge ids, from those of the
/// other, and its data on boundary vertices from the other partitions. A derived file must have the
/// committed hash. Memory: the largest partition several times, and 16 bytes a vertex.
/// Errors: those of RepairStore.
Result<RepairReport> RepairGraph(FileSystem& fs, const Path& store, RepairOptions options,
                                 const JobControl& control);

}  // namespace rhizome
