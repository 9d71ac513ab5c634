#pragma once

#include <cstdint>
#include <string>

#include "rhizome/infer_options.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Output files of predictions. The extension of `rows` determines the format:
///   .csv, .tsv  a header line, then one line per vertex: its id, and by task
///               multiclass  class,probability           of the class with the highest score
///               binary      class,probability           of class 1, predicted if above one half
///                                                       (a class is its name, if it has one)
///               multilabel  labels,probability_0,...    labels above one half, space-separated
///               regression  value                       or value_0,... (several columns)
///   .npy        float32 [vertices, columns]: probabilities of all classes or labels or of class 1,
///               or values; the ids are written to a file of their own
struct PredictionFiles {
  Path rows;
  Path ids;  ///< used with .npy only
};

/// Checks the file names. Errors: kInvalidArgument, an unknown extension.
Status CheckPredictionFiles(const PredictionFiles& files);

/// Writes the predictions for all vertices that are not deleted, in vertex-id order, from the
/// model's scores. Probabilities are the softmax or sigmoid of the scores. A vertex whose scores
/// are NaN or infinite gets an empty class, "nan" as its labels, and probabilities or values that
/// are nan. Returns the entries of "files".
/// Memory: a tile of rows, of `memory_bytes` or 1024 rows, whichever is more.
/// Errors: as reading the array, AppendIdField and OutputFile; no file is created then.
Result<Json> WritePredictions(const InferResult& scores, const PredictionFiles& files,
                              std::uint64_t memory_bytes, const JobControl& control);

}  // namespace rhizome
