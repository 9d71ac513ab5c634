#include "tools/bench/cache/bench_remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "cache/ranks/remote_replay.h"
#include "cache/ranks/row_halo.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/gnuplot.h"

namespace rhizome {
namespace {

/// Settings of MassiveGNN from its sections 4.1 and 6, with the delta of 256 from its Table 6.
/// Three gammas and seven deltas give 21 settings.
constexpr double kGammas[] = {.95, .995, .9995};
constexpr std::uint64_t kDeltas[] = {16, 32, 64, 128, 256, 512, 1024};

/// Traces of one graph, and the data that its policies know in advance.
struct RemoteGraph {
  std::string name;
  std::uint64_t rows = 0;
  std::vector<RemoteTrace> traces;           // by rank
  std::vector<std::vector<Row>> halos;       // by rank
  std::vector<std::vector<double>> chances;  // by rank, by row
  std::vector<std::vector<Row>> by_chance;   // by rank: remote rows, most likely first
};

Result<RemoteGraph> DrawGraph(const std::string& name, const std::string& path,
                              const BenchRemoteOptions& options, const JobControl& control) {
  BenchGraphOptions stored;
  stored.store = path;
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph open, OpenBenchGraph(stored, control));
  RHIZOME_ASSIGN_OR_RETURN(const RowHomes homes, RowHomesOf(*open.graph));
  RemoteGraph graph;
  graph.name = name;
  graph.rows = open.graph->vertex_count();
  RHIZOME_ASSIGN_OR_RETURN(graph.traces,
                           DrawRemoteTraces(*open.graph, homes, options.trace, control));
  RHIZOME_ASSIGN_OR_RETURN(const PassLists lists, AllLists(*open.graph, Direction::kIn, control));
  const std::vector<std::uint16_t> rank_of = homes.RanksOfRows(options.trace.ranks);
  for (std::uint32_t rank = 0; rank < options.trace.ranks; ++rank) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "chances", .done = rank, .total = options.trace.ranks}));
    const RemoteTrace& trace = graph.traces[rank];
    const RowRanks ranks{.rank_of = rank_of, .rank = rank};
    graph.halos.push_back(HaloOf(lists, ranks));
    const double of_seed = trace.epoch_steps == 0 ? 0 : 1 / static_cast<double>(trace.epoch_steps);
    graph.chances.push_back(
        InclusionChances(lists, trace.training_rows, of_seed, options.trace.fanouts));
    graph.by_chance.push_back(RankByChance(graph.chances.back(), ranks));
  }
  return graph;
}

using CountOf = std::function<Result<RemoteCounts>(const RemoteReplay& replay, std::uint32_t rank)>;

/// A row of the table: a policy with one setting.
struct Contestant {
  std::string policy, setting;
  CountOf count;
};

std::vector<Contestant> ContestantsOf(const std::string& policy, const RemoteGraph& graph,
                                      const BenchRemoteOptions& options) {
  std::vector<Contestant> all;
  const auto add = [&](std::string setting, CountOf count) {
    all.push_back({policy, std::move(setting), std::move(count)});
  };
  if (policy == "none") add("", [](const auto& replay, auto) { return replay.None(); });
  if (policy == "lru") add("", [](const auto& replay, auto) { return replay.Lru(); });
  if (policy == "epoch") add("", [](const auto& replay, auto) { return replay.EpochHotSet(); });
  if (policy == "optimum") add("", [](const auto& replay, auto) { return replay.Optimum(); });
  if (policy == "static")
    add("", [&](const auto& replay, auto rank) { return replay.Static(graph.halos[rank]); });
  if (policy == "vip")
    add("", [&](const auto& replay, auto rank) { return replay.Static(graph.by_chance[rank]); });
  const bool as_coded = policy == "scored-coded";
  if (policy == "scored" || as_coded) {
    for (const double gamma : kGammas) {
      for (const std::uint64_t delta : kDeltas) {
        add(fmt::format("{}, {}", gamma, delta), [=](const auto& replay, auto) {
          return replay.Scored({.gamma = gamma, .delta = delta, .as_coded = as_coded});
        });
      }
    }
  }
  if (policy != "belady") return all;
  for (const std::uint32_t superbatch : options.superbatches) {
    for (const char* const prior : {"none", "uses", "vip"}) {
      add(fmt::format("{}, {}", superbatch, prior), [=, &graph](const auto& replay, auto rank) {
        RemotePrior known;
        known.uses = *prior == 'u';
        if (*prior == 'v') known.chances = graph.chances[rank];
        return replay.Belady(superbatch, known);
      });
    }
  }
  return all;
}

