#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "rhizome/entry.h"
#include "testing/planted_graph.h"

extern "C" const rhizome::GnnEntry* rhizome_gnn_entry_v1();

namespace rhizome::testing {

/// A model to test. RegisteredNetworks() lists every registered kind of layer and NetworkVariants()
/// the options around a layer, so that tests over both cover a new kind without naming it.
struct NetworkCase {
  std::string name;  ///< of the test case, letters and digits
  ModelSpec spec;
};
inline void PrintTo(const NetworkCase& network, std::ostream* out) { *out << network.name; }

inline std::vector<NetworkCase> RegisteredNetworks() {
  std::vector<NetworkCase> networks;
  for (const ModelInfo& model : rhizome_gnn_entry_v1()->Models())
    if (model.network) networks.push_back({model.name, {.kind = model.name, .hidden = 16}});
  return networks;
}

/// Returns the registered kinds without weights by edge type, which all modes support.
inline std::vector<NetworkCase> UntypedNetworks() {
  std::vector<NetworkCase> networks;
  for (const ModelInfo& model : rhizome_gnn_entry_v1()->Models())
    if (model.network && !model.typed)
      networks.push_back({model.name, {.kind = model.name, .hidden = 16}});
  return networks;
}

/// Returns one model for each value of each option that changes what a layer computes.
inline std::vector<NetworkCase> NetworkVariants() {
  using Options = std::map<std::string, std::string>;
  std::vector<NetworkCase> networks;
  const auto add = [&](const std::string& name, const std::string& kind, const Options& options) {
    networks.push_back({name, {.kind = kind, .hidden = 16, .options = options}});
  };
  add("SageMax", "sage", {{"aggregator", "max"}});
  add("SagePool", "sage", {{"aggregator", "pool"}, {"l2-normalize", "true"}});
  add("SageGcn", "sage", {{"aggregator", "gcn"}});
  add("CommNetSkip", "commnet", {{"skip", "true"}});
  add("GatOutHeads", "gat", {{"head", "none"}, {"out-heads", "3"}});
  add("GatAlone", "gat", {{"no-self-loops", "true"}, {"residual", "true"}});
  add("GatV2Alone", "gatv2", {{"no-self-loops", "true"}});
  add("GcnNoHead", "gcn", {{"head", "none"}});
  add("ResidualBatch", "gcn", {{"residual", "true"}, {"norm", "batch"}});
  add("ResidualLayer", "sage", {{"residual", "true"}, {"norm", "layer"}, {"activation", "elu"}});
  add("FeedForward", "sage", {{"feed-forward", "true"}, {"norm", "layer"}, {"activation", "gelu"}});
  add("FeedForwardGcn", "gcn", {{"feed-forward", "true"}, {"norm", "batch"}});
  add("FeedForwardGat", "gat", {{"feed-forward", "true"}, {"norm", "layer"}});
  add("JumpConcat", "sage", {{"jump", "concat"}, {"head", "mlp"}});
  add("JumpMax", "gat", {{"jump", "max"}, {"activation", "tanh"}});
  return networks;
}

/// Returns the options of a training that takes a second and learns a planted graph.
inline TrainOptions SmallTraining(const Path& store) {
  TrainOptions options;
  options.store = store;
  options.model.hidden = 16;
  options.minibatch()->fanouts = {5, 5};
  options.minibatch()->batch_size = 100;
  options.learning.epochs = 4;
  options.learning.seed = 3;
  options.resources.threads = 1;
  return options;
}

}  // namespace rhizome::testing
