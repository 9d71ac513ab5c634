#include "cuda/gather.cuh"
#include "cuda/gatv2.cuh"
#include "cuda/id_map.cuh"
#include "cuda/id_map_alternatives.cuh"
#include "cuda/kernels.h"
#include "cuda/scan.h"

namespace rhizome::cuda {
namespace {

Stream Of(StreamHandle stream) { return static_cast<Stream>(stream); }

std::uint64_t AddressOf(const void* from, const void* to) {
  return reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
}

}  // namespace

void CopyRowsOnDevice(StreamHandle stream, const GatherArgs& args) {
  LaunchCopyRows(Of(stream), args, AddressOf(args.table, args.out),
                 args.from_host ? kOverTheBus : Geometry());
}

void WidenRowsOnDevice(StreamHandle stream, Element type, const GatherArgs& args) {
  LaunchWidenRows(Of(stream), type, args, AddressOf(args.table, args.out));
}

std::size_t IdMapScratchBytes(std::uint32_t count) { return ExclusiveSumBytes(IdMapWords(count)); }

void NumberIdsOnDevice(StreamHandle stream, IdMapForm form, const IdMapArgs& args, void* scratch,
                       std::size_t scratch_bytes) {
  const auto scan = [&](std::uint32_t* from, std::uint32_t* to, std::uint32_t count) {
    ExclusiveSum(Of(stream), scratch, scratch_bytes, from, to, count);
  };
  switch (form) {
    case IdMapForm::kFirstPosition:
      return LaunchIdMap(Of(stream), args, scan);
    case IdMapForm::kFused:
      return LaunchFusedMap(Of(stream), args);
    case IdMapForm::kThreeSteps:
      return LaunchThreeSteps(Of(stream), args, scan);
  }
}

void SumOnDevice(StreamHandle stream, const SumArgs& args) {
  LaunchSum(Of(stream), args, AddressOf(args.x, args.out) | AddressOf(args.partials, nullptr));
}
void SumInSharedMemoryOnDevice(StreamHandle stream, const SumArgs& args) {
  LaunchSumInSharedMemory(Of(stream), args);
}
void MaxOnDevice(StreamHandle stream, const MaxArgs& args) { LaunchMax(Of(stream), args); }
void MaxGradientOnDevice(StreamHandle stream, const MaxGradientArgs& args) {
  LaunchMaxGradient(Of(stream), args);
}
void EdgeDotsOnDevice(StreamHandle stream, const EdgeDotArgs& args) {
  LaunchEdgeDots(Of(stream), args);
}
void AttendOnDevice(StreamHandle stream, const AttendArgs& args) {
  LaunchAttend(Of(stream), args, AddressOf(args.x, args.out));
}
void AttendGradientOnDevice(StreamHandle stream, const AttendGradientArgs& args) {
  LaunchAttendGradient(Of(stream), args);
}
void AttendGatv2OnDevice(StreamHandle stream, const AttendV2Args& args) {
  LaunchAttendV2(Of(stream), args);
}
void AttendV2GradientOnDevice(StreamHandle stream, const AttendV2GradientArgs& args) {
  LaunchAttendV2Gradient(Of(stream), args);
}
void ActivateOnDevice(StreamHandle stream, const ActivateArgs& args) {
  LaunchActivate(Of(stream), args);
}
void ActivateGradientOnDevice(StreamHandle stream, const ActivateGradientArgs& args) {
  LaunchActivateGradient(Of(stream), args);
}

const char* LaunchError() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace rhizome::cuda
