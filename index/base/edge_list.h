#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// An edge attribute: a time stamp, an amount, or a feature of `dim` values an edge. Its dtype is
/// kInt64 until the first value that is not an integer, which converts the column to kFloat32.
/// Threads: const functions may run concurrently.
/// Ownership: the column owns its values.
class EdgeAttribute {
 public:
  EdgeAttribute() = default;
  /// Creates an empty column of `dim` values an edge; dtype must be kInt64 or kFloat32.
  explicit EdgeAttribute(std::string name, DataType dtype = DataType::kInt64, std::uint64_t dim = 1)
      : name_(std::move(name)), dtype_(dtype), dim_(dim) {}

  /// Returns an empty column of the same name, dtype and width.
  EdgeAttribute Empty() const { return EdgeAttribute(name_, dtype_, dim_); }

  const std::string& name() const { return name_; }
  DataType dtype() const { return dtype_; }   ///< kInt64 or kFloat32
  std::uint64_t dim() const { return dim_; }  ///< values an edge, at least 1
  std::size_t value_count() const {
    return dtype_ == DataType::kInt64 ? integers_.size() : floats_.size();
  }
  std::size_t size() const { return dim_ == 0 ? 0 : value_count() / dim_; }  ///< edges
  /// Return the bytes allocated for the values, and the bytes of one edge's values.
  std::uint64_t memory_bytes() const { return integers_.capacity() * 8 + floats_.capacity() * 4; }
  std::size_t row_bytes() const { return dim_ * DataTypeBytes(dtype_); }

  /// Returns the values as elements of dtype(), edge after edge: shape [size(), dim()].
  std::span<const std::byte> bytes() const {
    return dtype_ == DataType::kInt64 ? std::as_bytes(std::span(integers_))
                                      : std::as_bytes(std::span(floats_));
  }

  /// Adds one value; every `dim` values belong to one edge.
  void Add(std::int64_t value) {
    if (dtype_ == DataType::kInt64)
      integers_.push_back(value);
    else
      floats_.push_back(static_cast<float>(value));
  }
  void Add(float value) {
    BecomeFloat();
    floats_.push_back(value);
  }

  /// Adds the values of edge i of `other`, a column of the same width. Adds nothing on error.
  /// Errors: kInvalidArgument, another width, or no edge i.
  Status AddFrom(const EdgeAttribute& other, std::size_t i) {
    if (other.dim_ != dim_ || i >= other.size()) return HasNot(other, i);
    for (std::size_t at = i * dim_; at < (i + 1) * dim_; ++at) {
      if (other.dtype_ == DataType::kInt64)
        Add(other.integers_[at]);
      else
        Add(other.floats_[at]);
    }
    return Status::Ok();
  }

  /// Adds values in the form of bytes(). Adds nothing on error.
  /// Errors: kInvalidArgument, a dtype that is neither kInt64 nor kFloat32, or bytes that end
  /// within a value.
  Status AddBytes(DataType dtype, std::span<const std::byte> bytes);

  /// Converts the column to kFloat32; integers are rounded to the nearest float32.
  void BecomeFloat() {
    if (dtype_ == DataType::kFloat32) return;
    floats_.assign(integers_.begin(), integers_.end());
    integers_ = {};
    dtype_ = DataType::kFloat32;
  }
  /// Removes all values; name, dtype and width remain.
  void Clear() {
    integers_.clear();
    floats_.clear();
  }

 private:
  static Status HasNot(const EdgeAttribute& other, std::size_t i);

  std::string name_;
  DataType dtype_ = DataType::kInt64;
  std::uint64_t dim_ = 1;
  std::vector<std::int64_t> integers_;
  std::vector<float> floats_;
};

/// Edges in memory, column by column, in input order. `type`, `weight` and `attributes` are empty
/// if the graph has one edge type, no weights, no attributes; every other column has the length of
/// `src`.
struct EdgeList {
  std::vector<VertexId> src;
  std::vector<VertexId> dst;
  std::vector<TypeId> type;
  std::vector<float> weight;
  std::vector<EdgeAttribute> attributes;

  std::size_t size() const { return src.size(); }
};

}  // namespace rhizome
