#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench_common.h"
#include "bench_infer.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Whole inferences, each a process of its own, that benchmarks compare: of `rhizome infer` on one
/// store with a model, and of PyTorch Geometric on the same graph. Threads: one at a time.
class InferContest {
 public:
  using Json = nlohmann::ordered_json;

  /// Makes the graph, unless it is given, and the models; measures the bare process. What `infer`
  /// writes to a store that was given is dropped when this goes. Errors: kInvalidArgument, the
  /// array of features is not there.
  static Result<std::unique_ptr<InferContest>> Create(const BenchInferOptions& options,
                                                      const JobControl& control);
  ~InferContest();

  /// The report of `rhizome infer` with these flags. `limit_bytes`: of memory beyond the bare
  /// process, page cache included, set by a control group and told with --memory. `kill_after`
  /// seconds of work: the process is killed then, and there is no report (an empty object) unless
  /// it was done before. `model`: one of BenchInferOptions::models, empty: the first. All caches
  /// are dropped first. Errors: what it said.
  Result<Json> Infer(const std::vector<std::string>& flags,
                     std::optional<std::uint64_t> limit_bytes, double kill_after = 0,
                     const std::string& model = {});

  /// The report of tools/bench/peers/pyg_infer.py, for which the graph is written to files once.
  Result<Json> Peer(const std::vector<std::string>& flags, const JobControl& control);

  const Store& store() const { return *graph_.store; }
  const GraphSnapshot& graph() const { return *graph_.graph; }
  const Path& scratch() const { return scratch_->path(); }
  std::uint64_t base_bytes() const { return base_bytes_; }
  bool dropped_caches() const { return dropped_caches_; }

  /// Name of the array that Infer makes new versions of, keeping the newest.
  static constexpr const char* kArray = "rhizome-bench";

 private:
  InferContest(const BenchInferOptions& options, BenchGraph graph, ScratchFolder scratch);
  Status MakeModels();
  Path ModelFile(const std::string& model) const;
  Status WritePeerFiles(const JobControl& control);
  Result<Json> RunForJson(const std::vector<std::string>& command, const std::string& name,
                          bool killed = false);

  const BenchInferOptions options_;
  BenchGraph graph_;
  std::unique_ptr<ScratchFolder> scratch_;
  std::uint64_t base_bytes_ = 0;
  bool dropped_caches_ = true;
  bool wrote_peer_files_ = false;
};

}  // namespace rhizome
