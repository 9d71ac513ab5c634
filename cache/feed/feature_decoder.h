#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Converts stored feature rows (float32 or float16) to the element type that models compute on.
/// Threads: a value type; const functions may be called from any number of threads.
class FeatureDecoder {
 public:
  /// Creates a decoder for rows of `array`. With `normalize`, every row is divided by the sum of
  /// its absolute values; rows of zeros remain zero. Errors: kInvalidArgument, the dtype is neither
  /// float32 nor float16.
  static Result<FeatureDecoder> Create(const ArrayEntry& array, bool normalize);

  std::uint64_t dim() const { return dim_; }
  std::size_t stored_row_bytes() const { return stored_row_bytes_; }

  /// Returns the element type of decoded rows: the stored type, or float32 if rows are normalised.
  DataType type() const { return normalize_ ? DataType::kFloat32 : dtype_; }
  std::size_t row_bytes() const { return dim_ * DataTypeBytes(type()); }

  /// Returns whether the stored bytes already are the decoded floats.
  bool is_identity() const { return dtype_ == DataType::kFloat32 && !normalize_; }

  /// Returns whether rows are used as stored, in which case DecodeRow does nothing.
  bool takes_as_stored() const { return !normalize_; }

  /// Decodes a row in place. The stored form is at the front of `row`; the decoded row fills `row`.
  void DecodeRow(std::span<std::byte> row) const;

  /// Decodes n rows. `stored` has n * stored_row_bytes() bytes, `out` has n * dim() floats.
  void Decode(std::span<const std::byte> stored, std::span<float> out) const;

 private:
  FeatureDecoder() = default;
  void NormalizeRows(std::span<float> rows) const;
  DataType dtype_ = DataType::kFloat32;
  std::uint64_t dim_ = 0;
  std::size_t stored_row_bytes_ = 0;
  bool normalize_ = false;
};

}  // namespace internal
}  // namespace rhizome
