#include "tools/import/gnn_flags.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "cache/layout/pass_layout.h"
#include "gnn/options/infer_fields.h"
#include "rhizome/policy.h"
#include "tools/cli/text.h"
#include "tools/import/layout_flags.h"

// Flags shared by `train`, `infer`, `plan` and `export --predictions`, from the tables of their
// options, and the text of their notes.

namespace rhizome {

const char* const kIgnoredHelp =
    "Models ignore the types of vertices except for their input arrays, and of edges except for\n"
    "sampling; they ignore edge attributes other than weights and times, and use one direction of\n"
    "directed edges unless --direction is both. A note, and `ignored` in the JSON, report what a "
    "job ignored.\n";

JobNote PrintsNotes(const Session& session) {
  return [&session](std::string_view note) { Tell(session, "note", note); };
}

std::string PercentOrNone(const Json& share) { return share.is_null() ? "none" : Percent(share); }

std::string DescribeEdges(const Json& fields) {
  const std::string direction = fields["direction"];
  const bool weights = fields["edge_weights"];
  if (direction == "in" && !weights) return "";
  return fmt::format("walked {}{}\n",
                     direction == "both" ? "edges of both directions" : direction + "-edges",
                     weights ? ", each with its weight" : "");
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
          "Replacement policy of the chunk cache; cached-first: fifo, and chunks in the cache are "
          "used before others are read")
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
          "Order of rows between two layers; auto: the order that needs the fewest reads, counted")
      ->type_name(kNames)
      ->default_str("auto");
}

/// Adds --split-column, another way to name a split.
void AddSplitColumnFlag(CLI::App& verb, std::string& split) {
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
          "Instead of --split: column K (from 0) of an array with a split in each column")
      ->type_name("NAME:K")
      ->excludes(verb.get_option("--split"));
}

/// Adds the rows of EachDataField.
template <typename Accepts>
void AddDataRows(OptionFlags& flags, DataOptions& data, const Accepts& accepts) {
  EachDataField(
      [&](const Option& row, auto& field) {
        if (!accepts(row)) return;
        if (row.field == "data.features") {
          flags.AddInputs(row, data.features, data.inputs);
        } else {
          flags(row, field);
        }
      },
      data);
}

/// Adds the resources of an inference, which does not read mapped files.
void AddInferResources(OptionFlags& flags, ResourceOptions& resources) {
  EachResourceField(
      [&flags](const Option& row, auto& field) {
        flags(row.field == "resources.io" ? row.Only("auto|uring|pread") : row, field);
      },
      resources);
}

}  // namespace

void AddDataFlags(OptionFlags& flags, CLI::App& verb, DataOptions& data) {
  AddDataRows(flags, data, [](const Option&) { return true; });
  AddSplitColumnFlag(verb, data.split);
}

void AddPredictionFlags(CLI::App& verb, InferOptions& options) {
  const std::size_t before = verb.get_options().size();
  OptionFlags flags(verb);
  AddDataRows(flags, options.data, [](const Option& row) {
    return row.field != "data.labels" && row.field != "data.split" && row.field != "data.topology";
  });
  EachComputedField(flags, options);
  EachResourceField(
      [&flags](const Option& row, auto& field) {
        if (row.field == "resources.threads") flags(row, field);
      },
      options.resources);
  const std::vector<CLI::Option*> all = verb.get_options();
  for (std::size_t i = before; i < all.size(); ++i) all[i]->group("Options of --predictions");
}

void AddInferFlags(CLI::App& verb, InferOptions& options) {
  OptionFlags flags(verb);
  AddDataFlags(flags, verb, options.data);
  EachComputedField(
      [&flags](const Option& row, auto& field) {
        if (row.field == "fanouts" || row.field == "seed") flags(row, field);
      },
      options);
  EachLayerwiseField(flags, options);
  AddChunkCacheFlag(verb, options);
  AddLayoutFlag(verb, options.tuning.layout);
  AddInferResources(flags, options.resources);
  AddInnerRowsFlag(verb, options.inner_rows);
  AddCodecFlag(verb, options.codec);
}

InferOptions CompleteInferOptions(InferOptions options) {
  if (options.fanouts == std::vector<std::int64_t>{kAllNeighbors}) options.fanouts.clear();
  return options;
}

}  // namespace rhizome
