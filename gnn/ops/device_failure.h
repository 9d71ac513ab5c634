#pragma once

#include <stdexcept>
#include <utility>

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// A device error within an operation of libtorch, which cannot return a Status. GuardedTorch
/// converts it to the Status that it holds.
class DeviceFailure : public std::runtime_error {
 public:
  explicit DeviceFailure(Status status)
      : std::runtime_error(status.message()), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

/// Throws an error of a device. Must be called within GuardedTorch.
inline void ThrowIfError(const Status& status) {
  if (!status.ok()) throw DeviceFailure(status);
}
template <typename T>
T ThrowIfError(Result<T> result) {
  if (!result) throw DeviceFailure(result.error());
  return *std::move(result);
}

}  // namespace internal
}  // namespace rhizome
