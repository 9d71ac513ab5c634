#pragma once

#include <optional>
#include <string>

#include "cli.h"
#include "rhizome/cache/policy.h"
#include "rhizome/gnn/entry.h"

namespace rhizome {

/// Flags that `train` and `infer` share. What they fill must live as long as `verb`.

/// --features, --labels, --split
void AddGnnArrayFlags(CLI::App& verb, std::string& features, std::string& labels,
                      std::string& split);

/// --memory, --cache, --cache-bytes
void AddGnnMemoryFlags(CLI::App& verb, std::uint64_t& memory_bytes, PolicyKind& cache,
                       std::optional<std::uint64_t>& cache_bytes);

/// What a layerwise inference depends on, which `plan infer` takes too: arrays, --fanout, memory,
/// blocks and chunks, --seed, --threads, --codec.
void AddInferFlags(CLI::App& verb, InferOptions& options);

/// What --help says of the parts of a graph that networks do not look at.
extern const char* const kIgnoredHelp;

/// Prints a job's notes to standard error, clear of the progress.
JobNote PrintsNotes(const Session& session);

/// "64.5 %", or "none" of null.
std::string PercentOrNone(const Json& share);

}  // namespace rhizome
