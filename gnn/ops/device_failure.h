#pragma once

#include <stdexcept>
#include <utility>

#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// An error of a device in the midst of an operation of libtorch, whose functions return none:
/// GuardedTorch makes it the error that it holds.
class DeviceFailure : public std::runtime_error {
 public:
  explicit DeviceFailure(Status status)
      : std::runtime_error(status.message()), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

/// Throws an error of a device. Only within GuardedTorch.
inline void OrThrow(const Status& status) {
  if (!status.ok()) throw DeviceFailure(status);
}
template <typename T>
T OrThrow(Result<T> result) {
  if (!result) throw DeviceFailure(result.error());
  return *std::move(result);
}

}  // namespace rhizome::inline internal