/// Returns whether only the best setting of a policy is reported.
bool IsBestOfAll(const std::string& policy) { return policy.starts_with("scored"); }

class RemoteComparison {
 public:
  RemoteComparison(const BenchRemoteOptions& options, const JobControl& control)
      : options_(options), control_(control) {}

  Status Play(const RemoteGraph& graph);
  Json Results() && { return std::move(results_); }

 private:
  Result<RemoteCounts> CountAll(const Contestant& one, const RemoteGraph& graph, double fraction);
  Status PlayPolicy(const std::string& policy, const RemoteGraph& graph, double fraction,
                    std::uint64_t optimum);

  const BenchRemoteOptions& options_;
  const JobControl& control_;
  Json results_ = Json::array();
  std::uint64_t played_ = 0;
};

Result<RemoteCounts> RemoteComparison::CountAll(const Contestant& one, const RemoteGraph& graph,
                                                double fraction) {
  RemoteCounts counts;
  for (std::uint32_t rank = 0; rank < graph.traces.size(); ++rank) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "replay", .done = played_++, .total = 0}));
    const auto frames =
        static_cast<std::uint64_t>(fraction * static_cast<double>(graph.halos[rank].size()));
    const RemoteReplay replay(graph.traces[rank], graph.halos[rank], frames, graph.rows);
    RHIZOME_ASSIGN_OR_RETURN(const RemoteCounts of_rank, one.count(replay, rank));
    counts += of_rank;
  }
  return counts;
}

Status RemoteComparison::PlayPolicy(const std::string& policy, const RemoteGraph& graph,
                                    double fraction, std::uint64_t optimum) {
  std::optional<std::pair<RemoteCounts, std::string>> best;
  const std::vector<Contestant> contestants = ContestantsOf(policy, graph, options_);
  const std::size_t best_of = IsBestOfAll(policy) ? contestants.size() : 1;
  const auto show = [&](const RemoteCounts& counts, const std::string& setting) {
    const auto over = [](std::uint64_t a, std::uint64_t b) {
      return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
    };
    results_.push_back(
        {{"graph", graph.name},
         {"fraction", fraction},
         {"policy", policy},
         {"setting", setting},
         {"best_of", best_of},
         {"requested", counts.requests},
         {"fetched", counts.fetched()},
         {"share", over(counts.fetched(), counts.requests)},
         {"over_optimum", over(counts.fetched(), optimum)},
         {"before", counts.prefill},
         {"replaced", counts.replaced},
         {"hits_of_halo", over(counts.halo_requests - counts.halo_misses, counts.halo_requests)},
         {"hits_of_remote", over(counts.requests - counts.misses, counts.requests)}});
  };
  for (const Contestant& one : contestants) {
    RHIZOME_ASSIGN_OR_RETURN(const RemoteCounts counts, CountAll(one, graph, fraction));
    if (!IsBestOfAll(policy)) {
      show(counts, one.setting);
    } else if (!best || counts.fetched() < best->first.fetched()) {
      best = {counts, one.setting};
    }
  }
  if (best) show(best->first, best->second);
  return Status::Ok();
}

