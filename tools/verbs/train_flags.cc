#include "tools/verbs/train_flags.h"

#include <fmt/format.h>

#include "rhizome/policies.h"
#include "tools/cli/topology_flags.h"
#include "tools/import/gnn_flags.h"
#include "tools/import/learning_flags.h"
#include "tools/import/model_flags.h"
#include "tools/import/neighbor_flags.h"

namespace rhizome {
namespace {

/// Determines the number of layers. --layers, --fanout, --typed-fanout and --meta-path each imply
/// one; any of them is sufficient, and all that are given must agree.
Status ReconcileLayers(const TrainFlags& flags, TrainOptions& options) {
  constexpr std::int64_t kDefaultFanout = 10;
  if (options.full_graph) {
    if (flags.fanouts)
      return Status::InvalidArgument(
          "--fanout is for minibatches: --full-graph takes all neighbours");
    options.model.layers = flags.layers.value_or(2);
    options.fanouts.assign(options.model.layers, kAllNeighbors);
    return Status::Ok();
  }
  const bool typed = !options.sampling.typed_fanouts.empty();
  if (typed && flags.fanouts)
    return Status::InvalidArgument("--typed-fanout stands for --fanout; give one of them");
  const auto hops = static_cast<std::uint32_t>(HopsOf(options.sampling));
  if (hops != 0 && flags.layers.value_or(hops) != hops) {
    return Status::InvalidArgument(
        fmt::format("{} names {} hops but --layers is {}; give one for each layer",
                    typed ? "--typed-fanout" : "--meta-path", hops, *flags.layers));
  }
  if (flags.fanouts) {
    options.fanouts = *flags.fanouts;
    options.model.layers = flags.layers.value_or(
        hops != 0 ? hops : static_cast<std::uint32_t>(options.fanouts.size()));
    // A single number, or `all`, applies to every layer.
    if (options.fanouts.size() == 1)
      options.fanouts.resize(options.model.layers, options.fanouts[0]);
  } else {
    options.model.layers = flags.layers.value_or(hops != 0 ? hops : 2);
    options.fanouts.assign(options.model.layers, kDefaultFanout);
  }
  if (options.eval_fanouts.size() == 1)
    options.eval_fanouts.resize(options.model.layers, options.eval_fanouts[0]);
  if (options.fanouts.size() == options.model.layers) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("--fanout names {} hops but --layers is {}; give one number for each layer",
                  options.fanouts.size(), options.model.layers));
}

/// Rejects flags of minibatch training, which do not apply to --full-graph.
Status CheckFullGraphFlags(const CLI::App& verb) {
  for (const char* const name :
       {"--steps", "--batch-size", "--eval-fanout", "--typed-fanout", "--meta-path", "--superbatch",
        "--overlap", "--cache", "--cache-bytes", "--prior", kNeighborCacheFlag, "--trace",
        "--device-memory", "--device-cache", "--prefetch", "--remote-memory", "--gamma"}) {
    const CLI::Option* const option = verb.get_option_no_throw(name);
    if (option != nullptr && option->count() > 0)
      return Status::InvalidArgument(
          fmt::format("{} is for minibatches: leave it with --full-graph", name));
  }
  return Status::Ok();
}

void AddModelFlags(CLI::App& verb, TrainFlags& flags, Session& session) {
  TrainOptions& options = flags.options;
  AddModelKindFlags(verb, options.model, session);
  verb.add_option("--layers", flags.layers, "Layers; as many hops are sampled")
      ->check(CLI::Range(1U, 16U))
      ->type_name("N")
      ->default_str("2");
  verb.add_option_function<std::string>(
          "--fanout",
          [&flags](const std::string& given) {
            flags.fanouts = ParseFanouts(given);
            if (!flags.fanouts) {
              throw CLI::ValidationError("--fanout",
                                         "'" + given + "' is not a list such as 10,10 or all,10");
            }
          },
          "Neighbours drawn in each layer, the seeds' own first; default: 10 in each")
      ->type_name("N,N,...|all");
  AddNeighborFlags(verb, options.sampling, options.edge_weights);
  verb.add_option("--hidden", options.model.hidden, "Width of the hidden layers")
      ->check(CLI::Range(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--dropout", options.model.dropout, "Share of units dropped while training")
      ->check(CLI::Range(0.0, 0.99))
      ->type_name("X")
      ->capture_default_str();
  verb.add_flag("--normalize-features", options.model.normalize_features,
                "Divide each row by the sum of its absolute values");
  verb.add_flag("--no-edges", options.model.no_edges,
                "The same network without edges: what are they worth?");
}

void AddEpochFlags(CLI::App& verb, TrainOptions& options) {
  verb.add_option("--steps", options.steps, "Minibatches of an epoch at most; default: all")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->type_name("N");
  verb.add_flag("!--no-test", options.test,
                "Leave out the accuracies at the end, which take a pass over all vertices");
  verb.add_option("--epochs", options.epochs, "Times that every training vertex is seen")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--batch-size", options.batch_size, "Training vertices of a minibatch")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->type_name("N")
      ->capture_default_str();
  AddThreads(verb, options.threads);
}

void AddDeviceFlags(CLI::App& verb, TrainOptions& options) {
  AddChoice<ComputeOn>(verb, "--device", options.device,
                       {{"cpu", ComputeOn::kCpu}, {"cuda", ComputeOn::kCuda}},
                       "What computes the network; cuda: the first CUDA device");
  AddSize(verb, "--device-memory", options.device_memory_bytes,
          "With --device cuda: memory of the device for feature rows that stay there; default: "
          "half of what is free");
  std::vector<std::pair<std::string, PolicyKind>> policies;
  for (const PolicyKind kind :
       {PolicyKind::kBelady, PolicyKind::kStatic, PolicyKind::kMatch, PolicyKind::kNone})
    policies.emplace_back(PolicyName(kind), kind);
  AddChoice<PolicyKind>(verb, "--device-cache", options.device_cache, std::move(policies),
                        "With --device cuda: which rows stay there; belady: by the schedule of a "
                        "superbatch, those that are needed soonest");
}

void AddPrefetchFlags(CLI::App& verb, PrefetchOptions& options) {
  std::vector<std::pair<std::string, Prefetch>> policies;
  for (const Prefetch policy : AllPrefetches()) policies.emplace_back(PrefetchName(policy), policy);
  AddChoice<Prefetch>(
      verb, "--prefetch", options.policy, std::move(policies),
      "Over ranks, which rows of others a rank keeps. belady: one schedule for all rows, by what "
      "they cost. To compare with, in a part of the pool: scored, MassiveGNN's scores, with a "
      "round of evictions a superbatch; vip, those that minibatches most likely ask for "
      "(SALIENT++); epoch, those that an epoch asks for most often (RapidGNN); static, neighbours "
      "of the highest degree; lru; none");
  AddSize(verb, "--remote-memory", options.remote_bytes,
          "With --prefetch other than belady: that part of the pool; default: half");
  verb.add_option("--gamma", options.gamma, "With --prefetch scored: the decay of its scores")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X")
      ->capture_default_str();
}

void AddStorageFlags(CLI::App& verb, TrainFlags& flags) {
  TrainOptions& options = flags.options;
  AddPrefetchFlags(verb, options.prefetch);
  AddGnnMemoryFlags(verb, options.memory_bytes, options.cache, options.cache_bytes);
  AddDeviceFlags(verb, options);
  AddChoice<Prior>(
      verb, "--prior", options.prior, {{"uses", Prior::kUses}, {"none", Prior::kNone}},
      "Worth, with --cache belady and cost, of rows that a superbatch does not ask for again: "
      "as often as they were used so far, or none");
  AddBaselineIoFlag(verb, options.io, "How rows are read, and lists with --topology direct");
  AddTopologyFlag(verb, options.topology);
  AddSize(verb, kNeighborCacheFlag, options.neighbor_cache_bytes,
          std::string(kNeighborCacheHelp) + "; default: what --memory leaves, at most 256M");
  verb.add_option_function<std::string>(
          "--superbatch",
          [&options](const std::string& given) {
            options.superbatch = 0;
            if (given == "auto") return;
            if (!CLI::detail::lexical_cast(given, options.superbatch) || options.superbatch == 0) {
              throw CLI::ValidationError("--superbatch",
                                         "'" + given + "' is neither a number nor auto");
            }
          },
          "Minibatches that are sampled ahead")
      ->type_name("N|auto")
      ->default_str("auto");
  verb.add_option_function<std::string>(
          "--overlap",
          [&options](const std::string& given) {
            if (given == "all") options.overlap = Overlap::kAll;
            if (given == "changeset") options.overlap = Overlap::kChangeset;
            if (given == "none") options.overlap = Overlap::kNone;
          },
          "all: sample a superbatch ahead while the network computes; changeset: while the one "
          "before is scheduled, so that the caches of lists and of rows have the memory in turn; "
          "none: read no row before its step, to see what reading ahead is worth")
      ->check(CLI::IsMember({"all", "changeset", "none", "auto"}))
      ->type_name("all|changeset|none|auto")
      ->default_str("auto");
  verb.add_option("--checkpoint-every", options.checkpoint_every,
                  "Write all that was learnt to the job's folder after so many minibatches; with "
                  "--full-graph: epochs")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->type_name("N");
  verb.add_option("--checkpoint-seconds", options.checkpoint_seconds,
                  "With --full-graph and --checkpoint-every: also within an epoch, when so many "
                  "seconds have passed since the last time")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("S")
      ->capture_default_str();
  verb.add_flag("--resume", options.resume,
                "Go on from the checkpoint of a run that was stopped: the same model comes of it");
  verb.add_flag("--full-graph", options.full_graph,
                "Train on all edges at once, an epoch a step: exact gradients, with what does not "
                "fit into --memory in the job's folder");
  AddChoice<SpillRule>(
      verb, "--spill", options.spill,
      {{"auto", SpillRule::kAuto},
       {"none", SpillRule::kNone},
       {"lru", SpillRule::kLru},
       {"lru-live", SpillRule::kLruLive},
       {"belady", SpillRule::kBelady},
       {"dp", SpillRule::kDp},
       {"dp-tensor", SpillRule::kDpTensor}},
      "What stays in memory of the arrays of --full-graph where --memory does not hold all; auto: "
      "by the rule that moves the fewest bytes");
  AddChoice<FullSums>(
      verb, "--sums", options.sums,
      {{"auto", FullSums::kAuto}, {"store", FullSums::kStore}, {"recompute", FullSums::kRecompute}},
      "What becomes of sums that --full-graph needs twice: they are stored, or "
      "gathered again in layers between the first and the last");
  verb.add_option("--job", options.job, "Name of the job's folder under scratch/")
      ->type_name("NAME")
      ->capture_default_str();
  AddScratch(verb, options.scratch);
  verb.add_option("--out", flags.out, "Write the model here (safetensors)")->type_name("F");
  verb.add_option("--report", flags.report,
                  "Describe the training here as a page: curves, confusion, figures by class, "
                  "seeds, network, memory and disk; a file of its own, without scripts (HTML)")
      ->type_name("F.html");
  verb.add_option("--curves", flags.curves,
                  "Write figures here, a line for each seed and epoch (CSV)")
      ->type_name("F.csv");
  verb.add_option("--plot", flags.plot, "Draw them here (SVG)")->type_name("F.svg");
  verb.add_option("--trace", flags.trace,
                  "Write here when each stage ran, for chrome://tracing or Perfetto (JSON)")
      ->type_name("F");
}

}  // namespace

void AddTrainFlags(CLI::App& verb, TrainFlags& flags, Session& session) {
  flags.verb = &verb;
  verb.add_option("STORE", flags.store, "The store's folder")->required();
  AddGnnArrayFlags(verb, flags.options.features, flags.options.labels, flags.options.split);
  AddModelFlags(verb, flags, session);
  AddEpochFlags(verb, flags.options);
  AddLearningFlags(verb, flags.options);
  AddStorageFlags(verb, flags);
}

Status CheckAlone(const CLI::App& verb) {
  for (const char* const name : {"--prefetch", "--remote-memory", "--gamma"}) {
    if (verb.get_option(name)->count() == 0) continue;
    return Status::InvalidArgument(fmt::format(
        "{} is for a training over ranks (--ranks, mpirun); --cache says what one process keeps",
        name));
  }
  return Status::Ok();
}

// Completes the options: (1) copies paths; (2) rejects flags of the other mode (full graph or
// minibatches) and flags without the device they need; (3) reconciles the number of layers
// (ReconcileLayers); (4) checks the name of the job.
Result<TrainOptions> CompleteTrainOptions(const TrainFlags& flags) {
  TrainOptions options = flags.options;
  options.store = flags.store;
  options.out = flags.out;
  options.trace = flags.trace;
  if (options.full_graph) {
    RHIZOME_RETURN_IF_ERROR(CheckFullGraphFlags(*flags.verb));
  } else {
    for (const char* const name : {"--spill", "--sums", "--checkpoint-seconds"}) {
      if (flags.verb->get_option(name)->count() > 0)
        return Fail(Status::InvalidArgument(fmt::format("{} is for --full-graph", name)));
    }
  }
  for (const char* const name : {"--device-memory", "--device-cache"}) {
    if (options.device == ComputeOn::kCpu && flags.verb->get_option(name)->count() > 0)
      return Fail(Status::InvalidArgument(fmt::format("{} is for --device cuda", name)));
  }
  RHIZOME_RETURN_IF_ERROR(ReconcileLayers(flags, options));
  RHIZOME_RETURN_IF_ERROR(CheckName("job", options.job));
  return options;
}

}  // namespace rhizome
