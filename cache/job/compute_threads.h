#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// How many threads ComputeFor uses, from now on and in the whole process. `prepare`, if given, is
/// called on each of them before its first task: for libraries that keep settings for each thread.
/// Threads: not while ComputeFor runs.
void SetComputeThreads(std::uint32_t threads, void (*prepare)() = nullptr);
std::uint32_t ComputeThreads();

/// Calls body(i) once for each i below `count`, on the compute threads, in any order; returns when
/// all are done. Bodies must not call ComputeFor.
void ComputeFor(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace internal
}  // namespace rhizome
