// Reads and writes .npy files. ParseNpyHeader checks a header; NpyReader reads the elements from a
// stream and, for uint64, checks that they fit int64; NpyWriter writes a header and buffered rows.

#include "index/input/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "index/input/npy_dict.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 10;
constexpr std::size_t kWriteBlockBytes = std::size_t{1} << 20;

struct DtypeName {
  std::string_view descr;
  DataType dtype;
};
constexpr std::array kDtypes = {
    DtypeName{"<f4", DataType::kFloat32},  DtypeName{"<f2", DataType::kFloat16},
    DtypeName{"<i8", DataType::kInt64},    DtypeName{"<i4", DataType::kInt32},
    DtypeName{"<u4", DataType::kUint32},   DtypeName{"|u1", DataType::kUint8},
    DtypeName{"<u1", DataType::kUint8},    DtypeName{"|b1", DataType::kBool},
    DtypeName{"<b1", DataType::kBool},     DtypeName{"?", DataType::kBool},
    DtypeName{"|i1", DataType::kInt8},     DtypeName{"<i1", DataType::kInt8},
    DtypeName{"<i2", DataType::kInt16},    DtypeName{"<f8", DataType::kFloat64},
    DtypeName{"<V2", DataType::kBfloat16}, DtypeName{"|V2", DataType::kBfloat16},
};

std::string_view HeaderText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr std::string_view kUint64 = "<u8";

Result<DataType> ParseDescr(std::string_view descr) {
  if (descr == kUint64) return DataType::kInt64;
  for (const DtypeName& known : kDtypes)
    if (known.descr == descr) return known.dtype;
  return Fail(Status::InvalidArgument(
      fmt::format("dtype '{}' is not supported; use little-endian bool, int8, int16, int32, int64, "
                  "uint8, uint32, uint64, float16, float32, float64 (numpy: x.astype('<f4')), or "
                  "bfloat16 of ml_dtypes",
                  descr)));
}

Status CheckShape(const NpyHeader& header) {
  if (header.shape.empty() || header.shape.size() > 2)
    return Status::InvalidArgument(
        fmt::format("the array has {} dimensions; one or two are expected", header.shape.size()));
  std::uint64_t bytes = DataTypeBytes(header.dtype);
  for (const std::uint64_t extent : header.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes) || (bytes >> 62) != 0)
      return Status::InvalidArgument(
          fmt::format("the shape ({}) is too large", fmt::join(header.shape, ", ")));
  }
  return Status::Ok();
}

}  // namespace

Result<std::size_t> NpyHeaderLength(std::span<const std::byte> prefix) {
  if (!HeaderText(prefix).starts_with(kMagic))
    return Fail(Status::InvalidArgument("not a .npy file: it does not begin with \\x93NUMPY"));
  if (prefix.size() < 10) return Fail(Status::InvalidArgument("truncated .npy header"));
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(prefix[i]); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3)
    return Fail(Status::InvalidArgument(fmt::format(
        "version {} of the .npy format is not supported; use version 1 to 3", version)));
  std::size_t length = byte(8) | byte(9) << 8;
  std::size_t preamble = 10;
  if (version > 1) {
    if (prefix.size() < 12) return Fail(Status::InvalidArgument("truncated .npy header"));
    length |= byte(10) << 16 | byte(11) << 24;
    preamble = 12;
  }
  if (length > kMaxHeaderBytes)
    return Fail(Status::InvalidArgument(fmt::format(
        "the .npy header has {} bytes, but at most {} are allowed", length, kMaxHeaderBytes)));
  return preamble + length;
}

// Parses a header: finds its length, parses its dictionary, and checks order, dtype and shape.
Result<NpyHeader> ParseNpyHeader(std::span<const std::byte> bytes, const NpyAccept& accept) {
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t length,
                           NpyHeaderLength(bytes.first(std::min(bytes.size(), kNpyPrefixBytes))));
  if (bytes.size() < length)
    return Fail(Status::InvalidArgument(
        fmt::format("truncated .npy header: {} bytes expected, {} found", length, bytes.size())));
  const std::size_t preamble = bytes[6] == std::byte{1} ? 10 : 12;
  RHIZOME_ASSIGN_OR_RETURN(const NpyDict dict,
                           ParseNpyDict(HeaderText(bytes.subspan(preamble, length - preamble))));
  if (dict.fortran_order && !accept.fortran_order)
    return Fail(Status::InvalidArgument(
        "the array is in Fortran order; convert it with numpy.ascontiguousarray"));
  NpyHeader header;
  RHIZOME_ASSIGN_OR_RETURN(header.dtype, ParseDescr(dict.descr));
  header.uint64 = dict.descr == kUint64;
  header.fortran_order = dict.fortran_order;
  header.shape = dict.shape;
  header.data_offset = length;
  RHIZOME_RETURN_IF_ERROR(CheckShape(header));
  return header;
}

