#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/transport.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The bytes of a message: its header (message_header.h), then its payload. They are not
/// initialised.
/// Ownership: owns its memory.
class MessageBytes {
 public:
  MessageBytes() = default;
  explicit MessageBytes(std::size_t size)
      : data_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}

  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

  /// Return the bytes after the header, which must exist.
  std::span<const std::byte> payload() const { return bytes().subspan(kMessageHeaderBytes); }
  std::span<std::byte> payload() { return bytes().subspan(kMessageHeaderBytes); }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

}  // namespace internal
}  // namespace rhizome
