#pragma once

#include <torch/torch.h>

#include <exception>
#include <new>
#include <string>

#include "rhizome/storage/result.h"

namespace rhizome {

/// Runs a function of the library's doors; what libtorch throws ends here, so that no exception
/// leaves the library.
template <typename Run>
auto GuardedTorch(Run run) -> decltype(run()) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return Fail(Status::OutOfMemory("out of memory; make batch, fanout or cache smaller"));
  } catch (const c10::Error& error) {
    return Fail(Status::IoError(std::string("libtorch: ") + error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return Fail(Status::IoError(std::string("unexpected: ") + error.what()));
  }
}

}  // namespace rhizome
