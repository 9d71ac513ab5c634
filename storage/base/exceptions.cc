#include "rhizome/storage/exceptions.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace rhizome::inline internal {
namespace {

Status Translate() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  } catch (const std::length_error& error) {  // a container longer than any memory
    return Status::OutOfMemory(std::string("no memory left: ") + error.what());
  } catch (const std::system_error& error) {
    const int number = error.code().value();
    // pthread_create says EAGAIN at a limit on processes, threads or memory.
    if (error.code() == std::errc::resource_unavailable_try_again)
      return Status::OutOfMemory(std::string("no thread can be started: ") + error.what() +
                                 "; allow more processes or memory");
    return Status::FromErrno(number, "system call");
  } catch (const std::exception& error) {
    // oneTBB and libtorch turn an error of pthread_create into an exception that names the call.
    if (std::string_view(error.what()).find("pthread_create") != std::string_view::npos)
      return Status::OutOfMemory(std::string("no thread can be started: ") + error.what() +
                                 "; allow more processes or memory");
    return Status::IoError(std::string("unexpected: ") + error.what());
  } catch (...) {
    return {StatusCode::kIoError, "unexpected"};
  }
}

}  // namespace

Status StatusOfException() noexcept {
  try {
    return Translate();
  } catch (...) {
    return NoMemory();
  }
}

}  // namespace rhizome::inline internal
