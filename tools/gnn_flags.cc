#include "gnn_flags.h"

#include "layout_flags.h"

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

void AddInferFlags(CLI::App& verb, InferOptions& options) {
  AddGnnArrayFlags(verb, options.features, options.labels, options.split);
  verb.add_option_function<std::string>(
          "--fanout",
          [&options](const std::string& given) {
            const auto fanouts = ParseFanouts(given);
            if (!fanouts) {
              throw CLI::ValidationError("--fanout",
                                         "'" + given + "' is not all or a list such as 10,10");
            }
            options.fanouts = given == "all" ? std::vector<std::int64_t>() : *fanouts;
          },
          "Neighbours of each layer")
      ->type_name("all|N,N,...")
      ->default_str("all");
  verb.add_flag("--scores", options.scores, "Store class scores instead of the last hidden layer");
  AddGnnMemoryFlags(verb, options.memory_bytes, options.cache, options.cache_bytes);
  verb.add_option("--block-rows", options.block_rows, "Vertices computed at a time")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--chunk-rows", options.chunk_rows, "Rows of a chunk of the result; 0: chosen")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--seed", options.seed, "Of sampled neighbours")
      ->type_name("N")
      ->capture_default_str();
  AddThreads(verb, options.threads);
  AddCodecFlag(verb, options.codec);
}

}  // namespace rhizome
