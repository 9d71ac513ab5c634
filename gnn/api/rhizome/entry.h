#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/infer_options.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

// The torch-free entry point of librhizome_gnn. A program that links only librhizome loads the
// library with dlopen and compares the result of kGnnBuildSymbol with BuildId()
// (storage/store/build_id.h): the two libraries share classes, so they must be of the same build.
// Then it looks up kGnnEntrySymbol.

namespace RHIZOME_API rhizome {

/// The device that `train --device cuda` uses.
struct DeviceProbe {
  std::string name;
  int sm = 0;  ///< compute capability, 90 for 9.0
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_bytes = 0;
  double copy_bytes_per_second = 0;  ///< measured, from pinned host memory
  std::string driver = {};           ///< newest CUDA version that it supports, for example "13.0"
  bool registers = false;            ///< whether existing host memory can be pinned
  std::string why_not_registered = {};  ///< the reason that the system reports, if not
};

/// The verbs of the library.
/// Errors: errors of the store; kInvalidArgument, arrays or model that do not fit; kBusy, another
/// job of this name is running; kInterrupted.
/// Threads: one call at a time per process, because libtorch's thread count is global. Exception:
/// ranks of one training that are threads (RankOptions) train concurrently.
class GnnEntry {
 public:
  virtual ~GnnEntry() = default;
  virtual Result<TrainReport> Train(const TrainOptions& options,
                                    const JobControl& control) const = 0;
  virtual Result<InferReport> Infer(const InferOptions& options,
                                    const JobControl& control) const = 0;

  /// Describes the kinds of models that Train accepts.
  virtual std::vector<ModelInfo> Models() const = 0;

  /// Counts the reads of Infer in layerwise mode. Writes no files; `out` is ignored.
  virtual Result<InferPlan> PlanInfer(const InferOptions& options,
                                      const JobControl& control) const = 0;

  /// Counts the bytes that an epoch of Train on the full graph reads and writes, and estimates its
  /// time. Trains nothing and leaves no files.
  virtual Result<FullGraphReport> PlanTrain(const TrainOptions& options,
                                            const JobControl& control) const = 0;

  /// Counts the rows that Train of a table (kTableModel) reads and writes in an epoch, and divides
  /// its memory. Trains nothing and writes no files. Errors: also kOutOfSpace, the disk has no
  /// space for the table; kOutOfMemory, `memory_bytes` is too small, with the number that suffices.
  virtual Result<TablePlan> PlanTable(const TrainOptions& options,
                                      const JobControl& control) const = 0;

  /// Makes this process a worker of a process that runs Infer with these options
  /// (InferWorkers::command). Serves the parent on the standard streams, within `memory_bytes` (0:
  /// no limit), until the parent needs no more work. Failures are reported to the parent.
  virtual Status ServeInfer(const InferOptions& options, std::uint64_t memory_bytes,
                            const JobControl& control) const = 0;

  /// Opens the device and measures the rate of copies to it. Errors: kUnsupported, there is no
  /// usable device, with the reason and a remedy in the message; kOutOfMemory; kIoError, the device
  /// failed.
  virtual Result<DeviceProbe> ProbeDevice() const = 0;
};

/// Names of the functions below, for dlsym.
inline constexpr const char* kGnnEntrySymbol = "rhizome_gnn_entry_v1";
inline constexpr const char* kGnnBuildSymbol = "rhizome_gnn_build_v1";

}  // namespace rhizome

/// Returns the entry point, for programs that link the library (the CMake target rhizome::gnn). It
/// is valid as long as the library is loaded. Null: the librhizome in this process is of another
/// build.
extern "C" RHIZOME_API const rhizome::GnnEntry* rhizome_gnn_entry_v1();

/// Returns the build id of this library, as BuildId() returns the build id of librhizome.
extern "C" RHIZOME_API const char* rhizome_gnn_build_v1();
