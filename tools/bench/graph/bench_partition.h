#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "index/partition/partitioner.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {

/// `bench partition`: replication factor, vertex and edge balance, time and memory of partitioners
/// as graphs and numbers of parts grow.
struct BenchPartitionOptions {
  std::vector<std::uint32_t> scales = {16, 18, 20};  ///< R-MAT of 2^scale vertices
  std::uint32_t edge_factor = 16;
  std::vector<std::uint32_t> partitions = {8};
  std::vector<PartitionerKind> partitioners = {PartitionerKind::kRefined, PartitionerKind::kAdaDne,
                                               PartitionerKind::kDne,     PartitionerKind::kHdrf,
                                               PartitionerKind::kDbh,     PartitionerKind::kHash2d};
  std::uint64_t seed = 1;  ///< seed of the graphs and of the first run
  /// runs per configuration; the one with the median replication factor is reported
  std::uint32_t seeds = 1;
  std::uint32_t threads = 1;
  Path dir = ".";    ///< folder of the generated edges, which are removed afterwards
  std::string plot;  ///< an .svg or .png file for gnuplot to draw, or empty
};

/// Graphs are undirected and simple, with permuted ids. `results` has a row per scale, partitioner
/// and number of parts. `reference` has constants, results of other programs at scale 20 in 8
/// parts, which are not run here.
/// Errors: as generating and partitioning; kInvalidArgument, a plot that is neither .svg nor .png;
/// kNotFound, gnuplot is not installed.
Result<nlohmann::ordered_json> BenchPartition(const BenchPartitionOptions& options,
                                              const JobControl& control);

}  // namespace rhizome
