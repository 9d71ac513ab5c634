#pragma once

#include <span>
#include <vector>

#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

/// A ByteSink that keeps the bytes in memory.
class MemorySink : public ByteSink {
 public:
  Status Append(std::span<const std::byte> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return Status::Ok();
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace internal
}  // namespace rhizome
