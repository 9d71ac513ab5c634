#pragma once

#include <new>
#include <string>
#include <utility>

#include "gnn/ops/device_failure.h"
#include "gnn/ops/torch.h"
#include "rhizome/status.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {

/// Runs the body of a library entry point and converts exceptions, including libtorch's, to errors,
/// so that no exception leaves the library.
template <typename Run>
auto GuardedTorch(const Run& run) -> decltype(run()) {
  return Guarded([&]() -> decltype(run()) {
    try {
      return run();
    } catch (const std::bad_alloc&) {
      return Fail(Status::OutOfMemory("out of memory; use a smaller batch, fanout or cache"));
    } catch (const DeviceFailure& failure) {
      return Fail(failure.status());
    } catch (const c10::Error& error) {
      std::string text = std::string("libtorch: ") + error.what_without_backtrace();
      if (text.find("allocate memory") != text.npos ||
          text.find("not enough memory") != text.npos || text.find("out of memory") != text.npos)
        return Fail(Status::OutOfMemory(std::move(text)));
      return Fail(Status::IoError(std::move(text)));
    }
  });
}

}  // namespace internal
}  // namespace rhizome
