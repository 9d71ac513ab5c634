#include "rhizome/status.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "storage/base/escaped_text.h"

namespace rhizome {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid_argument";
    case StatusCode::kAlreadyExists:
      return "already_exists";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kPermissionDenied:
      return "permission_denied";
    case StatusCode::kIoError:
      return "io_error";
    case StatusCode::kCorruption:
      return "corruption";
    case StatusCode::kBusy:
      return "busy";
    case StatusCode::kOutOfSpace:
      return "out_of_space";
    case StatusCode::kOutOfMemory:
      return "out_of_memory";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message)
    : code_(code), message_(EscapedText(std::move(message))) {}

Status Status::InvalidArgument(std::string m) {
  return {StatusCode::kInvalidArgument, std::move(m)};
}
Status Status::AlreadyExists(std::string m) { return {StatusCode::kAlreadyExists, std::move(m)}; }
Status Status::NotFound(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
Status Status::PermissionDenied(std::string m) {
  return {StatusCode::kPermissionDenied, std::move(m)};
}
Status Status::IoError(std::string m) { return {StatusCode::kIoError, std::move(m)}; }
Status Status::Corruption(std::string m) { return {StatusCode::kCorruption, std::move(m)}; }
Status Status::Busy(std::string m) { return {StatusCode::kBusy, std::move(m)}; }
Status Status::OutOfSpace(std::string m) { return {StatusCode::kOutOfSpace, std::move(m)}; }
Status Status::OutOfMemory(std::string m) { return {StatusCode::kOutOfMemory, std::move(m)}; }
Status Status::Unsupported(std::string m) { return {StatusCode::kUnsupported, std::move(m)}; }
Status Status::Interrupted(std::string m) { return {StatusCode::kInterrupted, std::move(m)}; }

Status Status::FromErrno(int error_number, std::string_view what) {
  StatusCode code = StatusCode::kIoError;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      code = StatusCode::kNotFound;
      break;
    case EEXIST:
    case ENOTEMPTY:
      code = StatusCode::kAlreadyExists;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = StatusCode::kPermissionDenied;
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      code = StatusCode::kOutOfSpace;
      break;
    case ENOMEM:
      code = StatusCode::kOutOfMemory;
      break;
    default:
      break;
  }
  return {code, std::string(what) + ": " + std::generic_category().message(error_number)};
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return std::string(StatusCodeName(code_)) + ": " + message_;
}

Status Status::WithContext(std::string_view where) const {
  if (ok()) return *this;
  return {code_, std::string(where) + ": " + message_};
}

}  // namespace rhizome
