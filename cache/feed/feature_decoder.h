#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/storage/dtype.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Turns stored feature rows (float32 or float16) into the floats that networks compute on.
/// Threads: a value; const functions may be called from many threads.
class FeatureDecoder {
 public:
  /// With `normalize`, every row is divided by the sum of its absolute values (rows of zeros stay).
  /// Errors: kInvalidArgument, another dtype.
  static Result<FeatureDecoder> Create(const ArrayEntry& array, bool normalize);

  std::uint64_t dim() const { return dim_; }
  std::size_t stored_row_bytes() const { return stored_row_bytes_; }

  /// The element type of decoded rows: float16 stays as it is stored, unless it is normalised.
  DataType type() const { return normalize_ ? DataType::kFloat32 : dtype_; }
  std::size_t row_bytes() const { return dim_ * DataTypeBytes(type()); }

  /// Whether the stored bytes are already the floats.
  bool is_identity() const { return dtype_ == DataType::kFloat32 && !normalize_; }

  /// Whether rows are used as stored, so that DecodeRow does nothing.
  bool takes_as_stored() const { return !normalize_; }

  /// Decodes, in place, a row whose stored form is at the front of `row`; the result fills `row`.
  void DecodeRow(std::span<std::byte> row) const;

  /// `stored` has n * stored_row_bytes() bytes, `out` n * dim() floats.
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
