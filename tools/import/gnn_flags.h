#pragma once

#include <optional>
#include <string>

#include "rhizome/entry.h"
#include "rhizome/policy.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Flags that `train` and `infer` share. The variables that they fill must outlive `verb`.

/// Adds --features, --labels, --split and --split-column.
void AddGnnArrayFlags(CLI::App& verb, std::string& features, std::string& labels,
                      std::string& split);

/// Adds --memory, --cache and --cache-bytes.
void AddGnnMemoryFlags(CLI::App& verb, std::uint64_t& memory_bytes, PolicyKind& cache,
                       std::optional<std::uint64_t>& cache_bytes);

/// Adds the flags of layerwise inference that `plan infer` accepts as well: arrays, --fanout,
/// memory, blocks and chunks, --seed, --threads, --codec.
void AddInferFlags(CLI::App& verb, InferOptions& options);

/// Adds --mode.
void AddInferModeFlag(CLI::App& verb, InferOptions& options);

/// Adds the flags of `export --predictions`: the arrays that the inference reads and the edges that
/// it follows.
void AddPredictionFlags(CLI::App& verb, InferOptions& options);

/// Text for --help about the parts of a graph that models ignore.
extern const char* const kIgnoredHelp;

/// Returns a JobNote that prints to standard error without disturbing the progress bar.
JobNote PrintsNotes(const Session& session);

/// Returns "64.5 %", or "none" for null.
std::string PercentOrNone(const Json& share);

}  // namespace rhizome
