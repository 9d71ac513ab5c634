#pragma once

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "gnn/gnn_testing.h"
#include "rhizome/ingest.h"
#include "rhizome/train_options.h"

namespace rhizome::testing {

/// Ingests an undirected data set of RHIZOME_TEST_DATA. `node_columns`: the columns of its
/// nodes.tsv.
inline Status IngestDataSet(const Path& data, const std::string& name, const Path& store,
                            std::vector<std::string> node_columns = {"id", "label", "split"}) {
  IngestOptions options;
  options.edges = {data / name / "edges.tsv.zst"};
  options.nodes = data / name / "nodes.tsv.zst";
  options.node_columns = std::move(node_columns);
  options.undirected = true;
  options.build.partition.partitions = 2;
  ArrayFile features{
      .name = "feat", .path = data / name / "features.npy.zst", .dim = 0, .dtype = {}};
  if (!std::filesystem::exists(features.path)) {
    features.path = data / name / "features.tsv.zst";
    features.dim = 6805;
  }
  options.arrays = {features};
  const JobControl control;
  return AsStatus(Ingest(FileSystem::Posix(), store, options, control));
}

/// Returns the mean test accuracy over `seeds` trainings and prints each.
inline Result<double> MeanTestAccuracy(TrainOptions options, const std::string& name, int seeds) {
  double sum = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    options.learning.seed = static_cast<std::uint64_t>(seed);
    const JobControl control;
    RHIZOME_ASSIGN_OR_RETURN(const TrainReport report,
                             rhizome_gnn_entry_v1()->Train(options, control));
    std::cout << name << " seed " << seed << ": test " << *report.test_accuracy << ", valid "
              << *report.valid_accuracy << ", majority " << *report.majority_accuracy << ", epoch "
              << report.best_epoch << "\n";
    sum += *report.test_accuracy;
  }
  std::cout << name << " mean test accuracy " << sum / seeds << "\n";
  return sum / seeds;
}

}  // namespace rhizome::testing
