#pragma once

#include "rhizome/gnn/compute_device.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Implements the verb `infer`: computes every vertex with a model and publishes the result as an
/// array. The job is a reader: it sees the edges, features and labels that the graph had when it
/// began, and the array's attribute "snapshot" names that commit.
/// Errors: see GnnEntry; kAlreadyExists, the store has an array of that name; kUnsupported, the
/// device that is asked for cannot be had. `open` makes that device.
Result<InferReport> InferArray(const InferOptions& options, const JobControl& control,
                               const ComputeDeviceMaker& open = OpenCudaComputeDevice);

}  // namespace rhizome::inline internal
