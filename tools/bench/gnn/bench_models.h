#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/cache/task_metrics.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

// `bench models`: what networks reach on data sets of the literature, beside what was published.

namespace rhizome {

/// A result of the literature, as a share; 0: there is none.
struct Published {
  double mean = 0;
  double deviation = 0;  ///< 0: not given
  const char* source = "";
};

/// A network on a data set, with the settings that it is trained with.
struct ModelCase {
  const char* data;                   ///< a folder of the data
  TrainOptions training;              ///< all but store, split, seed and threads
  Metric metric = Metric::kAccuracy;  ///< of the test set
  Published published = {};
  double least = 0;      ///< the mean must reach it; 0: nothing is asked
  double below_gcn = 0;  ///< the mean must not be further below that of gcn; 0: nothing is asked
  bool in_ci = false;    ///< whether the tier ci has it

  /// Whether the data have splits of their own, of which each run takes one; else runs are seeds.
  bool official_splits = false;
  static constexpr std::uint32_t kSplits = 10;
  static constexpr const char* kSplitsArray = "splits10";  ///< that has them, one a column
  static constexpr std::uint32_t kSeeds = 5;

  std::uint32_t runs() const { return official_splits ? kSplits : kSeeds; }
};

/// The table of all cases, those of a data set one after another.
std::vector<ModelCase> AllModelCases();

/// The folder of the data sets: `given`, what RHIZOME_TEST_DATA names, or ../shared/data.
Path DataFolder(const std::string& given);

/// Ingests a data set as a store at `path`. `folder` has edges.tsv.zst, nodes.tsv.zst, features and
/// meta.json, which describes them; all edges count in both directions. The columns of edges are
/// those that "edge_columns" names, as IngestOptions::columns has them: types and weights, if there
/// are any, are the store's. Columns of nodes become the arrays label, split and kSplitsArray;
/// others, such as types and names of nodes, are left out.
/// Errors: kNotFound and kInvalidArgument, naming the file; those of Ingest.
Status IngestDataSet(const Path& folder, const Path& path, const JobControl& control);

struct BenchModelsOptions {
  Path data;               ///< the folder of all data sets
  Path dir = ".";          ///< where stores go while it runs
  bool is_long = false;    ///< all cases, or those of the tier ci
  std::string only;        ///< only cases of which "DATA MODEL" contains it; empty: all
  std::uint32_t runs = 0;  ///< of each case; 0: as the table says
  bool list = false;       ///< describe the cases and train nothing
  std::uint32_t threads = 1;
  std::function<void(std::string_view)> note = {};  ///< told each row as soon as it is complete
};

/// Trains each case with the public entry of the library (GnnEntry::Train).
/// Errors: those of IngestDataSet and of training; kInvalidArgument, no case is meant;
/// kInterrupted.
Result<nlohmann::ordered_json> BenchModels(const BenchModelsOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
