#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/index/external_id.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

/// The bindings share these functions. Everything here needs the GIL unless it says otherwise.
/// Names of Python and NumPy stay outside of librhizome: these files see its public headers only.
namespace rhizome::python {

namespace nb = nanobind;

/// The subject of a status decides what a Python program wants to catch.
enum class About : std::uint8_t { kStore, kContents, kRows };

/// Throws the exception of rhizome.errors that belongs to `status`, which is not OK.
[[noreturn]] void Raise(const Status& status, About about = About::kContents);

inline void Check(const Status& status, About about = About::kContents) {
  if (!status.ok()) Raise(status, about);
}
template <typename T>
T Take(Result<T> result, About about = About::kContents) {
  if (!result) Raise(result.error(), about);
  return *std::move(result);
}

// While the interpreter ends, Python before 3.14 ends every other thread that wants the GIL by
// pthread_exit. That unwinds C++, which cannot be left so: destructors are noexcept, nanobind
// catches whatever passes, and objects that go need the GIL. So such a thread is kept where it is
// until the process has ended, as 3.14 keeps it. The two below are the only ways by which a binding
// waits for the GIL: all of them use these.

/// Keeps the calling thread until the process ends. Needs no GIL.
[[noreturn]] void StayForEver() noexcept;

/// Called when the module is imported, and as the interpreter ends, so that it precedes whatever
/// was registered since. If the process then exits while threads are in the engine, it ends at
/// once with its status: static objects of RocksDB and of the engine, which such threads use, are
/// not destroyed.
void EndWithThreadsInTheEngine();

/// Gives the GIL up as long as it lives.
class ReleasedGil {
 public:
  ReleasedGil();
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Calls `call` without the GIL.
template <typename Call>
auto Unlocked(Call&& call) {
  const ReleasedGil released;
  return std::forward<Call>(call)();
}

/// Calls `call`, which runs code written in Python; that gives the GIL up now and then.
template <typename Call>
auto InPython(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const abi::__forced_unwind&) {
    StayForEver();
  }
}

/// Something of the engine that takes one call at a time, and that many threads of Python may have.
template <typename T>
class OneAtATime {
 public:
  explicit OneAtATime(T object) : object_(std::move(object)) {}

  /// Calls `call(object)` without the GIL, once no other thread does.
  template <typename Call>
  auto Unlocked(Call&& call) {
    const ReleasedGil released;
    const std::scoped_lock lock(mutex_);
    return std::forward<Call>(call)(object_);
  }

 private:
  std::mutex mutex_;
  T object_;
};

/// Vertex ids that a caller gave. It keeps their memory, which may be the caller's own.
class Ids {
 public:
  /// Takes whatever is an array of integers, or a mask of bools of `vertices` elements. Throws
  /// TypeError for another type, IndexError for an id outside of [0, vertices).
  Ids(nb::handle ids, std::uint64_t vertices);
  std::span<const VertexId> span() const { return {array_.data(), array_.size()}; }
  std::size_t size() const { return array_.size(); }

 private:
  nb::ndarray<const VertexId, nb::ndim<1>, nb::c_contig, nb::device::cpu> array_;
};

/// Returns whether `value` is one id of the user's: a str or an integer, and no array.
bool IsOneId(nb::handle value);

/// Returns the bytes of an id that is a str, UTF-8, in its own memory. Throws ValueError, naming
/// it, if it is no text.
std::string_view TextOfId(nb::handle id);

/// Returns the user's id that `value` is. Throws TypeError for what is neither str nor an integer,
/// and ValueError for a str that is no text.
ExternalId IdOf(nb::handle value);
nb::object ToPython(const ExternalId& id);

/// Returns a number of at least `least`, which `name` is the name of. Throws TypeError or
/// ValueError.
std::uint64_t CountOf(nb::handle value, const char* name, std::uint64_t least);

/// Returns "out", "in" or "both" as a direction. Throws ValueError.
Direction DirectionOf(std::string_view name);

/// One function for each file of bindings.
void BindGraph(nb::module_& module);
void BindArray(nb::module_& module);
void BindScan(nb::module_& module);
void BindChanges(nb::module_& module);
void BindSampler(nb::module_& module);
void BindLoader(nb::module_& module);
void BindEdgeValues(nb::module_& module);
void BindWriting(nb::module_& module);
void BindIngest(nb::module_& module);
void BindJobs(nb::module_& module);

}  // namespace rhizome::python
