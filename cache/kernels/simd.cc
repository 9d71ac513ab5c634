#include "cache/kernels/simd.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>

#include "cache/kernels/distance_kernels.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr const char* kVariable = "RHIZOME_SIMD";

#if defined(__x86_64__)
/// Checks CPUID directly, because Clang 14 does not know this feature by name.
bool HasF16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

bool Runs(SimdPath path) {
#if defined(__x86_64__)
  if (path == SimdPath::kAvx2) {
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && HasF16c();
  }
  if (path == SimdPath::kAvx512) {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vl") != 0;
  }
#endif
  return path == SimdPath::kPortable;
}

/// Value of the environment variable: its text, and the path that it names if this machine can run
/// it.
struct Setting {
  std::string name;
  std::optional<SimdPath> path;
};

Setting ReadSetting() {
  const char* const value = std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe)
  Setting setting{.name = value == nullptr ? "" : value, .path = std::nullopt};
  for (const SimdPath path : AvailableSimdPaths()) {
    if (setting.name == SimdPathName(path)) setting.path = path;
  }
  return setting;
}

SimdPath FirstPath() { return ReadSetting().path.value_or(AvailableSimdPaths().back()); }

std::atomic<SimdPath>& ChosenPath() {
  static std::atomic<SimdPath> path = FirstPath();
  return path;
}

}  // namespace

std::string_view SimdPathName(SimdPath path) {
  switch (path) {
    case SimdPath::kPortable:
      return "portable";
    case SimdPath::kAvx2:
      return "avx2";
    case SimdPath::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<SimdPath> AvailableSimdPaths() {
  std::vector<SimdPath> paths;
  for (const SimdPath path : {SimdPath::kPortable, SimdPath::kAvx2, SimdPath::kAvx512}) {
    if (Runs(path)) paths.push_back(path);
  }
  return paths;
}

SimdPath CurrentSimdPath() { return ChosenPath(); }

Status CheckSimdSetting() {
  const Setting setting = ReadSetting();
  if (setting.name.empty() || setting.path) return Status::Ok();
  std::string names;
  for (const SimdPath path : AvailableSimdPaths()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", SimdPathName(path));
  }
  return Status::InvalidArgument(fmt::format(
      "{}={} is not an instruction set of this machine ({}); unset it to use the widest", kVariable,
      setting.name, names));
}

void SetSimdPath(SimdPath path) {
  RHIZOME_CHECK(Runs(path));
  ChosenPath() = path;
}

const AggregateKernels& Kernels() { return KernelsOf(CurrentSimdPath()); }

const AggregateKernels& KernelsOf(SimdPath path) {
#if defined(__x86_64__)
  if (path == SimdPath::kAvx512) return kAvx512Kernels;
  if (path == SimdPath::kAvx2) return kAvx2Kernels;
#endif
  static_cast<void>(path);
  return kPortableKernels;
}

const GatherKernels& Gathers() { return GathersOf(CurrentSimdPath()); }

const GatherKernels& GathersOf(SimdPath path) {
#if defined(__x86_64__)
  if (path == SimdPath::kAvx512) return kAvx512Gathers;
  if (path == SimdPath::kAvx2) return kAvx2Gathers;
#endif
  static_cast<void>(path);
  return kPortableGathers;
}

const ProductKernels& Products() { return ProductsOf(CurrentSimdPath()); }

const DistanceKernels& Distances() {
#if defined(__x86_64__)
  if (CurrentSimdPath() == SimdPath::kAvx512) return kAvx512Distances;
  if (CurrentSimdPath() == SimdPath::kAvx2) return kAvx2Distances;
#endif
  return kPortableDistances;
}

const ProductKernels& ProductsOf(SimdPath path) {
#if defined(__x86_64__)
  if (path == SimdPath::kAvx512) return kAvx512Products;
  if (path == SimdPath::kAvx2) return kAvx2Products;
#endif
  static_cast<void>(path);
  return kPortableProducts;
}

}  // namespace internal
}  // namespace rhizome