Status RemoteComparison::Play(const RemoteGraph& graph) {
  const bool is_all = std::find(options_.policies.begin(), options_.policies.end(), "all") !=
                      options_.policies.end();
  for (const double fraction : options_.fractions) {
    const auto best = ContestantsOf("optimum", graph, options_);
    RHIZOME_ASSIGN_OR_RETURN(const RemoteCounts optimum, CountAll(best.front(), graph, fraction));
    for (const std::string& policy : is_all ? RemotePolicies() : options_.policies)
      RHIZOME_RETURN_IF_ERROR(PlayPolicy(policy, graph, fraction, optimum.fetched()));
  }
  return Status::Ok();
}

/// Returns a plot script with a curve over buffer fractions per policy and setting, for the first
/// graph.
std::string RemotePlotScript(const std::string& path, const Json& results) {
  std::vector<std::pair<std::string, std::string>> curves;  // title, points
  for (const Json& row : results) {
    if (row["graph"] != results[0]["graph"]) continue;
    const std::string policy = row["policy"];
    const std::string title =
        policy == "belady" ? fmt::format("belady {}", row["setting"].get<std::string>()) : policy;
    auto found = std::find_if(curves.begin(), curves.end(),
                              [&](const auto& curve) { return curve.first == title; });
    if (found == curves.end()) found = curves.insert(curves.end(), {title, ""});
    found->second += fmt::format("{} {}\n", row["fraction"].dump(), row["share"].dump());
  }
  std::string script = PlotHead(path, 900, 600);
  for (std::size_t c = 0; c < curves.size(); ++c)
    script += fmt::format("$curve{} << EOD\n{}EOD\n", c, curves[c].second);
  script +=
      "set grid\nset key outside\nset xlabel 'buffer / halo'\nset ylabel 'fetched / "
      "requested'\nplot ";
  for (std::size_t c = 0; c < curves.size(); ++c) {
    script += fmt::format("{}$curve{} using 1:2 with linespoints title '{}'", c == 0 ? "" : ", ", c,
                          curves[c].first);
  }
  return script + "\n";
}

}  // namespace

const std::vector<std::string>& RemotePolicies() {
  static const std::vector<std::string> policies = {
      "none", "lru", "static", "epoch", "vip", "scored", "scored-coded", "belady", "optimum"};
  return policies;
}

// Replays the traces of each store and of each generated graph. For each buffer fraction and
// policy, counts the rows that all ranks fetch. Draws the plot, if requested.
Result<Json> BenchRemote(const BenchRemoteOptions& options, const JobControl& control) {
  if (!options.plot.empty()) RHIZOME_RETURN_IF_ERROR(CheckPlotPath(options.plot));
  if (options.stores.empty() && options.traces.empty())
    return Fail(Status::InvalidArgument("give a store with --store, or a graph with --traces"));
  RemoteComparison contest(options, control);
  for (const std::string& store : options.stores) {
    RHIZOME_ASSIGN_OR_RETURN(const RemoteGraph graph, DrawGraph(store, store, options, control));
    RHIZOME_RETURN_IF_ERROR(contest.Play(graph));
  }
  for (const std::string& name : options.traces) {
    RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
    const std::string path = (scratch.path() / "graph.rz").string();
    RHIZOME_RETURN_IF_ERROR(MakeRemoteGraph(name, options, path, control));
    RHIZOME_ASSIGN_OR_RETURN(const RemoteGraph graph, DrawGraph(name, path, options, control));
    RHIZOME_RETURN_IF_ERROR(contest.Play(graph));
  }
  Json results = std::move(contest).Results();
  if (!options.plot.empty() && !results.empty())
    RHIZOME_RETURN_IF_ERROR(DrawPlot(options.plot, RemotePlotScript(options.plot, results)));
  return Json{{"workload", "remote"}, {"ranks", options.trace.ranks}, {"results", results}};
}

}  // namespace rhizome
