#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"

namespace rhizome {

/// The flags that configure a sampler, shared by `sample` and `bench sample`.
struct SampleFlags {
  std::string fanout;
  std::vector<std::string> meta_path;  ///< names of edge types
  std::string time;                    ///< edge attribute, or empty: not temporal
  SamplerOptions options;              ///< the options that do not depend on a graph
};

/// Adds --fanout, --meta-path, --direction, --replace, --weighted, --disjoint, --frontier, --time,
/// --time-pick and --seed. Returns the option --fanout.
CLI::Option* AddSampleFlags(CLI::App& verb, SampleFlags& flags);

/// Resolves the names of edge types and attributes in `graph`.
/// Errors: kInvalidArgument, a malformed fanout; kNotFound, an unknown edge type or attribute.
Result<SamplerOptions> ResolveSampleFlags(const SampleFlags& flags, const GraphSnapshot& graph);

}  // namespace rhizome
