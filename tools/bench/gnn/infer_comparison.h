#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/bench/gnn/bench_infer.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {

/// Runs whole inferences for comparison, each in a process of its own: `rhizome infer` on one store
/// with a model, and PyTorch Geometric on the same graph.
/// Threads: one at a time.
class InferComparison {
 public:
  using Json = nlohmann::ordered_json;

  /// Generates the graph, unless a store is given, and the models; measures the memory of the
  /// process at its start. The destructor drops the arrays that `infer` wrote to a given store.
  /// Errors: kInvalidArgument, the array of features does not exist.
  static Result<std::unique_ptr<InferComparison>> Create(const BenchInferOptions& options,
                                                         const JobControl& control);
  ~InferComparison();

  /// Runs `rhizome infer` with these flags and returns its report. Drops all page caches first.
  /// `limit_bytes`: memory limit beyond the memory at the start, page cache included, set for a
  /// control group and passed as --memory. `kill_after`: kills the process after this number of
  /// seconds of work; the report is empty then, unless the process ended before. `model`: one of
  /// BenchInferOptions::models; empty: the first. Errors: the output of the process.
  Result<Json> Infer(const std::vector<std::string>& flags,
                     std::optional<std::uint64_t> limit_bytes, double kill_after = 0,
                     const std::string& model = {});

  /// Runs tools/bench/peers/pyg_infer.py and returns its report. The first call writes the graph to
  /// files.
  Result<Json> Peer(const std::vector<std::string>& flags, const JobControl& control);

  const Store& store() const { return *graph_.store; }
  const GraphSnapshot& graph() const { return *graph_.graph; }
  const Path& scratch() const { return scratch_->path(); }
  std::uint64_t base_bytes() const { return base_bytes_; }
  bool dropped_caches() const { return dropped_caches_; }

  /// Array that Infer writes; each run creates a new version, and only the newest is kept.
  static constexpr const char* kArray = "rhizome-bench";

 private:
  InferComparison(const BenchInferOptions& options, BenchGraph graph, ScratchFolder scratch);
  Status MakeModels();
  Path ModelFile(const std::string& model) const;
  Status WritePeerFiles(const JobControl& control);

  const BenchInferOptions options_;
  BenchGraph graph_;
  std::unique_ptr<ScratchFolder> scratch_;
  std::uint64_t base_bytes_ = 0;
  bool dropped_caches_ = true;
  bool wrote_peer_files_ = false;
};

}  // namespace rhizome
