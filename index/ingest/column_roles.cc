#include "index/ingest/column_roles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

namespace rhizome {
inline namespace internal {
namespace {

struct RoleWord {
  std::string_view word;
  std::string_view role;
};

constexpr auto kEdgeWords = std::to_array<RoleWord>({
    {"src", "src"},        {"source", "src"},    {"from", "src"},   {"head", "src"},
    {"subject", "src"},    {"u", "src"},         {"dst", "dst"},    {"target", "dst"},
    {"to", "dst"},         {"tail", "dst"},      {"object", "dst"}, {"v", "dst"},
    {"rel", "type"},       {"relation", "type"}, {"type", "type"},  {"predicate", "type"},
    {"label", "type"},     {"weight", "weight"}, {"w", "weight"},   {"time", "time"},
    {"timestamp", "time"}, {"ts", "time"},
});

constexpr auto kNodeWords = std::to_array<RoleWord>({
    {"label", "label"},
    {"class", "label"},
    {"y", "label"},
    {"split", "split"},
    {"type", "type"},
    {"ntype", "ntype"},
});

/// Names of vertex ids, the most likely one first.
constexpr std::array<std::string_view, 4> kIdWords = {"id", "node", "key", "name"};

bool IsLower(char letter) { return letter >= 'a' && letter <= 'z'; }
bool IsUpper(char letter) { return letter >= 'A' && letter <= 'Z'; }
bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }

/// Returns the words without "node" and "id" at the end, if others remain.
std::span<const std::string> Stem(std::span<const std::string> words) {
  for (const std::string_view ending : {"id", "node"})
    if (words.size() > 1 && words.back() == ending) words = words.first(words.size() - 1);
  return words;
}

template <typename Table>
std::string_view RoleOfWords(const Table& table, std::span<const std::string> words) {
  const auto stem = Stem(words);
  if (stem.size() != 1) return "";
  for (const RoleWord& known : table)
    if (known.word == stem.front()) return known.role;
  return "";
}

/// Returns the role of a column in an edge file; empty for a name without a role. In
/// "from_station_id" the first word counts.
std::string_view EdgeRole(std::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  const std::string_view role = RoleOfWords(kEdgeWords, words);
  if (!role.empty() || words.size() < 3 || words.back() != "id") return role;
  const std::string_view first = RoleOfWords(kEdgeWords, std::span(words).first(1));
  return words.front().size() > 1 && (first == "src" || first == "dst") ? first : "";
}

/// Returns how unlikely it is that a column of this name has the vertex ids; nullopt: impossible.
std::optional<std::size_t> IdRank(std::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  const auto stem = Stem(words);
  if (stem.size() != 1) return std::nullopt;
  const auto* const found = std::find(kIdWords.begin(), kIdWords.end(), stem.front());
  if (found == kIdWords.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kIdWords.begin());
}

/// Returns "user" for "userId" and "user_id"; empty if the name does not end in "id", or has no
/// other word.
std::string StemOfId(std::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  if (words.size() < 2 || words.back() != "id") return "";
  return fmt::format("{}", fmt::join(std::span(words).first(words.size() - 1), "_"));
}

/// Returns the name of the attribute or array for a column without a role: the name itself, with an
/// underscore for each character that names cannot have. An empty name is skipped.
std::string OwnName(std::string_view name) {
  std::string own;
  for (const char letter : name) {
    const bool plain = IsLower(letter) || IsUpper(letter) || IsDigit(letter) || letter == '_' ||
                       letter == '-' || letter == '.';
    own += plain ? letter : '_';
  }
  while (own.starts_with('.')) own.erase(0, 1);
  for (std::size_t at = own.find(".."); at != own.npos; at = own.find("..")) own.erase(at, 1);
  return own.empty() ? "-" : own;
}

Status RefuseTwice(std::string_view role, std::string_view first, std::string_view second) {
  return Status::InvalidArgument(
      fmt::format("the columns '{}' and '{}' of the header could both be {}", first, second, role));
}

/// Returns the roles of columns that have one, and the names of the others.
/// Errors: kInvalidArgument, two columns have the same role.
Result<std::vector<std::string>> RolesAndNames(std::span<const std::string> names,
                                               std::vector<std::string> roles) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (roles[i].empty()) continue;
    for (std::size_t j = 0; j < i; ++j)
      if (roles[j] == roles[i]) return Fail(RefuseTwice(roles[i], names[j], names[i]));
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (roles[i].empty()) roles[i] = OwnName(names[i]);
  return roles;
}

bool Has(std::span<const std::string> roles, std::string_view role) {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

/// Makes the only two columns of ids, such as userId and movieId, src and dst, if they are of two
/// types.
void TakeTwoTypes(std::span<const std::string> names, RoleNames& found) {
  const std::vector<std::string> kinds = KindsOfEnds(names);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].empty()) continue;
    found.roles[i] = found.types.empty() ? "src" : "dst";
    found.types.push_back(kinds[i]);
  }
}

}  // namespace

