#include "index/homes/home_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "index/homes/home_partitioner.h"
#include "index/partition/partition_balance.h"
#include "rhizome/types.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"

namespace rhizome {
namespace {

constexpr std::string_view kHomes = "homes";
constexpr std::string_view kRule = "homes_by";
constexpr std::string_view kSeeds = "home_seeds";
constexpr std::string_view kCut = "home_cut_share";
constexpr std::string_view kRowBalance = "home_row_balance";
constexpr std::string_view kSeedBalance = "home_seed_balance";

constexpr std::array kRules = {HomeRule::kEdgeCut, HomeRule::kOwner, HomeRule::kFile};

std::optional<std::string_view> FactOf(const ArrayEntry& entry, std::string_view key) {
  for (const auto& [name, value] : entry.attributes)
    if (name == key) return value;
  return std::nullopt;
}

/// Parses a fact of the array. A number must be the whole text.
template <typename T>
bool ParseFact(const ArrayEntry& entry, std::string_view key, T& value) {
  const auto text = FactOf(entry, key);
  if (!text) return false;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() && end == text->data() + text->size();
}

bool ParseRule(const ArrayEntry& entry, HomeRule& rule) {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](HomeRule each) {
    return FactOf(entry, kRule) == HomeRuleName(each);
  });
  if (found == kRules.end()) return false;
  rule = *found;
  return true;
}

bool IsBalance(double balance) { return std::isfinite(balance) && balance >= 1; }

bool ParseAll(const ArrayEntry& entry, StoredHomes& homes) {
  HomeMetrics& metrics = homes.metrics;
  return ParseFact(entry, kHomes, homes.homes) && ParseRule(entry, homes.rule) &&
         ParseFact(entry, kSeeds, homes.seeds) && ParseFact(entry, kCut, metrics.cut_share) &&
         ParseFact(entry, kRowBalance, metrics.row_balance) &&
         ParseFact(entry, kSeedBalance, metrics.seed_balance) && homes.homes >= 1 &&
         homes.homes <= kMaxPartitions && metrics.cut_share >= 0 && metrics.cut_share <= 1 &&
         IsBalance(metrics.row_balance) && IsBalance(metrics.seed_balance);
}

std::optional<std::string> Excess(std::string_view what, std::uint64_t total, std::uint32_t homes,
                                  double balance) {
  const double mean = static_cast<double>(total) / homes;
  const auto most = static_cast<std::uint64_t>(std::llround(balance * mean));
  const double bound = HomeOptions().max_balance;
  if (most <= EdgeCap(total, homes, bound)) return std::nullopt;
  return fmt::format("a home has {} {}, {:.3f} times the mean (bound: {})", most, what, balance,
                     bound);
}

}  // namespace

std::string_view HomeRuleName(HomeRule rule) {
  switch (rule) {
    case HomeRule::kEdgeCut:
      return "edgecut";
    case HomeRule::kOwner:
      return "owner";
    case HomeRule::kFile:
      return "file";
    default:
      return "none";
  }
}

std::vector<std::pair<std::string, std::string>> HomeAttributes(const StoredHomes& homes) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](std::string_view key, std::string value) {
    facts.emplace_back(key, std::move(value));
  };
  add(kMissingAttribute, std::string(kMissingNoLabel));
  add(kHomes, std::to_string(homes.homes));
  add(kRule, std::string(HomeRuleName(homes.rule)));
  add(kSeeds, std::to_string(homes.seeds));
  // The shortest text that parses to the same number.
  add(kCut, fmt::format("{}", homes.metrics.cut_share));
  add(kRowBalance, fmt::format("{}", homes.metrics.row_balance));
  add(kSeedBalance, fmt::format("{}", homes.metrics.seed_balance));
  std::sort(facts.begin(), facts.end());
  return facts;
}

Result<std::optional<StoredHomes>> HomesOfArray(const ArrayEntry& entry) {
  const auto version = SplitVersion(entry.name);
  const std::string_view name = version ? std::string_view(version->first) : entry.name;
  if (name != kHomeArray || !FactOf(entry, kHomes)) return std::nullopt;
  StoredHomes homes;
  if (!ParseAll(entry, homes)) {
    return Fail(Status::Corruption(
        fmt::format("array '{}': its attributes do not have the number of homes", entry.name)));
  }
  if (entry.dtype != DataType::kInt32 || entry.dim != 1 || IsOfEdges(entry)) {
    return Fail(Status::Corruption(fmt::format(
        "array '{}' has the attributes of an array of homes, but it is not int32 [vertices, 1]",
        entry.name)));
  }
  return homes;
}

Result<std::optional<StoredHomes>> FindHomes(const Manifest& manifest) {
  const ArrayEntry* const entry = manifest.FindArray(kHomeArray);
  if (entry == nullptr) return std::nullopt;
  return HomesOfArray(*entry);
}

std::optional<std::string> HomeWarning(const StoredHomes& homes, std::uint64_t vertices) {
  auto rows = Excess("rows", vertices, homes.homes, homes.metrics.row_balance);
  const auto seeds =
      Excess("training vertices", homes.seeds, homes.homes, homes.metrics.seed_balance);
  if (rows && seeds) return *rows + "; " + *seeds;
  return rows ? rows : seeds;
}

}  // namespace rhizome
