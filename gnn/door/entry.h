#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/model_spec.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

// The torch-free entry point of librhizome_gnn: a program that links only librhizome loads the
// library with dlopen, compares what kGnnBuildSymbol returns with BuildId() (storage/build_id.h),
// because the library shares classes with the librhizome of its own build, and looks up
// kGnnEntrySymbol.

namespace RHIZOME_API rhizome {

/// The device that `train --device cuda` takes.
struct DeviceProbe {
  std::string name;
  int sm = 0;  ///< compute capability, 90 for 9.0
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_bytes = 0;
  double copy_bytes_per_second = 0;     ///< from pinned memory of the host, measured
  std::string driver = {};              ///< the newest CUDA that it takes, "13.0"
  bool registers = false;               ///< whether memory that the host has can become pinned
  std::string why_not_registered = {};  ///< the system's reason
};

/// The verbs of the library.
/// Errors: those of the store; kInvalidArgument, arrays or model that do not fit; kBusy, another
/// job of this name runs; kInterrupted.
/// Threads: one call at a time in a process (libtorch's thread count is global), but for the ranks
/// of one training that are threads (TrainOptions::transport): they train at once.
class GnnEntry {
 public:
  virtual ~GnnEntry() = default;
  virtual Result<TrainReport> Train(const TrainOptions& options,
                                    const JobControl& control) const = 0;
  virtual Result<InferReport> Infer(const InferOptions& options,
                                    const JobControl& control) const = 0;

  /// Describes the kinds of networks that Train takes.
  virtual std::vector<ModelInfo> Models() const = 0;

  /// Counts what Infer would read in layerwise mode. Writes nothing; `out` is ignored.
  virtual Result<InferPlan> PlanInfer(const InferOptions& options,
                                      const JobControl& control) const = 0;

  /// Counts what an epoch of Train on the full graph would read and write, and takes. Writes
  /// nothing.
  virtual Result<FullGraphReport> PlanTrain(const TrainOptions& options,
                                            const JobControl& control) const = 0;

  /// Makes this process a child of one that runs Infer with these options (InferWorkers::command):
  /// serves it on the standard streams, in `memory_bytes` (0: no limit), until it needs no more.
  /// What goes wrong is told to the parent.
  virtual Status ServeInfer(const InferOptions& options, std::uint64_t memory_bytes,
                            const JobControl& control) const = 0;

  /// Opens the device and measures how fast it is copied to. Errors: kUnsupported, there is none
  /// that can be used: the message says why, and what to do; kOutOfMemory; kIoError, it failed.
  virtual Result<DeviceProbe> ProbeDevice() const = 0;
};

/// The names to look up with dlsym: those of the functions below.
inline constexpr const char* kGnnEntrySymbol = "rhizome_gnn_entry_v1";
inline constexpr const char* kGnnBuildSymbol = "rhizome_gnn_build_v1";

}  // namespace rhizome

/// Returns the entry, for programs that link the library (the CMake target rhizome::gnn). It lives
/// as long as the library. Null: the librhizome in this process is of another build.
extern "C" RHIZOME_API const rhizome::GnnEntry* rhizome_gnn_entry_v1();

/// Returns the id of the build of this library, as BuildId() returns that of librhizome.
extern "C" RHIZOME_API const char* rhizome_gnn_build_v1();
