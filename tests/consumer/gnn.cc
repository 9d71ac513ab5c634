#include <rhizome/entry.h>
#include <rhizome/link_scores.h>

#include <cstdio>

// usage: gnn_consumer STORE
// Requests something impossible from the GNN library that it links, and expects an error.
int main(int argc, char** argv) {
  if (argc != 2 || rhizome_gnn_scores_v1() == nullptr) return 1;
  rhizome::TrainOptions options;
  options.store = argv[1];
  options.data.features = "no such array";
  const rhizome::JobControl control;
  const auto report = rhizome_gnn_entry_v1()->Train(options, control);
  if (report) return 1;
  std::printf("%s\n", report.error().ToString().c_str());
  return 0;
}
