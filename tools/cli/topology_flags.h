#pragma once

#include "cli.h"
#include "rhizome/cache/read_counts.h"
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
Json ListReadsJson(const ListReads& reads);

}  // namespace rhizome
