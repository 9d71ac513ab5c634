#include "tools/import/hold_out_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/text.h"

namespace rhizome {
namespace {

constexpr const char* kFlag = "--hold-out";

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == text.npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::optional<double> ParseShare(const std::string& text) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return share;
}

/// Parses "valid=SHARE,test=SHARE[:RELATION,...]".
void ParseHoldOut(const std::string& given, HoldOutOptions& options) {
  const auto refuse = [&](const std::string& reason) {
    throw CLI::ValidationError(kFlag, fmt::format("'{}': {}", given, reason));
  };
  const std::size_t colon = given.find(':');
  for (const std::string& part : SplitAtCommas(std::string_view(given).substr(0, colon))) {
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    if (name != "valid" && name != "test")
      refuse(fmt::format("'{}' is no set; the sets are valid and test", name));
    const auto share = equals == part.npos ? std::nullopt : ParseShare(part.substr(equals + 1));
    if (!share) refuse(fmt::format("give {} a share, such as {}=.05", name, name));
    double& field = name == "valid" ? options.valid : options.test;
    if (field != 0) refuse(fmt::format("{} is given twice", name));
    field = *share;
  }
  if (colon == given.npos) return;
  for (std::string& relation : SplitAtCommas(std::string_view(given).substr(colon + 1))) {
    if (relation.empty()) refuse("the name of a relation is empty");
    options.relations.push_back(std::move(relation));
  }
}

}  // namespace

void AddHoldOutFlags(CLI::App& verb, HoldOutOptions& options) {
  verb.add_option_function<std::string>(
          kFlag, [&options](const std::string& given) { ParseHoldOut(given, options); },
          "Keep shares of the edges out of the store, for training on links: they are written to "
          "STORE.valid.tsv.zst and STORE.test.tsv.zst, all edges of a pair of vertices to one of "
          "them. With relations: only edges of these types")
      ->type_name("valid=SHARE,test=SHARE[:RELATION,...]");
  AddChoice<HoldOutOptions::By>(
      verb, "--hold-out-by", options.by,
      {{"random", HoldOutOptions::By::kRandom}, {"time", HoldOutOptions::By::kTime}},
      "Which edges are held out. random: by --seed; time: the latest ones, by their column time");
  verb.add_option_function<std::vector<std::string>>(
          "--inverse",
          [&options](const std::vector<std::string>& given) {
            for (const std::string& pair : given) {
              const std::size_t equals = pair.find('=');
              if (equals == pair.npos || equals == 0 || equals + 1 == pair.size())
                throw CLI::ValidationError("--inverse", "'" + pair + "': write RELATION=INVERSE");
              options.inverse.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
            }
          },
          "With relations of --hold-out: the type of the inverse edges of a type, which are held "
          "out with it")
      ->allow_extra_args(false)
      ->type_name("RELATION=INVERSE");
}

bool HasHoldOutFlags(const HoldOutOptions& options) {
  return options.any() || !options.relations.empty() || !options.inverse.empty() ||
         options.by != HoldOutOptions::By::kRandom;
}

Json HeldOutJson(const IngestReport& report) {
  Json sets = Json::array();
  for (const HeldOutSet& set : report.held_out) {
    Json types = Json::object();
    for (const auto& [type, edges] : set.by_type) types[type] = edges;
    sets.push_back({{"set", set.name},
                    {"path", set.path.string()},
                    {"edges", set.edges},
                    {"unseen_ends", set.unseen_ends},
                    {"by_relation", types}});
  }
  return sets;
}

std::string DescribeHeldOut(const Json& held_out) {
  std::string text;
  for (const Json& set : held_out)
    text += fmt::format("  {}: {} held out, {} with an end that no other edge has, in {}\n",
                        set["set"].get<std::string>(), Plural(set["edges"], "edge"),
                        WithCommas(set["unseen_ends"]), set["path"].get<std::string>());
  return text;
}

}  // namespace rhizome
