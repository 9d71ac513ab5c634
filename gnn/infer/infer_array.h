#pragma once

#include "gnn/ops/compute_device.h"
#include "rhizome/infer_options.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Implements the verb `infer`: computes the row of every vertex with a model and publishes the
/// result as an array. The job is a reader: it sees the edges, features and labels of the commit at
/// which it began, and the array's attribute "snapshot" names that commit. `open` creates the
/// compute device.
/// Errors: see GnnEntry; kAlreadyExists, the store has an array of that name; kUnsupported, the
/// requested device is not available.
Result<InferReport> InferArray(const InferOptions& options, const JobControl& control,
                               const ComputeDeviceFactory& open = OpenCudaComputeDevice);

}  // namespace internal
}  // namespace rhizome
