#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Vertex ids: 4 bytes each if the graph has at most 2^32 vertices, otherwise 8.
class VertexColumn {
 public:
  VertexColumn() = default;
  explicit VertexColumn(std::vector<std::uint32_t> vertices) : narrow_(std::move(vertices)) {}
  explicit VertexColumn(std::vector<std::uint64_t> vertices) : wide_(std::move(vertices)) {}

  static bool FitsNarrow(std::uint64_t vertex_count) {
    return vertex_count <= std::uint64_t{1} << 32;
  }

  std::size_t size() const { return narrow_.size() + wide_.size(); }
  VertexId operator[](std::size_t i) const {
    return wide_.empty() ? VertexId{narrow_[i]} : static_cast<VertexId>(wide_[i]);
  }
  std::span<const std::uint32_t> narrow() const { return narrow_; }
  std::span<const std::uint64_t> wide() const { return wide_; }

 private:
  std::vector<std::uint32_t> narrow_;  // one of the two is empty
  std::vector<std::uint64_t> wide_;
};

/// Borrowed vertex ids, of 4 or 8 bytes each.
class VertexSpan {
 public:
  VertexSpan() = default;
  VertexSpan(std::span<const VertexId> vertices)  // NOLINT(google-explicit-constructor)
      : data_(vertices.data()), size_(vertices.size()) {}
  VertexSpan(const std::vector<VertexId>& vertices)  // NOLINT(google-explicit-constructor)
      : VertexSpan(std::span(vertices)) {}
  VertexSpan(const VertexColumn& vertices)  // NOLINT(google-explicit-constructor)
      : data_(vertices.wide().data()), size_(vertices.size()) {
    if (!vertices.wide().empty()) return;
    data_ = vertices.narrow().data();
    narrow_ = true;
  }

  std::size_t size() const { return size_; }
  VertexId operator[](std::size_t i) const {
    return narrow_ ? VertexId{static_cast<const std::uint32_t*>(data_)[i]}
                   : static_cast<VertexId>(static_cast<const std::uint64_t*>(data_)[i]);
  }

 private:
  const void* data_ = nullptr;
  std::size_t size_ = 0;
  bool narrow_ = false;
};

}  // namespace internal
}  // namespace rhizome
