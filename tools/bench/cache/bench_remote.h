#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json.h"
#include "rhizome/cache/remote_traces.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench remote`: the rows that ranks fetch from each other in a training, under each policy, by
/// replaying the rows that their minibatches ask for. Nothing is read, sent or trained.
struct BenchRemoteOptions {
  std::vector<std::string> stores;  ///< traces of these; their homes divide rows and seeds
  std::vector<std::string> traces;  ///< and of graphs that are made: a folder of `data`, or rmatN
  std::string data;                 ///< folder of data sets
  std::string dir = ".";            ///< where graphs that are made lie for the time being
  std::vector<double> fractions = {.15, .25, .35, .5};  ///< buffer of a rank, over its halo
  std::vector<std::uint32_t> superbatches = {8, 16, 32};
  std::vector<std::string> policies = {"all"};
  RemoteTraceOptions trace;
  std::string plot;
};
Result<Json> BenchRemote(const BenchRemoteOptions& options, const JobControl& control);

/// The policies of BenchRemoteOptions::policies.
const std::vector<std::string>& RemotePolicies();

/// Makes the store of a trace at `path`: of `name`, a folder of `data`, or an R-MAT of 2^N vertices
/// for "rmatN", undirected, in homes by an edge cut. Errors: kInvalidArgument, there is no such
/// data set; those of Ingest.
Status MakeRemoteGraph(const std::string& name, const BenchRemoteOptions& options,
                       const std::string& path, const JobControl& control);

}  // namespace rhizome
