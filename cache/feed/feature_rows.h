#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "rhizome/cache/aggregate_kernels.h"
#include "rhizome/cache/feature_cache.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Feature rows as networks take them: row i of a minibatch lies at place[i] of a table of rows,
/// or at i where `place` is empty. The table is that of a cache, whose rows are held, or of its
/// own. Threads: one at a time; const functions from many. Ownership: a cache must outlive it.
class FeatureRows {
 public:
  FeatureRows() = default;

  /// `held`: of a cache whose rows are kept as `type` and `dim` say.
  FeatureRows(HeldRows held, RowType type, std::size_t dim)
      : type_(type), dim_(dim), rows_(held.slots().size()), held_(std::move(held)) {}

  /// Rows of its own, unspecified at first. Errors: kOutOfMemory.
  static Result<FeatureRows> Own(RowType type, std::size_t rows, std::size_t dim);

  RowType type() const { return type_; }
  std::size_t rows() const { return rows_; }
  std::size_t dim() const { return dim_; }
  std::size_t row_bytes() const { return dim_ * BytesOf(type_); }

  std::span<const std::byte> table() const {
    return own_.size_bytes() > 0 ? std::span<const std::byte>(own_.bytes()) : held_.table();
  }
  std::span<const std::uint32_t> place() const { return held_.slots(); }
  std::span<const std::byte> row(std::size_t i) const {
    const std::size_t at = place().empty() ? i : place()[i];
    return table().subspan(at * row_bytes(), row_bytes());
  }

  /// The values of own rows, [rows, dim]; only for RowType::kFloat32.
  std::span<float> own_floats() const;

 private:
  RowType type_ = RowType::kFloat32;
  std::size_t dim_ = 0;
  std::size_t rows_ = 0;
  HeldRows held_;
  AlignedBuffer own_;
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

  /// The type in which rows are stored, and the type in which networks take them: stored float16
  /// stays float16 unless it is normalised.
  RowType stored_type() const {
    return dtype_ == DataType::kFloat16 ? RowType::kFloat16 : RowType::kFloat32;
  }
  RowType type() const { return normalize_ ? RowType::kFloat32 : stored_type(); }
  std::size_t row_bytes() const { return dim_ * BytesOf(type()); }

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

}  // namespace rhizome
