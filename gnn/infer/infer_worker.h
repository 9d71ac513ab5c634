#pragma once

#include <cstdint>

#include "rhizome/infer_options.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Runs a child process of InferArray: computes the chunks that the parent requests over the
/// standard streams (worker_pool.h), until the parent has no more tasks. `options`: options of the
/// parent. `memory_bytes`: memory limit of this process; 0: no limit. Failures are reported to the
/// parent.
/// Errors: kInvalidArgument, before the first task, an unknown RHIZOME_SIMD.
Status ServeInfer(const InferOptions& options, std::uint64_t memory_bytes,
                  const JobControl& control);

}  // namespace internal
}  // namespace rhizome
