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

#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

/// Functions shared by the bindings. All of them need the GIL unless noted otherwise. Names of
/// Python and NumPy are not used in librhizome; these files use only its public headers.
namespace rhizome::python {

namespace nb = nanobind;

/// The subject of a status. It determines the type of the Python exception.
enum class About : std::uint8_t { kStore, kContents };

/// Returns a message of the engine with the option fields that it names spelled as keywords of the
/// package.
nb::object Spelled(const std::string& message);

/// Throws the exception of rhizome.errors that corresponds to `status`, which must not be OK.
[[noreturn]] void Raise(const Status& status, About about = About::kContents);

inline void Check(const Status& status, About about = About::kContents) {
  if (!status.ok()) Raise(status, about);
}
template <typename T>
T Take(Result<T> result, About about = About::kContents) {
  if (!result) Raise(result.error(), about);
  return *std::move(result);
}

// While the interpreter shuts down, Python before 3.14 ends every other thread that requests the
// GIL by pthread_exit. That unwinds C++ frames, which is not safe here: destructors are noexcept,
// nanobind catches the unwinding, and destroyed objects need the GIL. Such a thread is therefore
// blocked until the process has ended, as Python 3.14 does. ReleasedGil and InPython are the only
// ways in which a binding waits for the GIL.

/// Blocks the calling thread until the process ends. Needs no GIL.
[[noreturn]] void StayForEver() noexcept;

/// Registers an exit handler. Called when the module is imported, and again as the interpreter
/// shuts down, so that the handler runs before all handlers registered in between. If the process
/// exits while threads are in the engine, the handler ends it immediately with its exit status:
/// static objects of RocksDB and of the engine, which these threads use, are not destroyed.
void EndWithThreadsInTheEngine();

/// Releases the GIL during its lifetime.
class ReleasedGil {
 public:
  ReleasedGil();
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Marks a thread that is in the engine and has nothing to do with Python, during its lifetime.
class InEngine {
 public:
  InEngine();
  ~InEngine();
  InEngine(const InEngine&) = delete;
  InEngine& operator=(const InEngine&) = delete;
};

/// Calls `call` without the GIL.
template <typename Call>
auto Unlocked(Call&& call) {
  const ReleasedGil released;
  return std::forward<Call>(call)();
}

/// Calls `call`, which runs Python code and may therefore release the GIL temporarily.
template <typename Call>
auto InPython(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const abi::__forced_unwind&) {
    StayForEver();
  }
}

/// An object of the engine that allows one call at a time, shared by Python threads.
template <typename T>
class OneAtATime {
 public:
  explicit OneAtATime(T object) : object_(std::move(object)) {}

  /// Calls `call(object)` without the GIL, after concurrent calls have finished.
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

/// Vertex ids passed by a caller. Keeps their memory alive, which may belong to the caller.
class Ids {
 public:
  /// Accepts any array of integers, or a bool mask of `vertices` elements. Throws TypeError for
  /// another type, IndexError for an id outside of [0, vertices).
  Ids(nb::handle ids, std::uint64_t vertices);
  std::span<const VertexId> span() const { return {array_.data(), array_.size()}; }
  std::size_t size() const { return array_.size(); }

 private:
  nb::ndarray<const VertexId, nb::ndim<1>, nb::c_contig, nb::device::cpu> array_;
};

/// Returns whether `value` is a single external id, i.e. a str or an integer, and not an array.
bool IsOneId(nb::handle value);

/// Returns the UTF-8 bytes of an id that is a str; the id owns them. Throws ValueError, naming the
/// id, if it is not valid text.
std::string_view TextOfId(nb::handle id);

/// Converts `value` to an external id. Throws TypeError if it is neither a str nor an integer, and
/// ValueError for a str that is not valid text.
ExternalId IdOf(nb::handle value);
nb::object ToPython(const ExternalId& id);

/// Converts the argument called `name` to a number of at least `least`. Throws TypeError or
/// ValueError.
std::uint64_t CountOf(nb::handle value, const char* name, std::uint64_t least);

/// Parses "out", "in" or "both". Throws ValueError.
Direction DirectionOf(std::string_view name);

/// One function for each file of bindings.
void BindSpelling(nb::module_& module);
void BindGraph(nb::module_& module);
void BindArray(nb::module_& module);
void BindScan(nb::module_& module);
void BindChanges(nb::module_& module);
void BindSampler(nb::module_& module);
void BindLoader(nb::module_& module);
void BindEdgeValues(nb::module_& module);
void BindTexts(nb::module_& module);
void BindWriting(nb::module_& module);
void BindIngest(nb::module_& module);
void BindJobs(nb::module_& module);

}  // namespace rhizome::python
