#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/task_metrics.h"
#include "rhizome/train_options.h"

// `bench models`: metrics that models reach on data sets of the literature, compared with published
// results.

namespace rhizome {

/// A published result, as a share; 0: none.
struct Published {
  double mean = 0;
  double deviation = 0;  ///< 0: not given
  const char* source = "";
};

/// A model on a data set, with its training options.
struct ModelCase {
  const char* data;                   ///< folder of the data set
  TrainOptions training;              ///< all options but store, split, seed and threads
  Metric metric = Metric::kAccuracy;  ///< metric of the test set
  Published published = {};
  double least = 0;  ///< lower bound of the mean; 0: not checked
  /// upper bound of the distance by which the mean may be below that reached by gcn; 0: not checked
  double below_gcn = 0;
  bool in_ci = false;  ///< whether it is part of the tier ci

  /// Whether the data set has its own splits, one per run. Otherwise runs differ by their seeds.
  bool official_splits = false;
  static constexpr std::uint32_t kSplits = 10;
  /// array of these splits, one per column
  static constexpr const char* kSplitsArray = "splits10";
  std::uint32_t seeds = 5;

  std::uint32_t runs() const { return official_splits ? kSplits : seeds; }
};

/// Returns all cases, grouped by data set.
std::vector<ModelCase> AllModelCases();

/// Returns the folder of the data sets: `given`, the value of RHIZOME_TEST_DATA, or ../shared/data.
Path DataFolder(const std::string& given);

/// Ingests a data set as a store at `path`. `folder` has edges.tsv.zst, nodes.tsv.zst, features and
/// meta.json, which describes them; edges are undirected unless "directed" is true. The columns of
/// edges are named by "edge_columns", as in IngestOptions::columns; types and weights, if any, are
/// stored. Columns of nodes become the arrays label, split and kSplitsArray, and the types of the
/// vertices of a directed graph; other columns, such as names of nodes, are ignored.
/// Errors: as Ingest; kNotFound and kInvalidArgument, naming the file.
Status IngestDataSet(const Path& folder, const Path& path, const JobControl& control);

struct BenchModelsOptions {
  Path data;               ///< folder of all data sets
  Path dir = ".";          ///< folder of temporary stores
  bool is_long = false;    ///< true: all cases; false: the cases of the tier ci
  std::string only;        ///< only cases whose name contains this text; empty: all
  std::uint32_t runs = 0;  ///< runs per case; 0: as in the table
  bool list = false;       ///< lists the cases without training them
  std::uint32_t threads = 1;
  std::function<void(std::string_view)> note = {};  ///< receives each row as soon as it is complete
};

/// Trains each case through the public interface of the library (GnnEntry::Train).
/// Errors: as IngestDataSet and training; kInvalidArgument, no case is selected; kInterrupted.
Result<nlohmann::ordered_json> BenchModels(const BenchModelsOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
