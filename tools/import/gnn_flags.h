#pragma once

#include <string>

#include "rhizome/entry.h"
#include "tools/cli/cli.h"
#include "tools/cli/option_flags.h"

namespace rhizome {

/// Flags that `train`, `infer`, `plan` and `export` share. The variables that they fill must
/// outlive `verb`.

/// Adds the flags of `data`: arrays, sampling, edge weights, topology; and --split-column.
void AddDataFlags(OptionFlags& flags, CLI::App& verb, DataOptions& data);

/// Adds the flags of layerwise inference that `plan infer` accepts as well: arrays, --fanout,
/// memory, blocks and chunks, --seed, --threads, --codec.
void AddInferFlags(CLI::App& verb, InferOptions& options);

/// Adds the flags of `export --predictions`: the arrays that the inference reads and the edges that
/// it follows.
void AddPredictionFlags(CLI::App& verb, InferOptions& options);

/// Returns the options with the fanouts that the flags mean: a single `all` applies to every layer.
InferOptions CompleteInferOptions(InferOptions options);

/// Text for --help about the parts of a graph that models ignore.
extern const char* const kIgnoredHelp;

/// Returns a JobNote that prints to standard error without disturbing the progress bar.
JobNote PrintsNotes(const Session& session);

/// Returns "64.5 %", or "none" for null.
std::string PercentOrNone(const Json& share);

/// Formats the edges that a job followed, from the fields `direction` and `edge_weights` of its
/// report; empty for in-edges without weights.
std::string DescribeEdges(const Json& fields);

}  // namespace rhizome
