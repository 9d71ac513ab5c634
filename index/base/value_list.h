#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns the number that the shortest decimal of a float32 denotes: 0.1 for 0.1F. A text column
/// of such decimals becomes float64 by this function, as if it had been parsed as float64.
double DecimalOf(float value);

/// Values of a column in memory: int64, float32 or float64. A null is NaN among floats; among
/// integers it is the value null(), which no other element may have.
/// Threads: const functions may run concurrently.
class ValueList {
 public:
  /// Creates an empty list. `dtype` must be kInt64, kFloat32 or kFloat64.
  explicit ValueList(DataType dtype = DataType::kInt64) : dtype_(dtype) {}

  DataType dtype() const { return dtype_; }
  std::size_t size() const { return bytes_.size() / DataTypeBytes(dtype_); }
  std::uint64_t memory_bytes() const { return bytes_.capacity(); }

  /// Returns the values as elements of dtype().
  std::span<const std::byte> bytes() const { return bytes_; }

  /// The integer that means null; nullopt until SetNull.
  std::optional<std::int64_t> null() const { return null_; }

  /// Sets that integer, and replaces the previous one in the list.
  void SetNull(std::int64_t value);

  /// Add a value; it is converted to dtype(). An integer list holds no floats: see WidenTo.
  void Add(std::int64_t value);
  void Add(double value);
  /// Adds a null. Among integers it requires SetNull.
  void AddNull();

  /// Adds elements of `dtype` to a list that is at least as wide (int64, float32, float64), without
  /// regard to nulls. Adds nothing on error.
  /// Errors: kInvalidArgument, another dtype, or bytes that end within an element.
  Status AddBytes(DataType dtype, std::span<const std::byte> bytes);

  /// Adds elements [first, first + count) of a list that is not wider; its nulls become nulls.
  void Append(const ValueList& other, std::size_t first, std::size_t count);

  /// Converts the list to a wider dtype; no effect if it is as wide already. Integers are rounded
  /// to the nearest float32 or float64, float32 becomes DecimalOf, and nulls become NaN.
  void WidenTo(DataType dtype);

  /// Removes all values; dtype and null remain.
  void Clear() { bytes_.clear(); }

 private:
  template <typename T>
  void Push(T value);

  DataType dtype_;
  std::optional<std::int64_t> null_;
  std::vector<std::byte> bytes_;
};

/// Returns whether elements of dtype `a` convert to `b` as ValueList::WidenTo does.
bool IsWider(DataType b, DataType a);

}  // namespace rhizome
