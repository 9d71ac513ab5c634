#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cache/layout/pass_layout.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/bench/harness/bench.h"

namespace rhizome {

/// `bench infer`, in parts (see verb_bench_infer.cc):
/// - counts: the chunks that a pass of layerwise inference reads under each layout and cache;
/// - time: whole inferences, compared with PyTorch Geometric and with samplewise inference;
/// - resume: an inference that is killed and resumed;
/// - far: a source with a high latency, with and without caches;
/// - codecs: compression of the chunks.
struct BenchInferOptions {
  BenchGraphOptions graph;
  std::vector<std::string> parts = {"counts"};
  std::string features = "feat";
  std::uint32_t rounds = 3;  ///< turns per contestant; the median counts
  std::string plot;          ///< picture; F-<part>.svg for a part; empty: none

  // Parameters of the parts counts and far.
  std::int64_t fanout = -1;         ///< neighbours per target; -1: all
  std::uint64_t block_rows = 1024;  ///< targets per block
  std::uint64_t chunk_rows = 0;     ///< 0: the largest power of two with at least 1,024 chunks
  /// size of a worker's cache, as a share of the chunks that hold its rows
  double cache_share = 0.1;

  // Parameters of the parts time, resume and codecs.
  std::vector<std::string> models = {"sage"};  ///< `time` compares them with the first
  std::uint32_t layers = 2;
  std::uint64_t hidden = 256;
  std::int64_t few = 10;  ///< fanout of contestants that sample
  /// memory limit of infer, beyond the memory at its start
  std::uint64_t limit_bytes = std::uint64_t{512} << 20;
  bool samplewise = true;   ///< also measures Rhizome's samplewise inference, in memory
  std::string peer_python;  ///< a Python with torch_geometric; empty: PyG is not measured
  std::string peer_script;  ///< tools/bench/peers/pyg_infer.py
  std::string peer_kernel = "loader";
  std::uint64_t peer_batches = 0;  ///< random batches per layer of PyG; 0: all

  // Parameters of the part far.
  double latency_ms = 2;
  std::uint32_t in_flight = 32;
};
Result<nlohmann::ordered_json> BenchInfer(const BenchInferOptions& options,
                                          const JobControl& control);

/// Returns the rows per chunk: as in the options, or by default the largest power of two with at
/// least 1,024 chunks.
std::uint64_t BenchChunkRows(const BenchInferOptions& options, std::uint64_t row_count);

class InferComparison;

/// Run the parts that compute or read. Each adds its fields to `json`.
Status BenchInferTime(const BenchInferOptions& options, InferComparison& contest,
                      const JobControl& control, nlohmann::ordered_json& json);
Status BenchInferResume(const BenchInferOptions& options, InferComparison& contest,
                        const JobControl& control, nlohmann::ordered_json& json);
Status BenchInferFar(const BenchInferOptions& options, InferComparison& contest,
                     const JobControl& control, nlohmann::ordered_json& json);
Status BenchInferCodecs(const BenchInferOptions& options, InferComparison& contest,
                        const JobControl& control, nlohmann::ordered_json& json);

/// Returns how close the run described by `report` is to the limits of the machine, as shares of
/// its time: (1) its processor time; (2) the time to move its bytes at the rate at which the disk
/// reads chunks of features without other work; (3) the time of its matrix products at the rate at
/// which all threads multiply tiles without other work. (2) and (3) are measured here.
Result<nlohmann::ordered_json> InferLimits(const BenchInferOptions& options,
                                           const InferComparison& contest,
                                           const nlohmann::ordered_json& report,
                                           const JobControl& control);

/// Returns `path` with the name of a part inserted before its extension.
std::string PartPlot(const std::string& path, const std::string& part);

}  // namespace rhizome
