#pragma once

#include <cstdint>
#include <string>

#include "cli.h"
#include "rhizome/gnn/infer_options.h"

namespace rhizome {

/// The files that predictions go to. The name of `rows` says in which form:
///   .csv, .tsv  a head line, then one line a vertex: its id, and by task
///               multiclass  class,probability           of the class with the highest score
///               binary      class,probability           of class 1, which it is above one half
///               multilabel  labels,probability_0,...    labels above one half, with blanks between
///               regression  value                       or value_0,... of several columns
///   .npy        float32 [vertices, columns]: probabilities of all classes or labels, of class 1,
///   or
///               values; and the ids in a file of their own
struct PredictionFiles {
  Path rows;
  Path ids;  ///< of .npy
};

/// Errors: kInvalidArgument, another ending.
Status CheckPredictionFiles(const PredictionFiles& files);

/// Writes what a network says of the vertices that are not deleted, in vertex-id order, from its
/// scores. Probabilities are softmax or sigmoid of scores. A vertex whose scores are NaN or
/// infinite has an empty class, "nan" for its labels, and probabilities or values that are nan.
/// Memory: a tile of rows, `memory_bytes` or 1024 rows. Returns the entries of "files". Errors:
/// those of reading the array, of AppendIdField and of OutputFile; then neither file is there.
Result<Json> WritePredictions(const InferResult& scores, const PredictionFiles& files,
                              std::uint64_t memory_bytes, const JobControl& control);

}  // namespace rhizome
