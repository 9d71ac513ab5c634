#include "tools/cli/topology_flags.h"

namespace rhizome {

void AddTopologyFlag(CLI::App& verb, TopologyPlace& place) {
  AddChoice<TopologyPlace>(verb, "--topology", place,
                           {{"memory", TopologyPlace::kMemory}, {"direct", TopologyPlace::kDirect}},
                           "Neighbour lists in memory, or read from disk by the block");
}

void AddIoFlag(CLI::App& verb, IoMaker& maker, const std::string& help) {
  AddChoice<IoMaker>(
      verb, "--io", maker,
      {{"auto", IoMaker::kAuto}, {"uring", IoMaker::kUring}, {"pread", IoMaker::kPread}}, help);
}

void AddBaselineIoFlag(CLI::App& verb, IoMaker& maker, const std::string& help) {
  AddChoice<IoMaker>(verb, "--io", maker,
                     {{"auto", IoMaker::kAuto},
                      {"uring", IoMaker::kUring},
                      {"pread", IoMaker::kPread},
                      {"mmap", IoMaker::kMapped}},
                     help + "; mmap: out of mapped files, as a baseline");
}

Json ListReadsJson(const ListReads& reads) {
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  return {{"lists", reads.lists},
          {"reads", reads.reads},
          {"bytes_read", reads.bytes_read},
          {"bytes_read_per_edge", share(reads.bytes_read, reads.entries)},
          {"hits", reads.hits},
          {"hit_rate", share(reads.hits, reads.lists)},
          {"mean_depth", reads.mean_depth},
          {"maker", IoMakerName(reads.maker)},
          {"direct", reads.direct}};
}

}  // namespace rhizome
