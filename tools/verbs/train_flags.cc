#include "tools/verbs/train_flags.h"

#include <fmt/format.h>

#include "gnn/options/infer_fields.h"
#include "gnn/options/train_fields.h"
#include "storage/io/files.h"
#include "tools/import/gnn_flags.h"
#include "tools/import/model_flags.h"

namespace rhizome {
namespace {

bool IsGiven(const TrainFlags& flags, const char* name) {
  return flags.verb->get_option(name)->count() > 0;
}

/// Determines the number of layers. --layers, --fanout, --typed-fanout and --meta-path each imply
/// one; any of them is sufficient, and all that are given must agree.
Status ReconcileLayers(const TrainFlags& flags, TrainOptions& options) {
  constexpr std::int64_t kDefaultFanout = 10;
  MinibatchOptions* const minibatch = options.minibatch();
  if (minibatch == nullptr || options.model.kind == kTableModel) return Status::Ok();
  const NeighborSampling& sampling = options.data.sampling;
  const bool has_fanouts = IsGiven(flags, "--fanout"), has_layers = IsGiven(flags, "--layers");
  const bool typed = !sampling.typed_fanouts.empty();
  if (typed && has_fanouts)
    return Status::InvalidArgument("--typed-fanout replaces --fanout; give one of them");
  const auto hops = static_cast<std::uint32_t>(HopsOf(sampling));
  std::uint32_t& layers = options.model.layers;
  if (hops != 0 && has_layers && layers != hops) {
    return Status::InvalidArgument(
        fmt::format("{} has {} hops but --layers is {}; give one hop for each layer",
                    typed ? "--typed-fanout" : "--meta-path", hops, layers));
  }
  if (!has_layers && hops != 0) layers = hops;
  std::vector<std::int64_t>& fanouts = minibatch->fanouts;
  if (!has_fanouts) fanouts = {kDefaultFanout};
  if (has_fanouts && !has_layers && hops == 0) layers = static_cast<std::uint32_t>(fanouts.size());
  // A single number, or `all`, applies to every layer.
  for (std::vector<std::int64_t>* const numbers : {&fanouts, &minibatch->eval_fanouts})
    if (numbers->size() == 1) numbers->resize(layers, numbers->front());
  if (fanouts.size() == layers) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("--fanout has {} numbers but --layers is {}; give one for each layer",
                  fanouts.size(), layers));
}

/// Returns the mode, and rejects flags of the other mode and of a device that is not used.
Result<std::variant<MinibatchOptions, FullGraphOptions>> ModeOf(const TrainFlags& flags) {
  const OptionFlags& table = *flags.table;
  if (flags.is_full_graph) {
    for (const char* const group : {"minibatch", "device", "ranks"})
      RHIZOME_RETURN_IF_ERROR(table.Refuse(group, "is for minibatches: omit it with --full-graph"));
    if (flags.computes == ComputeOn::kCuda)
      return Fail(Status::Unsupported(
          "--device cuda is for training on minibatches; --full-graph runs on the CPU"));
    return flags.full_graph;
  }
  RHIZOME_RETURN_IF_ERROR(table.Refuse("full_graph", "is for --full-graph"));
  MinibatchOptions minibatch = flags.minibatch;
  if (flags.computes == ComputeOn::kCuda) {
    minibatch.device = flags.device;
  } else {
    RHIZOME_RETURN_IF_ERROR(table.Refuse("device", "is for --device cuda"));
  }
  return minibatch;
}

/// Adds the files that describe the training.
void AddDescriptionFlags(CLI::App& verb, TrainFlags& flags) {
  verb.add_option("--report", flags.report,
                  "Write a report of the training to this file: curves, confusion matrix, metrics "
                  "by class, seeds, network, memory and disk; a single page without scripts (HTML)")
      ->type_name("F.html");
  verb.add_option("--curves", flags.curves,
                  "Write the figures of each seed and epoch to this file (CSV)")
      ->type_name("F.csv");
  verb.add_option("--plot", flags.plot, "Draw them into this file (SVG)")->type_name("F.svg");
}

}  // namespace

void AddTrainFlags(CLI::App& verb, TrainFlags& flags, Session& session) {
  flags.verb = &verb;
  flags.table = std::make_unique<OptionFlags>(verb);
  OptionFlags& table = *flags.table;
  TrainOptions& options = flags.options;
  verb.add_option("STORE", flags.store, "The store's folder")->required();
  AddDataFlags(table, verb, options.data);
  AddModelFlags(table, verb, options.model, session);
  EachMinibatchField(table, flags.minibatch);
  EachLearningField(table, options.learning);
  EachResourceField(table, options.resources);
  EachPrefetchField(table, flags.prefetch);
  table(Option{"computes", "device", "Device that computes the model; cuda: the first CUDA device"},
        flags.computes);
  EachDeviceField(table, flags.device);
  verb.add_flag("--full-graph", flags.is_full_graph,
                "Train on all edges at once, one step per epoch, with exact gradients; data that "
                "exceeds --memory is spilled to the job's folder");
  EachFullGraphField(table, flags.full_graph);
  EachLinkField(table, options.link);
  EachJobField(table, options.job);
  AddDescriptionFlags(verb, flags);
}

Status CheckAlone(const TrainFlags& flags) {
  return flags.table->Refuse("ranks",
                             "is for a training over ranks (--ranks, mpirun); --cache selects the "
                             "policy of a single process");
}

// Completes the options: (1) builds the mode from its flags, and rejects flags of the other mode;
// (2) reconciles the number of layers (ReconcileLayers); (3) checks the name of the job.
Result<TrainOptions> CompleteTrainOptions(const TrainFlags& flags) {
  TrainOptions options = flags.options;
  options.store = flags.store;
  RHIZOME_ASSIGN_OR_RETURN(options.mode, ModeOf(flags));
  RHIZOME_RETURN_IF_ERROR(ReconcileLayers(flags, options));
  RHIZOME_RETURN_IF_ERROR(CheckName("job", options.job.name));
  return options;
}

}  // namespace rhizome
