#pragma once

#include "cli.h"
#include "rhizome/cache/read_counts.h"
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
Json ListReadsJson(const ListReads& reads);

}  // namespace rhizome
