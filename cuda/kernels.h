#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention_args.h"
#include "cuda/gatv2_args.h"
#include "cuda/kernel_args.h"

// The kernels as functions: the interface between C++20 and CUDA. Pointers are device pointers, and
// all work is queued on a stream (a cudaStream_t). Failures of a launch itself are returned by
// LaunchError. C++17, because nvcc compiles this header too.

namespace rhizome::cuda {

using StreamHandle = void*;

void CopyRowsOnDevice(StreamHandle stream, const GatherArgs& args);
void WidenRowsOnDevice(StreamHandle stream, Element type, const GatherArgs& args);

/// Ways to number ids. Only kFirstPosition is deterministic and works hop by hop.
enum class IdMapForm : std::uint8_t { kFirstPosition, kFused, kThreeSteps };
/// `scratch` has IdMapScratchBytes(args.count) bytes.
void NumberIdsOnDevice(StreamHandle stream, IdMapForm form, const IdMapArgs& args, void* scratch,
                       std::size_t scratch_bytes);
std::size_t IdMapScratchBytes(std::uint32_t count);

void SumOnDevice(StreamHandle stream, const SumArgs& args);
void SumInSharedMemoryOnDevice(StreamHandle stream, const SumArgs& args);
void MaxOnDevice(StreamHandle stream, const MaxArgs& args);
void MaxGradientOnDevice(StreamHandle stream, const MaxGradientArgs& args);
void EdgeDotsOnDevice(StreamHandle stream, const EdgeDotArgs& args);
void AttendOnDevice(StreamHandle stream, const AttendArgs& args);
void AttendGradientOnDevice(StreamHandle stream, const AttendGradientArgs& args);
void AttendGatv2OnDevice(StreamHandle stream, const AttendV2Args& args);
void AttendV2GradientOnDevice(StreamHandle stream, const AttendV2GradientArgs& args);
void ActivateOnDevice(StreamHandle stream, const ActivateArgs& args);
void ActivateGradientOnDevice(StreamHandle stream, const ActivateGradientArgs& args);

/// Returns the runtime's text for the last failed launch, and clears it; null if none failed.
const char* LaunchError();

}  // namespace rhizome::cuda