std::vector<std::byte> EncodeNpyHeader(DataType dtype, std::span<const std::uint64_t> shape) {
  std::string_view descr;
  for (const DtypeName& known : kDtypes)
    if (known.dtype == dtype && descr.empty()) descr = known.descr;
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // Like NumPy, pads with spaces so that the data begins at a multiple of 64.
  while ((10 + text.size() + 1) % 64 != 0) text.push_back(' ');
  text.push_back('\n');
  std::string all(kMagic);
  all +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  all += text;
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

Result<std::unique_ptr<NpyReader>> NpyReader::Open(FileSystem& fs, const Path& path,
                                                   const NpyAccept& accept) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  return Open(std::move(stream), accept);
}

Result<std::unique_ptr<NpyReader>> NpyReader::Open(std::unique_ptr<InputStream> stream,
                                                   const NpyAccept& accept) {
  std::unique_ptr<NpyReader> reader(new NpyReader());
  reader->stream_ = std::move(stream);
  std::vector<std::byte> bytes(kNpyPrefixBytes);
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t prefix, reader->stream_->ReadFull(bytes));
  bytes.resize(prefix);
  const auto name = [&](const Status& status) {
    return Fail(status.WithContext(reader->stream_->path().string()));
  };
  const Result<std::size_t> length = NpyHeaderLength(bytes);
  if (!length) return name(length.error());
  bytes.resize(std::max(*length, prefix));
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t rest,
                           reader->stream_->ReadFull(std::span(bytes).subspan(prefix)));
  bytes.resize(prefix + rest);
  Result<NpyHeader> header = ParseNpyHeader(bytes, accept);
  if (!header) return name(header.error());
  reader->header_ = *std::move(header);
  // A valid dictionary is longer than the prefix, so the prefix contained no element.
  const std::uint64_t elements = reader->header_.rows() * reader->header_.dim();
  reader->data_bytes_ = elements * DataTypeBytes(reader->header_.dtype);
  return reader;
}

Status NpyReader::Read(std::span<std::byte> out) {
  RHIZOME_RETURN_IF_ERROR(ReadStored(out));
  return header_.uint64 ? CheckUint64(out) : Status::Ok();
}

Status NpyReader::Skip(std::uint64_t bytes) {
  constexpr std::uint64_t kBlockBytes = 1 << 18;
  std::vector<std::byte> block;
  for (; bytes > 0; bytes -= block.size()) {
    block.resize(std::min(bytes, kBlockBytes));
    RHIZOME_RETURN_IF_ERROR(Read(block));
  }
  return Status::Ok();
}

Status NpyReader::ReadStored(std::span<std::byte> out) {
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, stream_->ReadFull(out));
  read_bytes_ += bytes;
  if (bytes == out.size()) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{}: truncated: {} bytes of data expected after the header, {} found",
                  stream_->path().string(), data_bytes_, read_bytes_));
}

Status NpyReader::CheckUint64(std::span<const std::byte> read) const {
  const std::uint64_t first = (read_bytes_ - read.size()) / sizeof(std::uint64_t);
  for (std::size_t i = 0; i * sizeof(std::uint64_t) < read.size(); ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, read.data() + i * sizeof(value), sizeof(value));
    if (std::in_range<std::int64_t>(value)) continue;
    return Status::InvalidArgument(fmt::format(
        "{}: row {}, column {}: {} does not fit int64, as which uint64 is stored",
        stream_->path().string(), (first + i) / header_.dim(), (first + i) % header_.dim(), value));
  }
  return Status::Ok();
}

Status NpyReader::Finish() {
  std::array<std::byte, 1> more;
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, stream_->ReadFull(more));
  if (bytes == 0) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{}: {} bytes of data expected after the header, but there are more",
                  stream_->path().string(), data_bytes_));
}

Result<NpyWriter> NpyWriter::Create(const Path& path, DataType dtype, std::uint64_t rows,
                                    std::uint64_t dim) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(rows, dim, &bytes) ||
      __builtin_mul_overflow(bytes, DataTypeBytes(dtype), &bytes)) {
    return Fail(Status::InvalidArgument(
        fmt::format("{}: the shape ({}, {}) is too large", path.string(), rows, dim)));
  }
  RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  NpyWriter writer(std::move(file), bytes);
  const std::array<std::uint64_t, 2> shape = {rows, dim};
  writer.buffer_ = EncodeNpyHeader(dtype, shape);
  return writer;
}

Status NpyWriter::Append(std::span<const std::byte> bytes) {
  if (bytes.size() > left_bytes_)
    return Status::InvalidArgument("more elements were appended than the .npy header declares");
  left_bytes_ -= bytes.size();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return buffer_.size() < kWriteBlockBytes ? Status::Ok() : Flush();
}

Status NpyWriter::Commit() {
  if (left_bytes_ != 0)
    return Status::InvalidArgument(
        fmt::format("{} fewer bytes were appended than the .npy header declares", left_bytes_));
  RHIZOME_RETURN_IF_ERROR(Flush());
  return file_.Commit();
}

Status NpyWriter::Flush() {
  RHIZOME_RETURN_IF_ERROR(file_.Append(buffer_));
  buffer_.clear();
  return Status::Ok();
}

}  // namespace rhizome
