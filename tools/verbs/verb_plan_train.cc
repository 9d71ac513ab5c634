#include <fmt/format.h>

#include "rhizome/graph.h"
#include "rhizome/store.h"
#include "tools/cli/gnn_library.h"
#include "tools/cli/help.h"
#include "tools/import/gnn_flags.h"
#include "tools/verbs/full_graph_report.h"
#include "tools/verbs/rank_plan_report.h"
#include "tools/verbs/table_report.h"
#include "tools/verbs/train_flags.h"
#include "tools/verbs/verb_plan.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct PlanTrainFlags {
  TrainFlags train;
  std::vector<std::uint32_t> ranks;
  std::string link = "10G,50us";
  double compute_ms = 0;
  std::uint64_t gradient_bytes = 0;
  double processors = 0;
  double row_us = 0;
  double own_us = 0;
  std::optional<double> read_us;
};

/// Returns the options of a rank plan from the flags of `train` that determine what is sampled and
/// cached.
Result<RankPlanOptions> RankOptionsOf(const PlanTrainFlags& flags, const TrainOptions& train) {
  const MinibatchOptions& minibatch = *train.minibatch();
  if (minibatch.feed.cache != PolicyKind::kBelady)
    return Fail(Status::InvalidArgument(
        "--cache is not used with --ranks, where --prefetch selects the policy; omit --cache"));
  RHIZOME_RETURN_IF_ERROR(CheckPrefetch(flags.train.prefetch, minibatch.feed.superbatch));
  if (train.model.no_edges)
    return Fail(Status::InvalidArgument(
        "--no-edges needs no rows of other ranks, so there is nothing to plan; omit it"));
  const bool has_epochs = flags.train.verb->get_option("--epochs")->count() > 0;
  RankPlanOptions options{.data = train.data,
                          .ranks = flags.ranks,
                          .minibatch = minibatch,
                          .epochs = has_epochs ? train.learning.epochs : 1,
                          .eval_every = train.learning.eval_every,
                          .seed = train.learning.seed,
                          .threads = train.resources.threads,
                          .disk = ReadsOfRanks(train.resources.io)};
  options.minibatch.ranks = RankOptions{.prefetch = flags.train.prefetch};
  RHIZOME_ASSIGN_OR_RETURN(options.minibatch.ranks->link, LinkOf(flags.link));
  if (minibatch.feed.superbatch == 0) options.minibatch.feed.superbatch = kRankSuperbatch;
  options.compute_seconds = flags.compute_ms / 1e3;
  options.gradient_bytes = flags.gradient_bytes;
  options.processors = flags.processors;
  options.row_seconds = flags.row_us / 1e6;
  options.own_seconds = flags.own_us / 1e6;
  if (flags.read_us) options.read_seconds = *flags.read_us / 1e6;
  return options;
}

Result<Answer> RunPlanRanks(const PlanTrainFlags& flags, const TrainOptions& train,
                            Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const RankPlanOptions options, RankOptionsOf(flags, train));
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), train.store, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(std::as_const(*store)));
  RHIZOME_ASSIGN_OR_RETURN(const RankPlanReport report,
                           PlanRanks(*graph, options, session.control));
  Answer answer{Json::object(), DescribeRankPlan, {}};
  AddRankPlan(report, options, answer.fields);
  return answer;
}

Result<Answer> RunPlanTable(const PlanTrainFlags& flags, const TrainOptions& train,
                            Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const GnnEntry* const gnn, LoadGnnLibrary());
  RHIZOME_ASSIGN_OR_RETURN(TablePlan plan, gnn->PlanTable(train, session.control));
  for (std::string& warning : plan.warnings) warning = SpellFor(session, warning);
  for (std::string& note : plan.notes) note = SpellFor(session, note);
  for (const std::string& note : plan.notes) Tell(session, "note", note);
  for (const std::string& warning : plan.warnings) Tell(session, "warning", warning);
  Json fields = TablePlanJson(plan);
  fields["store"] = flags.train.options.store.string();
  return Answer{std::move(fields), DescribeTablePlan, {}};
}

