#pragma once

#include "rhizome/gnn/entry.h"
#include "testing/planted_graph.h"

extern "C" const rhizome::GnnEntry* rhizome_gnn_entry_v1();

namespace rhizome::testing {

/// A training that takes a second and learns a planted graph.
inline TrainOptions SmallTraining(const Path& store) {
  TrainOptions options;
  options.store = store;
  options.model.hidden = 16;
  options.fanouts = {5, 5};
  options.batch_size = 100;
  options.epochs = 4;
  options.seed = 3;
  options.threads = 1;
  return options;
}

}  // namespace rhizome::testing
