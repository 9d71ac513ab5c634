#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/ranks/remote_traces.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/cli/json.h"

namespace rhizome {

/// `bench remote`: counts the rows that ranks fetch from each other during a training, under each
/// policy, by replaying the rows that their minibatches request. No row is read or sent, and no
/// model is trained.
struct BenchRemoteOptions {
  std::vector<std::string> stores;  ///< stores to trace; their homes assign rows and seeds to ranks
  /// names of graphs to generate and trace: a folder of `data`, or rmatN
  std::vector<std::string> traces;
  std::string data;       ///< folder of data sets
  std::string dir = ".";  ///< folder of generated graphs, which are removed afterwards
  /// buffer size of a rank, as a fraction of its halo
  std::vector<double> fractions = {.15, .25, .35, .5};
  std::vector<std::uint32_t> superbatches = {8, 16, 32};
  std::vector<std::string> policies = {"all"};
  RemoteTraceOptions trace;
  std::string plot;
};
Result<Json> BenchRemote(const BenchRemoteOptions& options, const JobControl& control);

/// Returns the names allowed in BenchRemoteOptions::policies.
const std::vector<std::string>& RemotePolicies();

/// Creates a store at `path` from `name`: a folder of `data`, or "rmatN" for an R-MAT of 2^N
/// vertices. The graph is undirected, with homes from an edge cut.
/// Errors: as Ingest; kInvalidArgument, there is no such data set.
Status MakeRemoteGraph(const std::string& name, const BenchRemoteOptions& options,
                       const std::string& path, const JobControl& control);

}  // namespace rhizome
