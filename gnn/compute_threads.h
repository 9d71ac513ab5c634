#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace rhizome {

/// How many threads ComputeFor uses, from now on and in the whole process; libtorch itself is held
/// to one, so that each of its operations runs where it is called and gives the same bits, however
/// many threads there are. Threads: not while ComputeFor runs.
void SetComputeThreads(std::uint32_t threads);
std::uint32_t ComputeThreads();

/// Calls body(i) once for each i below `count`, on the compute threads, in any order; returns when
/// all are done. Bodies may call libtorch, and must not call ComputeFor.
void ComputeFor(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace rhizome
