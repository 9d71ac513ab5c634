#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench.h"
#include "rhizome/cache/pass_layout.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench infer`, in parts (see verb_bench_infer.cc): what a pass of layerwise inference reads
/// under each layout and cache, counted; whole inferences against PyTorch Geometric and samplewise
/// ones; one that is killed and resumed; a source that is far away, with and without caches;
/// codecs.
struct BenchInferOptions {
  BenchGraphOptions graph;
  std::vector<std::string> parts = {"counts"};
  std::string features = "feat";
  std::uint32_t rounds = 3;  ///< turns of each contestant; the median counts
  std::string plot;          ///< picture; of a part F-<part>.svg; empty: none

  // Parameters of the parts counts and far.
  std::int64_t fanout = -1;         ///< neighbours that a target is computed from; -1: all
  std::uint64_t block_rows = 1024;  ///< targets of a block
  std::uint64_t chunk_rows = 0;     ///< 0: the most, of powers of two, that give 1,024 chunks
  double cache_share = 0.1;         ///< a worker's cache, of the chunks that its rows fill

  // Parameters of the parts time, resume and codecs.
  std::vector<std::string> models = {"sage"};  ///< several: `time` compares them with the first
  std::uint32_t layers = 2;
  std::uint64_t hidden = 256;
  std::int64_t few = 10;                                 ///< the fanout of sampled contestants
  std::uint64_t limit_bytes = std::uint64_t{512} << 20;  ///< of infer, beyond the bare process
  bool samplewise = true;                                ///< also our own, in memory
  std::string peer_python;  ///< a Python that has torch_geometric; empty: no peer
  std::string peer_script;  ///< tools/bench/peers/pyg_infer.py
  std::string peer_kernel = "loader";
  std::uint64_t peer_batches = 0;  ///< of each of its layers, at random; 0: all

  // Parameters of the part far.
  double latency_ms = 2;
  std::uint32_t in_flight = 32;
};
Result<nlohmann::ordered_json> BenchInfer(const BenchInferOptions& options,
                                          const JobControl& control);

/// Rows of a chunk where the options leave it open: the most, of powers of two, that give 1,024
/// chunks.
std::uint64_t BenchChunkRows(const BenchInferOptions& options, std::uint64_t row_count);

class InferContest;

/// The parts that compute or read. Each adds its fields to `json`.
Status BenchInferTime(const BenchInferOptions& options, InferContest& contest,
                      const JobControl& control, nlohmann::ordered_json& json);
Status BenchInferResume(const BenchInferOptions& options, InferContest& contest,
                        const JobControl& control, nlohmann::ordered_json& json);
Status BenchInferFar(const BenchInferOptions& options, InferContest& contest,
                     const JobControl& control, nlohmann::ordered_json& json);
Status BenchInferCodecs(const BenchInferOptions& options, InferContest& contest,
                        const JobControl& control, nlohmann::ordered_json& json);

/// How near a run that made `report` comes to what the machine can do: the processors' time that it
/// takes; the bytes that it moves, at the rate at which the disk gives the features' chunks to
/// whoever does nothing else; its products, at the rate at which all threads multiply tiles and do
/// nothing else. Shares of its time; the second and the third are measured here.
Result<nlohmann::ordered_json> InferLimits(const BenchInferOptions& options,
                                           const InferContest& contest,
                                           const nlohmann::ordered_json& report,
                                           const JobControl& control);

/// `path` with the name of a part before its ending.
std::string PartPlot(const std::string& path, const std::string& part);

}  // namespace rhizome