std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words(1);
  char before = ' ';
  for (const char letter : name) {
    const bool part = IsLower(letter) || IsUpper(letter) || IsDigit(letter) ||
                      static_cast<unsigned char>(letter) >= 0x80;
    if (!part || (IsUpper(letter) && IsLower(before))) words.emplace_back();
    if (part) words.back() += IsUpper(letter) ? static_cast<char>(letter + ('a' - 'A')) : letter;
    before = letter;
  }
  std::erase(words, "");
  return words;
}

bool NamesEdges(std::span<const std::string> names) {
  const auto roles = EdgeRoles(names);
  return roles.has_value();
}

Result<RoleNames> EdgeRoles(std::span<const std::string> names) {
  RoleNames found;
  RHIZOME_ASSIGN_OR_RETURN(found.roles, RolesAndNames(names, EdgeRolesByName(names)));
  if (!Has(found.roles, "src") && !Has(found.roles, "dst")) TakeTwoTypes(names, found);
  for (const std::string_view end : {"src", "dst"})
    if (!Has(found.roles, end))
      return Fail(Status::InvalidArgument(fmt::format(
          "the header has no column for {} (such as {})", end,
          end == "src" ? "src, source, from, head, subject" : "dst, target, to, tail, object")));
  return found;
}

Result<RoleNames> NodeRoles(std::span<const std::string> names) {
  RoleNames found;
  RHIZOME_ASSIGN_OR_RETURN(found.roles, RolesAndNames(names, NodeRolesByName(names)));
  if (Has(found.roles, "id")) return found;
  // A single name such as movieId has the ids of a type.
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string stem = StemOfId(names[i]);
    if (stem.empty()) continue;
    if (!found.types.empty())
      return Fail(Status::InvalidArgument(
          fmt::format("the columns {} of the header could each be id", fmt::join(names, ", "))));
    found.types = {stem};
    found.roles[i] = "id";
  }
  if (Has(found.roles, "id")) return found;
  return Fail(Status::InvalidArgument(
      "the header has no column for the ids of vertices (such as id, node, key, name)"));
}

}  // namespace internal

std::vector<std::string> EdgeRolesByName(std::span<const std::string> names) {
  std::vector<std::string> roles;
  for (const std::string& name : names) roles.emplace_back(EdgeRole(name));
  return roles;
}

std::vector<std::string> NodeRolesByName(std::span<const std::string> names) {
  // A column y next to a column x is a coordinate.
  const bool has_x = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return WordsOf(name) == std::vector<std::string>{"x"};
  });
  std::size_t best_rank = kIdWords.size();
  for (const std::string& name : names)
    best_rank = std::min(best_rank, IdRank(name).value_or(best_rank));
  std::vector<std::string> roles;
  for (const std::string& name : names) {
    const std::vector<std::string> words = WordsOf(name);
    const bool coordinate = has_x && words == std::vector<std::string>{"y"};
    const bool has_role = words.size() == 1 && !coordinate;
    roles.emplace_back(has_role ? RoleOfWords(kNodeWords, words) : "");
    if (IdRank(name) == best_rank) roles.back() = "id";
  }
  return roles;
}

std::vector<std::string> KindsOfEnds(std::span<const std::string> names) {
  std::vector<std::string> kinds(names.size());
  std::vector<std::size_t> ids;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (EdgeRole(names[i]).empty() && !StemOfId(names[i]).empty()) ids.push_back(i);
  if (ids.size() != 2) return kinds;
  // start_station_id and end_station_id are ids of one kind.
  if (WordsOf(names[ids[0]]).rbegin()[1] == WordsOf(names[ids[1]]).rbegin()[1]) return kinds;
  for (const std::size_t i : ids) kinds[i] = StemOfId(names[i]);
  return kinds;
}

}  // namespace rhizome
