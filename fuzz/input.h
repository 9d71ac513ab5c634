#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rhizome::fuzzing {

/// Fuzz input that is read byte by byte. Reads past its end return zero.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint8_t Byte() { return next_ < bytes_.size() ? bytes_[next_++] : std::uint8_t{0}; }

 private:
  const std::span<const std::uint8_t> bytes_;
  std::size_t next_ = 0;
};

}  // namespace rhizome::fuzzing
