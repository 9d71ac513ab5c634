#pragma once

#include "cli.h"
#include "rhizome/index/graph.h"

namespace rhizome {

/// Adds --topology, which the verbs that sample share. `place` must outlive `verb`.
void AddTopologyFlag(CLI::App& verb, TopologyPlace& place);

/// Adds --io, which selects the IoQueue that reads.
void AddIoFlag(CLI::App& verb, IoMaker& maker, const std::string& help);

/// Adds --io with the further choice of mapped files, for verbs that compare with them.
void AddBaselineIoFlag(CLI::App& verb, IoMaker& maker, const std::string& help);

inline constexpr const char* kNeighborCacheFlag = "--neighbor-cache";
inline constexpr const char* kNeighborCacheHelp =
    "Memory for the lists most worth it, with --topology direct; 0: none";

/// The statistics of lists that were read from disk, as answers print them.
struct ListReadsFields {
  std::uint64_t entries = 0;  ///< neighbours looked up
  std::uint64_t lists = 0;    ///< lists that they were looked up in
  std::uint64_t hits = 0;     ///< of `lists`: found in the neighbour cache
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  double mean_depth = 0;
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
};
Json ListReadsJson(const ListReadsFields& fields);

}  // namespace rhizome
