#pragma once

#include <cstdint>

#include "rhizome/gnn/infer_options.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// A child of InferArray: computes chunks of the job that the parent makes, as it is told on the
/// standard streams (worker_pool.h), until the parent needs no more. `options` are the parent's;
/// `memory_bytes`: what this process may take, 0: no limit. What goes wrong is told to the parent.
/// Errors: kInvalidArgument, before the first task, an unknown RHIZOME_SIMD.
Status ServeInfer(const InferOptions& options, std::uint64_t memory_bytes,
                  const JobControl& control);

}  // namespace rhizome::inline internal
