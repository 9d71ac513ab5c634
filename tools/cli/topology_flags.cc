#include "topology_flags.h"

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

Json ListReadsJson(const ListReadsFields& fields) {
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  return {{"lists", fields.lists},
          {"hits", fields.hits},
          {"hit_rate", share(fields.hits, fields.lists)},
          {"reads", fields.reads},
          {"bytes_read", fields.bytes_read},
          {"bytes_read_per_edge", share(fields.bytes_read, fields.entries)},
          {"mean_depth", fields.mean_depth},
          {"maker", IoMakerName(fields.maker)},
          {"direct", fields.direct}};
}

}  // namespace rhizome
