#pragma once

#include <cstdint>

#include "rhizome/export.h"
#include "rhizome/io_queue.h"

namespace RHIZOME_API rhizome {

/// The resources that a job may use.
struct ResourceOptions {
  std::uint32_t threads = 1;

  /// Memory limit of the whole process beyond its bare footprint, in bytes; 0: no limit.
  std::uint64_t memory_bytes = 0;

  /// How files are read in many small pieces: rows of features, and adjacency lists on disk.
  IoMaker io = IoMaker::kAuto;
};

}  // namespace rhizome
