#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Sets the number of threads that ComputeFor uses in the whole process (clamped to [1, 1024]).
/// `prepare`, if given, is called on each of these threads before its first task, for libraries
/// that keep per-thread settings.
/// Threads: must not overlap ComputeFor, unless the values do not change.
void SetComputeThreads(std::uint32_t threads, void (*prepare)() = nullptr);
std::uint32_t ComputeThreads();

/// Calls body(i) once for each i in [0, count) on the compute threads, in any order, and returns
/// when all calls have finished. Bodies must not call ComputeFor.
void ComputeFor(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace internal
}  // namespace rhizome
