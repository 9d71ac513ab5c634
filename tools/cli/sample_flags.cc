#include "tools/cli/sample_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "rhizome/neighbor_sampling.h"
#include "tools/cli/cli.h"

namespace rhizome {
namespace {

constexpr std::string_view kAllTypes = "*";

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool IsTyped(std::string_view fanout) { return fanout.find('=') != std::string_view::npos; }

/// One `type=N` item of a hop.
struct TypedFanout {
  std::string_view type;
  std::int64_t fanout = 0;
};

/// Parses fanouts by edge type, such as "a=5,*=2;b=all", with hops separated by ";". Returns
/// nullopt if the text is malformed.
std::optional<std::vector<std::vector<TypedFanout>>> ParseTyped(std::string_view text) {
  std::vector<std::vector<TypedFanout>> hops;
  for (const std::string_view hop : Split(text, ';')) {
    std::vector<TypedFanout>& fanouts = hops.emplace_back();
    for (const std::string_view item : Split(hop, ',')) {
      const std::size_t equals = item.rfind('=');
      if (equals == std::string_view::npos || equals == 0) return std::nullopt;
      const auto number = ParseFanouts(item.substr(equals + 1));
      if (!number || number->size() != 1) return std::nullopt;
      fanouts.push_back({item.substr(0, equals), number->front()});
    }
  }
  return hops;
}

/// Resolves one hop to one fanout per edge type. Edge types that the hop does not mention, by name
/// or by *, get 0 and are not followed.
Result<std::vector<std::int64_t>> ResolveHop(const GraphSnapshot& graph,
                                             const std::vector<TypedFanout>& hop) {
  std::vector<std::int64_t> fanouts(graph.edge_types().size(), 0);
  std::vector<bool> named(fanouts.size(), false);
  for (const TypedFanout& item : hop) {
    if (item.type == kAllTypes) continue;
    RHIZOME_ASSIGN_OR_RETURN(const TypeId type, FindEdgeType(graph, item.type));
    if (named[type]) {
      return Fail(Status::InvalidArgument(
          fmt::format("--fanout names edge type '{}' twice in one hop", item.type)));
    }
    named[type] = true;
    fanouts[type] = item.fanout;
  }
  for (const TypedFanout& item : hop) {
    for (std::size_t type = 0; item.type == kAllTypes && type < fanouts.size(); ++type) {
      if (!named[type]) fanouts[type] = item.fanout;
    }
  }
  return fanouts;
}

}  // namespace

CLI::Option* AddSampleFlags(CLI::App& verb, SampleFlags& flags) {
  CLI::Option* fanout =
      verb.add_option_function<std::string>(
              "--fanout",
              [&flags](const std::string& given) {
                if (IsTyped(given) ? !ParseTyped(given) : !ParseFanouts(given)) {
                  throw CLI::ValidationError(
                      "--fanout", "'" + given +
                                      "' is neither a list such as 10,10 or all,10 nor a list by "
                                      "edge type such as 'likes=5,*=2;likes=all'");
                }
                flags.fanout = given;
              },
              "Neighbours to sample in each hop, starting at the seeds; by edge type: TYPE=N,... "
              "for each hop, hops separated by ';', * for all other types")
          ->type_name("N,N,...|TYPE=N,...;...");
  verb.add_option("--meta-path", flags.meta_path, "Edge type to follow in each hop")
      ->delimiter(',')
      ->type_name("TYPE,TYPE,...");
  SamplerOptions& options = flags.options;
  AddChoice<Direction>(verb, "--direction", options.direction,
                       {{"in", Direction::kIn}, {"out", Direction::kOut}},
                       "Edges to follow: in-edges, as in message passing, or out-edges");
  verb.add_flag("--replace", options.replace, "Sample with replacement");
  verb.add_flag("--weighted", options.weighted, "Sample in proportion to edge weights");
  verb.add_flag("--disjoint", options.disjoint, "Sample a separate subgraph for each seed");
  AddChoice<Frontier>(verb, "--frontier", options.frontier,
                      {{"once", Frontier::kOnce}, {"again", Frontier::kAgain}},
                      "Expand each vertex once (as in PyG) or in every hop (as in DGL)");
  verb.add_option("--time", flags.time,
                  "Edge attribute with times: sample only edges not later than the seed's time; "
                  "needs --disjoint")
      ->type_name("ATTRIBUTE");
  AddChoice<TemporalPick>(
      verb, "--time-pick", options.temporal_pick,
      {{"uniform", TemporalPick::kUniform}, {"last", TemporalPick::kLast}},
      "With --time: sample the permitted edges uniformly, or use the latest ones");
  verb.add_option("--seed", options.seed, "Random seed; equal seeds give equal subgraphs")
      ->type_name("N")
      ->capture_default_str();
  return fanout;
}

Result<SamplerOptions> ResolveSampleFlags(const SampleFlags& flags, const GraphSnapshot& graph) {
  SamplerOptions options = flags.options;
  if (!IsTyped(flags.fanout)) {
    auto fanouts = ParseFanouts(flags.fanout);
    if (!fanouts) return Fail(Status::InvalidArgument("--fanout '" + flags.fanout + "'"));
    options.fanouts = *std::move(fanouts);
  } else {
    const auto hops = ParseTyped(flags.fanout);
    if (!hops) return Fail(Status::InvalidArgument("--fanout '" + flags.fanout + "'"));
    for (const std::vector<TypedFanout>& hop : *hops) {
      RHIZOME_ASSIGN_OR_RETURN(std::vector<std::int64_t> fanouts, ResolveHop(graph, hop));
      options.typed_fanouts.push_back(std::move(fanouts));
    }
  }
  for (const std::string& name : flags.meta_path) {
    RHIZOME_ASSIGN_OR_RETURN(const TypeId type, FindEdgeType(graph, name));
    options.meta_path.push_back(type);
  }
  if (!flags.time.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(options.times, LoadEdgeTimes(graph, flags.time));
    options.disjoint = true;
  }
  return options;
}

}  // namespace rhizome
