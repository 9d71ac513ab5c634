#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// The flags that say what a sampler draws, shared by `sample` and `bench sample`.
struct SampleFlags {
  std::string fanout;
  std::vector<std::string> meta_path;  ///< names of edge types
  std::string time;                    ///< edge attribute, or empty: not temporal
  SamplerOptions options;              ///< what needs no graph to be understood
};

/// --fanout, --meta-path, --direction, --replace, --weighted, --disjoint, --frontier,
/// --time, --time-pick, --seed.
/// Returns the option --fanout.
CLI::Option* AddSampleFlags(CLI::App& verb, SampleFlags& flags);

/// The options with names of edge types looked up in `graph`. Errors: kInvalidArgument, a malformed
/// fanout; kNotFound, no such edge type or
/// attribute.
Result<SamplerOptions> ResolveSampleFlags(const SampleFlags& flags, const GraphSnapshot& graph);

}  // namespace rhizome
