#include "storage/base/exceptions.h"

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

/// Returns the text of an exception on one line. Exceptions of libtorch have several lines.
std::string TextOf(const std::exception& error) {
  std::string text = error.what();
  while (text.ends_with('\n')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Status Translate() {
  try {
    throw;
  } catch (const StatusError& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  } catch (const std::length_error& error) {  // a container longer than any memory
    return Status::OutOfMemory("out of memory: " + TextOf(error));
  } catch (const std::system_error& error) {
    const int number = error.code().value();
    // pthread_create fails with EAGAIN at a limit on processes, threads or memory.
    if (error.code() == std::errc::resource_unavailable_try_again)
      return Status::OutOfMemory("could not start a thread: " + TextOf(error) +
                                 "; raise the limit of processes or of memory");
    return Status::FromErrno(number, "system call");
  } catch (const std::exception& error) {
    // oneTBB and libtorch turn a failed pthread_create into an exception that names the call.
    if (std::string_view(error.what()).find("pthread_create") != std::string_view::npos)
      return Status::OutOfMemory("could not start a thread: " + TextOf(error) +
                                 "; raise the limit of processes or of memory");
    return Status::IoError("unexpected: " + TextOf(error));
  } catch (...) {
    return {StatusCode::kIoError, "unexpected"};
  }
}

}  // namespace

void ThrowStatus(Status status) { throw StatusError(std::move(status)); }

Status StatusOfException() noexcept {
  try {
    return Translate();
  } catch (...) {
    return NoMemory();
  }
}

}  // namespace internal
}  // namespace rhizome
