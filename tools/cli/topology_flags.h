#pragma once

#include "rhizome/graph.h"
#include "rhizome/job_report.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Adds --topology, which all verbs that sample share. `place` must outlive `verb`.
void AddTopologyFlag(CLI::App& verb, TopologyPlace& place);

/// Adds --io, which selects the kind of IoQueue that reads use.
void AddIoFlag(CLI::App& verb, IoMaker& maker, const std::string& help);

/// Adds --io with the additional choice of memory-mapped files, for verbs that measure them as a
/// baseline.
void AddBaselineIoFlag(CLI::App& verb, IoMaker& maker, const std::string& help);

inline constexpr const char* kNeighborCacheFlag = "--neighbor-cache";
inline constexpr const char* kNeighborCacheHelp =
    "Memory for the lists most worth it, with --topology direct; 0: none";

/// Returns the statistics of neighbour lists read from disk, as answers print them.
Json ListReadsJson(const ListReads& reads);

}  // namespace rhizome
