#include "tools/import/neighbor_flags.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/text.h"

namespace rhizome {
namespace {

/// Parses fanouts by edge type, such as "cites:10,5;default:5,all". Returns nullopt if malformed.
std::optional<std::vector<TypedFanouts>> ParseTypedFanouts(std::string_view text) {
  std::vector<TypedFanouts> types;
  for (;;) {
    const std::size_t end = text.find(';');
    const std::string_view one = text.substr(0, end);
    const std::size_t colon = one.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    const auto fanouts = ParseFanouts(one.substr(colon + 1));
    if (!fanouts) return std::nullopt;
    types.push_back({.type = std::string(one.substr(0, colon)), .fanouts = *fanouts});
    if (end == std::string_view::npos) return types;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

const char* DirectionName(Direction direction) {
  if (direction == Direction::kBoth) return "both";
  return direction == Direction::kIn ? "in" : "out";
}

std::string DescribeEdges(const Json& fields) {
  const std::string direction = fields["direction"];
  const bool weights = fields["edge_weights"];
  if (direction == "in" && !weights) return "";
  return fmt::format("walked {}{}\n",
                     direction == "both" ? "edges of both directions" : direction + "-edges",
                     weights ? ", each with its weight" : "");
}

void AddNeighborFlags(CLI::App& verb, NeighborSampling& sampling,
                      std::optional<bool>& edge_weights) {
  AddChoice<Direction>(
      verb, "--direction", sampling.direction,
      {{"in", Direction::kIn}, {"out", Direction::kOut}, {"both", Direction::kBoth}},
      "Edges that are walked: in-edges, out-edges, or both as one list; in an undirected store "
      "they "
      "are the same");
  verb.add_flag("--weighted", sampling.weighted, "Draw neighbours in proportion to edge weights");
  verb.add_option_function<std::string>(
          "--typed-fanout",
          [&sampling](const std::string& given) {
            const auto types = ParseTypedFanouts(given);
            if (!types) {
              throw CLI::ValidationError(
                  "--typed-fanout",
                  "'" + given + "' is not a list such as 'cites:10,5;default:5,5'");
            }
            sampling.typed_fanouts = *types;
          },
          "Instead of --fanout, neighbours drawn along each edge type in each layer; default "
          "stands "
          "for the types not named, which are else not walked")
      ->type_name("TYPE:N,N,...;...");
  verb.add_option("--meta-path", sampling.meta_path,
                  "Edge type that each layer walks, the seeds' own first")
      ->delimiter(',')
      ->type_name("TYPE,TYPE,...");
  verb.add_option("--time-attribute", sampling.time_attribute,
                  "Edge attribute with times: only edges not later than the seed's time")
      ->type_name("ATTRIBUTE");
  verb.add_option(
          "--seed-times", sampling.seed_times,
          "With --time-attribute: array of the vertices' times as seeds, integers [rows, 1]")
      ->type_name("NAME");
  verb.add_option_function<std::string>(
          "--edge-weights",
          [&edge_weights](const std::string& given) {
            edge_weights.reset();
            if (given != "auto") edge_weights = given == "use";
          },
          "Whether layers that sum or average weigh neighbours by their edges; auto: where the "
          "store "
          "has weights")
      ->check(CLI::IsMember({"use", "ignore", "auto"}))
      ->type_name("use|ignore|auto")
      ->default_str("auto");
}

}  // namespace rhizome
