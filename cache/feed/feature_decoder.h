#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Converts stored feature rows to the element type that models compute on: float32, or float16 as
/// stored. bfloat16, bool and integers of up to 16 bits convert exactly; float64 and wider integers
/// are rounded to the nearest float32 (infinite beyond its range), and nulls become NaN.
/// Threads: a value type; const functions may be called from any number of threads.
class FeatureDecoder {
 public:
  /// Creates a decoder for rows of `array`. With `normalize`, every row is divided by the sum of
  /// its absolute values; rows of zeros remain zero. Errors: kInvalidArgument, the array is of
  /// texts or times, which are no features.
  static Result<FeatureDecoder> Create(const ArrayEntry& array, bool normalize);

  std::uint64_t dim() const { return dim_; }
  std::size_t stored_row_bytes() const { return stored_row_bytes_; }

  /// Returns the element type of decoded rows: float16 if rows are used as stored and have that
  /// type, otherwise float32.
  DataType type() const { return takes_as_stored() ? dtype_ : DataType::kFloat32; }
  std::size_t row_bytes() const { return dim_ * DataTypeBytes(type()); }

  /// Returns whether the stored bytes already are the decoded floats.
  bool is_identity() const { return dtype_ == DataType::kFloat32 && !normalize_; }

  /// Returns whether rows are used as stored, in which case DecodeRow does nothing.
  bool takes_as_stored() const {
    return !normalize_ && (dtype_ == DataType::kFloat32 || dtype_ == DataType::kFloat16);
  }

  /// Decodes a row in place. The stored form is at the front of `row`, and so is the decoded row;
  /// `row` has the bytes of the longer one.
  void DecodeRow(std::span<std::byte> row) const;

  /// Decodes n rows. `stored` has n * stored_row_bytes() bytes, `out` has n * dim() floats.
  void Decode(std::span<const std::byte> stored, std::span<float> out) const;

 private:
  FeatureDecoder() = default;
  void ToFloats(std::span<const std::byte> stored, std::span<float> out) const;
  void NormalizeRows(std::span<float> rows) const;
  DataType dtype_ = DataType::kFloat32;
  std::uint64_t dim_ = 0;
  std::size_t stored_row_bytes_ = 0;
  bool normalize_ = false;
  std::optional<std::int64_t> null_;  // the integer that means null
};

}  // namespace internal
}  // namespace rhizome
