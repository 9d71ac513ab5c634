#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/gnn/aggregate_kernels.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Feature rows as networks take them: [rows, dim], one after another. Threads: one at a time.
class FeatureMatrix {
 public:
  /// What is in it is unspecified afterwards. Memory is kept and used again where it suffices.
  /// Errors: kOutOfMemory.
  Status Resize(RowType type, std::size_t rows, std::size_t dim);

  RowType type() const { return type_; }
  std::size_t rows() const { return rows_; }
  std::size_t dim() const { return dim_; }
  std::span<std::byte> bytes() const;

  /// Of a matrix of RowType::kFloat32.
  std::span<float> floats() const;

 private:
  RowType type_ = RowType::kFloat32;
  std::size_t rows_ = 0;
  std::size_t dim_ = 0;
  AlignedBuffer memory_;
};

/// Turns stored feature rows (float32 or float16) into the floats that networks compute on.
/// Threads: a value; const functions may be called from many threads.
class FeatureDecoder {
 public:
  /// With `normalize`, every row is divided by the sum of its absolute values (rows of zeros stay).
  /// Errors: kInvalidArgument, another dtype.
  static Result<FeatureDecoder> Create(const ArrayEntry& array, bool normalize);

  std::uint64_t dim() const { return dim_; }
  std::size_t stored_row_bytes() const { return stored_row_bytes_; }

  /// True: the stored bytes are the floats already.
  bool is_identity() const { return dtype_ == DataType::kFloat32 && !normalize_; }

  /// What rows are stored in, and what networks take them in: float16 as it is stored, unless it is
  /// to be normalised.
  RowType stored_type() const {
    return dtype_ == DataType::kFloat16 ? RowType::kFloat16 : RowType::kFloat32;
  }
  RowType type() const { return normalize_ ? RowType::kFloat32 : stored_type(); }

  /// Turns `rows`, which hold what is stored, into what networks take. type() is stored_type().
  void DecodeInPlace(const FeatureMatrix& rows) const;

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

}  // namespace rhizome
