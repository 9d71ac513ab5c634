#pragma once

#include "cli.h"
#include "rhizome/index/graph.h"

namespace rhizome {

/// --topology, shared by the verbs that sample. `place` must live as long as `verb`.
void AddTopologyFlag(CLI::App& verb, TopologyPlace& place);

/// --io: which IoQueue reads.
void AddIoFlag(CLI::App& verb, IoMaker& maker, const std::string& help);

/// The same for verbs that compare with mapped files.
void AddBaselineIoFlag(CLI::App& verb, IoMaker& maker, const std::string& help);

inline constexpr const char* kNeighborCacheFlag = "--neighbor-cache";
inline constexpr const char* kNeighborCacheHelp =
    "Memory for the lists most worth it, with --topology direct; 0: none";

/// What is printed of lists that were read from disk.
struct ListReadsFields {
  std::uint64_t entries = 0;  ///< neighbours looked up
  std::uint64_t lists = 0;    ///< that they were looked up in
  std::uint64_t hits = 0;     ///< of those, in the neighbour cache
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  double mean_depth = 0;
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
};
Json ListReadsJson(const ListReadsFields& fields);

}  // namespace rhizome