Result<Answer> RunPlanTrain(const PlanTrainFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(TrainOptions options, CompleteTrainOptions(flags.train));
  if (!flags.ranks.empty() && options.full_graph() != nullptr)
    return Fail(Status::InvalidArgument("--ranks is for minibatches: omit it with --full-graph"));
  if (!flags.ranks.empty()) return RunPlanRanks(flags, options, session);
  RHIZOME_RETURN_IF_ERROR(CheckAlone(flags.train));
  if (options.model.kind == kTableModel) return RunPlanTable(flags, options, session);
  if (options.full_graph() == nullptr) {
    return Fail(
        Status::InvalidArgument("give --full-graph to plan training on the full graph, --ranks to "
                                "plan training over ranks, "
                                "or --task link --model table to plan training of a table"));
  }
  options.job.out.clear();
  RHIZOME_ASSIGN_OR_RETURN(const GnnEntry* const gnn, LoadGnnLibrary());
  RHIZOME_ASSIGN_OR_RETURN(const FullGraphReport plan, gnn->PlanTrain(options, session.control));
  Answer answer{Json::object(), DescribeFullGraphPlan, {}};
  AddFullGraphPlan(plan, answer.fields);
  return answer;
}

}  // namespace

void AddPlanTrain(CLI::App& plan, Session& session) {
  auto flags = std::make_shared<PlanTrainFlags>();
  CLI::App* verb = AddVerb(
      plan, session, "train",
      "Predict the passes, bytes, time and memory of an epoch on the full graph; the rows, bytes "
      "and seconds of an epoch over ranks; or the rows, disk and memory of a table (--model table)",
      "rhizome plan train demo.rz --full-graph --model gcn --layers 3 --memory 512M", flags,
      RunPlanTrain);
  AddTrainFlags(*verb, flags->train, session);
  verb->add_option(
          "--ranks", flags->ranks,
          "Plan minibatches over each of these numbers of ranks: the rows that each rank reads "
          "from its disk and from other ranks")
      ->delimiter(',')
      ->check(CLI::Range(1U, 65536U))
      ->type_name("N,...");
  verb->add_option(
          "--link", flags->link,
          "With --ranks: bandwidth of a rank's link in each direction, in bits per second, and "
          "its latency")
      ->type_name("BITS[,TIME]")
      ->capture_default_str();
  verb->add_option("--compute-ms", flags->compute_ms,
                   "With --ranks: milliseconds of computation per minibatch")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("X")
      ->capture_default_str();
  AddSize(*verb, "--gradients", flags->gradient_bytes,
          "With --ranks: size of the model's gradients, which ranks sum after each step");
  verb->add_option(
          "--processors", flags->processors,
          "With --ranks: processors per rank, shared by computation, sampling, schedules and "
          "rows; 0: enough that nothing delays the computation")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--row-us", flags->row_us,
                   "With --ranks: CPU microseconds per row that one rank sends to another, of both "
                   "together; doctor STORE --ranks measures it")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--own-us", flags->own_us,
                   "With --ranks: CPU microseconds per row that a rank reads from its own disk")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("X")
      ->capture_default_str();
  verb->add_option(
          "--read-us", flags->read_us,
          "With --ranks: microseconds per row that a disk reads, for the predicted seconds only; "
          "0: rows are in the page cache; default: an NVMe drive")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("X");
  ArrangeOptions(*verb,
                 {"model", "layers", "fanout", "hidden", "batch-size", "full-graph", "memory",
                  "threads", "ranks"},
                 {"features", "labels", "split", "heads", "edge-weights", "device", "spill", "link",
                  "seed", "epochs", "task", "dim", "decoder", "negatives", "optimizer", "scratch"});
}

}  // namespace rhizome
