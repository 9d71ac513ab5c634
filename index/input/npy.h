#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/input/input_stream.h"
#include "rhizome/export.h"
#include "rhizome/types.h"
#include "storage/io/files.h"

namespace RHIZOME_API rhizome {

/// Properties of a .npy file that the reader accepts in addition to those that a store can keep
/// unchanged.
struct NpyAccept {
  bool fortran_order = false;  ///< the caller must handle NpyHeader::fortran_order
};

/// The header of a NumPy file (numpy.lib.format, versions 1 to 3).
struct NpyHeader {
  DataType dtype = DataType::kInvalid;  ///< dtype of the elements that NpyReader returns
  bool uint64 = false;                  ///< the file stores uint64; `dtype` is int64
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  ///< one or two numbers
  std::uint64_t data_offset = 0;     ///< bytes before the first element

  std::uint64_t rows() const { return shape[0]; }
  std::uint64_t dim() const { return shape.size() < 2 ? 1 : shape[1]; }
};

/// Number of leading bytes that suffices to compute the header's length.
inline constexpr std::size_t kNpyPrefixBytes = 12;

/// Returns the length of the whole header including the preamble, given the file's first bytes
/// (fewer than kNpyPrefixBytes only if the file is shorter). At most 64 KiB.
/// Errors: kInvalidArgument, not a .npy file, an unknown version, a longer header.
Result<std::size_t> NpyHeaderLength(std::span<const std::byte> prefix);

/// Parses a whole header. It accesses no file, so that fuzz/ can drive it. Accepts all types that
/// an array can have, little-endian in C order with one or two dimensions, whose product is checked
/// for overflow; uint64, whose values must fit int64; and the properties in `accept`. NumPy has no
/// bfloat16: such a file says V2, as the package ml_dtypes writes it.
/// Errors: kInvalidArgument, naming the wrong field or dtype.
Result<NpyHeader> ParseNpyHeader(std::span<const std::byte> bytes, const NpyAccept& accept = {});

/// Returns the header that NumPy itself would write (version 1) for an array in C order.
std::vector<std::byte> EncodeNpyHeader(DataType dtype, std::span<const std::uint64_t> shape);

/// Reads a .npy file, plain or compressed, from front to back.
/// Threads: one at a time.
class NpyReader {
 public:
  /// Opens a file or a stream.
  /// Errors: as InputStream and ParseNpyHeader, with the file's name.
  static Result<std::unique_ptr<NpyReader>> Open(FileSystem& fs, const Path& path,
                                                 const NpyAccept& accept = {});
  static Result<std::unique_ptr<NpyReader>> Open(std::unique_ptr<InputStream> stream,
                                                 const NpyAccept& accept = {});

  const NpyHeader& header() const { return header_; }
  const InputStream& stream() const { return *stream_; }

  /// Returns the number of bytes of all elements.
  std::uint64_t data_bytes() const { return data_bytes_; }

  /// Reads the next out.size() bytes of whole elements.
  /// Errors: kInvalidArgument, the file ends early (the message has the expected and the actual
  /// length), or an uint64 is beyond int64.
  Status Read(std::span<std::byte> out);

  /// Skips the next `bytes` bytes of whole elements.
  /// Errors: as Read.
  Status Skip(std::uint64_t bytes);

  /// Checks that nothing follows the elements. Errors: kInvalidArgument.
  Status Finish();

 private:
  NpyReader() = default;
  Status ReadStored(std::span<std::byte> out);
  Status CheckUint64(std::span<const std::byte> read) const;
  std::unique_ptr<InputStream> stream_;
  NpyHeader header_;
  std::uint64_t data_bytes_ = 0;
  std::uint64_t read_bytes_ = 0;  // bytes of data_bytes_ read so far
};

/// Writes a .npy file row by row. The file appears under its name only when Commit returns OK.
class NpyWriter {
 public:
  static Result<NpyWriter> Create(const Path& path, DataType dtype, std::uint64_t rows,
                                  std::uint64_t dim);

  /// Appends elements, row-major. Small pieces are buffered.
  Status Append(std::span<const std::byte> bytes);

  /// Writes the file under its name.
  /// Errors: kInvalidArgument, the number of appended elements is not rows * dim.
  Status Commit();

 private:
  NpyWriter(OutputFile file, std::uint64_t left_bytes)
      : file_(std::move(file)), left_bytes_(left_bytes) {}
  Status Flush();

  OutputFile file_;
  std::uint64_t left_bytes_;
  std::vector<std::byte> buffer_;
};

}  // namespace rhizome
