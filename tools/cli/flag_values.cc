#include "tools/cli/flag_values.h"

#include <cctype>
#include <charconv>
#include <cmath>

#include "rhizome/sampler.h"

namespace rhizome {

std::optional<std::uint64_t> ParseSize(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  std::string unit(rest, end);
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (unit.size() > 1 && unit.back() == 'b') unit.pop_back();
  if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
  constexpr std::string_view kUnits = "bkmgt";
  std::size_t power = 0;
  if (!unit.empty()) {
    power = kUnits.find(unit[0]);
    if (unit.size() != 1 || power == kUnits.npos) return std::nullopt;
  }
  const double bytes = std::ldexp(number, static_cast<int>(10 * power));
  if (bytes >= 0x1p63) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

std::vector<std::string> SplitList(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == text.npos ? text.npos : end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

std::optional<std::vector<std::int64_t>> ParseFanouts(std::string_view text) {
  std::vector<std::int64_t> fanouts;
  for (const std::string& part : SplitList(text, ',')) {
    if (part == "all") {
      fanouts.push_back(kAllNeighbors);
      continue;
    }
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || rest != part.data() + part.size() || number < 1) {
      return std::nullopt;
    }
    fanouts.push_back(number);
  }
  return fanouts;
}

std::optional<Codec> ParseCodecFlag(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::optional<CodecKind> kind = ParseCodec(text.substr(0, colon));
  if (!kind) return std::nullopt;
  const CodecLevels levels = LevelsOf(*kind);
  Codec codec{.kind = *kind, .level = levels.usual};
  if (colon == text.npos) return codec;
  const std::string_view level = text.substr(colon + 1);
  const char* const end = level.data() + level.size();
  const auto [rest, error] = std::from_chars(level.data(), end, codec.level);
  // A codec without levels ignores the level, but it must still be one that some codec accepts.
  const int highest = levels.highest == 0 ? 9 : levels.highest;
  if (error != std::errc() || rest != end || codec.level < 1 || codec.level > highest) {
    return std::nullopt;
  }
  return codec;
}

}  // namespace rhizome
