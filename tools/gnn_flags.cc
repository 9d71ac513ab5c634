#include "gnn_flags.h"

namespace rhizome {

void AddGnnArrayFlags(CLI::App& verb, std::string& features, std::string& labels,
                      std::string& split) {
  verb.add_option("--features", features, "Array of input rows")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--labels", labels, "Array of classes, integers [rows, 1]")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--split", split, "Array: 0 train, 1 valid, 2 test, 255 none")
      ->type_name("NAME")
      ->capture_default_str();
}

void AddGnnMemoryFlags(CLI::App& verb, std::uint64_t& memory_bytes, PolicyKind& cache,
                       std::optional<std::uint64_t>& cache_bytes) {
  AddSize(verb, "--memory", memory_bytes, "Bound on memory, beyond the bare process");
  AddChoice<PolicyKind>(verb, "--cache", cache,
                        {{"belady", PolicyKind::kBelady},
                         {"cost", PolicyKind::kCost},
                         {"lru", PolicyKind::kLru},
                         {"fifo", PolicyKind::kFifo},
                         {"clock", PolicyKind::kClock},
                         {"s3fifo", PolicyKind::kS3Fifo},
                         {"static", PolicyKind::kStatic},
                         {"match", PolicyKind::kMatch},
                         {"none", PolicyKind::kNone}},
                        "What the buffer pool keeps");
  AddSize(verb, "--cache-bytes", cache_bytes,
          "Size of the buffer pool; default: what --memory leaves");
}

}  // namespace rhizome
