#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rhizome/index/partitioner.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// How RF, VB, EB, time and memory of partitioners grow with the graph and with the parts.
struct BenchPartitionOptions {
  std::vector<std::uint32_t> scales = {16, 18, 20};  ///< R-MAT of 2^scale vertices
  std::uint32_t edge_factor = 16;
  std::vector<std::uint32_t> partitions = {8};
  std::vector<PartitionerKind> partitioners = {PartitionerKind::kRefined, PartitionerKind::kAdaDne,
                                               PartitionerKind::kDne,     PartitionerKind::kHdrf,
                                               PartitionerKind::kDbh,     PartitionerKind::kHash2d};
  std::uint64_t seed = 1;   ///< of the graphs and of the first run
  std::uint32_t seeds = 1;  ///< runs each; the one with the median RF is shown
  std::uint32_t threads = 1;
  Path dir = ".";    ///< where the generated edges lie for the time being
  std::string plot;  ///< an .svg or .png file for gnuplot to draw, or empty
};

/// Graphs are undirected, simple and of permuted ids; `results` has a row for each scale,
/// partitioner and number of parts, `reference` what other programs gave once at
/// scale 20 in 8 parts: constants, which this does not run.
/// Errors: kInvalidArgument, a plot that is neither .svg nor .png; kNotFound, no gnuplot; those
/// of generating and partitioning.
Result<nlohmann::ordered_json> BenchPartition(const BenchPartitionOptions& options,
                                              const JobControl& control);

}  // namespace rhizome
