#include "tools/import/gnn_flags.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "rhizome/policies.h"
#include "tools/cli/text.h"
#include "tools/cli/topology_flags.h"
#include "tools/import/layout_flags.h"
#include "tools/import/neighbor_flags.h"

// Flags shared by `train`, `infer`, `plan infer` and `export --predictions`, one function per group
// of flags, and the text of their notes.

namespace rhizome {

const char* const kIgnoredHelp =
    "The networks take all vertices and all edges for alike: types and edge attributes are not "
    "used\n"
    "but to draw neighbours, and one direction of directed edges unless --direction is both. What "
    "a\n"
    "job does not use of a graph is said in a note, and in `ignored` in the JSON.\n";

JobNote PrintsNotes(const Session& session) {
  return [&session](std::string_view note) { Tell(session, "note", note); };
}

std::string PercentOrNone(const Json& share) { return share.is_null() ? "none" : Percent(share); }

void AddGnnMemoryFlags(CLI::App& verb, std::uint64_t& memory_bytes, PolicyKind& cache,
                       std::optional<std::uint64_t>& cache_bytes) {
  AddSize(verb, "--memory", memory_bytes, "Bound on memory, beyond the bare process");
  std::vector<std::pair<std::string, PolicyKind>> policies;
  for (const PolicyKind kind : AllPolicies()) policies.emplace_back(PolicyName(kind), kind);
  AddChoice<PolicyKind>(verb, "--cache", cache, std::move(policies), "What the buffer pool keeps");
  AddSize(verb, "--cache-bytes", cache_bytes,
          "Size of the buffer pool; default: what --memory leaves");
}

namespace {

void AddChunkCacheFlag(CLI::App& verb, InferOptions& options) {
  std::string names;
  for (const PolicyKind kind : AllPolicies()) names += std::string(PolicyName(kind)) + "|";
  names += "cached-first";
  verb.add_option_function<std::string>(
          "--cache",
          [&options, names](const std::string& given) {
            options.tuning.cached_first = given == "cached-first";
            const auto policy =
                options.tuning.cached_first ? PolicyKind::kFifo : ParsePolicy(given);
            if (!policy)
              throw CLI::ValidationError("--cache", "'" + given + "' is not one of " + names);
            options.tuning.cache = *policy;
          },
          "What the cache of chunks keeps; cached-first: as fifo, and of what a block needs the "
          "chunks that are there are taken before others are read")
      ->type_name(names)
      ->default_str("belady");
}

void AddLayoutFlag(CLI::App& verb, std::optional<RowRule>& layout) {
  constexpr const char* kNames =
      "auto|stored|natural|pds|bfs|first-use|references|block-count|blocks";
  verb.add_option_function<std::string>(
          "--layout",
          [&layout](const std::string& given) {
            layout.reset();
            if (given == "auto") return;
            const auto rule = ParseLayout(given + "/stored");
            if (!rule || rule->rows == RowRule::kRandom)
              throw CLI::ValidationError("--layout", "'" + given + "' is not one of " + kNames);
            layout = rule->rows;
          },
          "Order of the rows between two layers; auto: that which reads least, by counting")
      ->type_name(kNames)
      ->default_str("auto");
}

/// Adds --fanout and the flags related to it.
void AddWalkFlags(CLI::App& verb, InferOptions& options) {
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
  AddNeighborFlags(verb, options.sampling, options.edge_weights);
}

void AddFeaturesFlag(CLI::App& verb, std::string& features) {
  verb.add_option("--features", features, "Array of input rows")
      ->type_name("NAME")
      ->capture_default_str();
}

void AddSeedFlag(CLI::App& verb, InferOptions& options) {
  verb.add_option("--seed", options.seed, "Of sampled neighbours")
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void AddGnnArrayFlags(CLI::App& verb, std::string& features, std::string& labels,
                      std::string& split) {
  AddFeaturesFlag(verb, features);
  verb.add_option("--labels", labels, "Array of classes, integers [rows, 1]")
      ->type_name("NAME")
      ->capture_default_str();
  CLI::Option* const whole =
      verb.add_option("--split", split, "Array: 0 train, 1 valid, 2 test, 255 none")
          ->type_name("NAME")
          ->capture_default_str();
  verb.add_option_function<std::string>(
          "--split-column",
          [&split](const std::string& given) {
            if (given.find(':') == given.npos) {
              throw CLI::ValidationError(
                  "--split-column",
                  "'" + given + "' is not NAME:K, with the number of a column from 0");
            }
            split = given;
          },
          "Instead of --split, column K (from 0) of an array with a split in each column")
      ->type_name("NAME:K")
      ->excludes(whole);
}

void AddInferModeFlag(CLI::App& verb, InferOptions& options) {
  AddChoice<InferMode>(
      verb, "--mode", options.mode,
      {{"layerwise", InferMode::kLayerwise}, {"samplewise", InferMode::kSamplewise}},
      "Layer by layer, each vertex once; or each vertex with its own neighbourhood");
}

void AddPredictionFlags(CLI::App& verb, InferOptions& options) {
  const std::size_t before = verb.get_options().size();
  AddFeaturesFlag(verb, options.features);
  AddInferModeFlag(verb, options);
  AddWalkFlags(verb, options);
  AddSeedFlag(verb, options);
  AddThreads(verb, options.threads);
  AddScratch(verb, options.scratch);
  const std::vector<CLI::Option*> all = verb.get_options();
  for (std::size_t i = before; i < all.size(); ++i) all[i]->group("Options of --predictions");
}

void AddInferFlags(CLI::App& verb, InferOptions& options) {
  AddGnnArrayFlags(verb, options.features, options.labels, options.split);
  AddWalkFlags(verb, options);
  verb.add_flag("--scores", options.scores, "Store class scores instead of the last hidden layer");
  AddSize(verb, "--memory", options.memory_bytes, "Bound on memory, beyond the bare process");
  AddChunkCacheFlag(verb, options);
  AddSize(verb, "--cache-bytes", options.tuning.cache_bytes,
          "Size of the cache of chunks; default: what --memory leaves");
  AddLayoutFlag(verb, options.tuning.layout);
  AddTopologyFlag(verb, options.topology);
  AddSize(verb, kNeighborCacheFlag, options.tuning.neighbor_cache_bytes,
          std::string(kNeighborCacheHelp) + " (the default: every list is read in order)");
  AddIoFlag(verb, options.tuning.io, "How lists are read with --topology direct");
  verb.add_option("--block-rows", options.tuning.block_rows,
                  "Vertices computed at a time; 0: as many as --memory holds sums of")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 32))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--chunk-rows", options.chunk_rows, "Rows of a chunk of the result; 0: chosen")
      ->check(CLI::Range(std::uint64_t{0}, kMaxRows))
      ->type_name("N")
      ->capture_default_str();
  AddInnerRowsFlag(verb, options.inner_rows);
  AddSeedFlag(verb, options);
  AddThreads(verb, options.threads);
  AddCodecFlag(verb, options.codec);
}

}  // namespace rhizome
