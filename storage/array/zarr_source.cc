#include "storage/array/zarr_source.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "storage/array/chunk_writer.h"
#include "storage/array/codec_frames.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

using Compressor = ZarrSourceFormat::Compressor;

constexpr std::size_t kChunkCrcBytes = 4;
// A bound on the compression ratio of all supported compressors.
constexpr std::uint64_t kMaxRatio = std::uint64_t{1} << 16;
// An array may contain this many bytes of fill values in addition to what its chunk files justify.
constexpr std::uint64_t kMaxUnfoundedBytes = std::uint64_t{1} << 28;

/// Returns the max size of a compressed chunk: headers, and incompressible data, may make it longer
/// than the chunk.
std::uint64_t MaxFileBytes(std::uint64_t chunk_bytes) {
  return chunk_bytes + chunk_bytes / 64 + 4096;
}

Status Damaged(std::string_view why) { return Status::InvalidArgument(std::string(why)); }

Status DecodeGzip(std::span<const std::byte> frame, std::span<std::byte> out) {
  z_stream zlib{};
  if (inflateInit2(&zlib, 16 + MAX_WBITS) != Z_OK)
    return Status::OutOfMemory("zlib could not be initialised");
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(frame.data()));
  zlib.avail_in = static_cast<uInt>(frame.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  const int code = inflate(&zlib, Z_FINISH);
  const bool whole = code == Z_STREAM_END && zlib.avail_out == 0 && zlib.avail_in == 0;
  inflateEnd(&zlib);
  if (whole) return Status::Ok();
  return Damaged("the gzip stream is damaged or has another length");
}

/// Verifies the checksum at the end, and returns the bytes before it. Errors: kInvalidArgument.
Result<std::span<const std::byte>> TakeCrc(std::span<const std::byte> bytes) {
  if (bytes.size() < kChunkCrcBytes) return Fail(Damaged("the data is too short for its checksum"));
  const auto content = bytes.first(bytes.size() - kChunkCrcBytes);
  const auto stored = LoadLittle<std::uint32_t>(bytes.data() + content.size());
  const std::uint32_t computed = Crc32c(content);
  if (stored == computed) return content;
  return Fail(
      Damaged(fmt::format("the checksum is {:08x}, but its bytes give {:08x}", stored, computed)));
}

/// Converts elements one by one from their stored form to the returned form.
class ElementReader {
 public:
  explicit ElementReader(const ZarrSourceFormat& format)
      : format_(format), bytes_(format.element_bytes()) {}

  bool Copies() const { return !format_.big_endian && !format_.uint64; }

  /// Converts an element; returns false for a uint64 that does not fit int64.
  bool Read(const std::byte* from, std::byte* to) const {
    std::memcpy(to, from, bytes_);
    if (format_.big_endian) std::reverse(to, to + bytes_);
    // Such a number has the top bit, which the last byte has after the conversion.
    return !format_.uint64 || (to[bytes_ - 1] & std::byte{0x80}) == std::byte{0};
  }

 private:
  const ZarrSourceFormat& format_;
  const std::size_t bytes_;
};

}  // namespace

Result<std::unique_ptr<ZarrSource>> ZarrSource::Open(FileSystem& fs, const Path& folder) {
  // A user's folder may be a link, but FileSystem refuses links, to protect stores.
  std::error_code unresolved;
  const Path canonical = std::filesystem::canonical(folder, unresolved);
  const Path& real = unresolved ? folder : canonical;
  const Path metadata = real / "zarr.json";
  const auto info = fs.Stat(metadata);
  if (!info) {
    if (info.error().code() == StatusCode::kNotFound && fs.Stat(real / ".zarray"))
      return Fail(Status::InvalidArgument(
          fmt::format("'{}' is an array of Zarr v2, which is not supported; write it as v3 "
                      "(zarr-python: zarr_format=3)",
                      folder.string())));
    return Fail(info.error());
  }
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;
  auto bytes = ReadWholeFile(fs, metadata, kMaxBytes);
  if (!bytes) return Fail(Status::InvalidArgument(bytes.error().message()));
  auto format = ParseZarrSource({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (!format) return Fail(format.error().WithContext(folder.string()));
  return std::unique_ptr<ZarrSource>(new ZarrSource(fs, real, *std::move(format)));
}

std::uint64_t ZarrSource::RowsInStrip(std::uint64_t strip) const {
  return std::min(format_.chunk_rows, format_.rows - strip * format_.chunk_rows);
}

Path ZarrSource::ChunkPath(std::uint64_t strip, std::uint64_t across) const {
  std::string key = format_.key_prefix;
  if (!key.empty()) key += format_.key_separator;
  key += std::to_string(strip / (format_.shard_rows / format_.chunk_rows));
  if (format_.two_dimensional) {
    key += format_.key_separator;
    key += std::to_string(across / (format_.shard_dim / format_.chunk_dim));
  }
  return folder_ / key;
}

/// Reads a strip. For each of its chunks, from left to right:
///   1. LoadChunk reads and decodes it; in a sharded array LoadInner finds it through the shard's
///      index;
///   2. Place converts its elements into their columns of `out`, or writes fill values if it is
///      missing.
/// Then it refuses an array that has produced far more bytes than its files can contain.
Status ZarrSource::ReadStrip(std::uint64_t strip, std::span<std::byte> out) {
  if (strip >= format_.strips() || out.size() != RowsInStrip(strip) * format_.row_bytes())
    return Status::InvalidArgument(
        fmt::format("strip {} of {} bytes does not exist", strip, out.size()));
  for (std::uint64_t across = 0; across < format_.chunks_across(); ++across) {
    const Path path = ChunkPath(strip, across);
    Result<bool> there = LoadChunk(strip, across, path);
    if (!there) return there.error().WithContext(path.string());
    const Status placed = Place(strip, across, *there, out);
    if (!placed.ok()) return placed.WithContext(path.string());
  }
  given_bytes_ += out.size();
  if (given_bytes_ <= kMaxUnfoundedBytes || given_bytes_ / kMaxRatio <= read_bytes_)
    return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}': {} bytes of its {} rows were read, but its chunk files have {} bytes: "
                  "most of them are missing",
                  folder_.string(), given_bytes_, format_.rows, read_bytes_));
}

Result<bool> ZarrSource::OpenFile(const Path& path) {
  if (path == open_path_) return file_ != nullptr;
  file_.reset();
  open_path_.clear();
  auto file = fs_.OpenRead(path);
  if (!file && file.error().code() == StatusCode::kCorruption)  // a link or a pipe
    return Fail(Status::InvalidArgument(file.error().message()));
  if (!file && file.error().code() != StatusCode::kNotFound) return Fail(file.error());
  if (file) file_ = *std::move(file);
  open_path_ = path;
  return file_ != nullptr;
}

Result<bool> ZarrSource::LoadChunk(std::uint64_t strip, std::uint64_t across, const Path& path) {
  if (format_.sharded) return LoadInner(strip, across, path);
  RHIZOME_ASSIGN_OR_RETURN(const bool there, OpenFile(path));
  if (there) RHIZOME_RETURN_IF_ERROR(LoadBytes(0, file_->size_bytes()));
  return there;
}

Result<bool> ZarrSource::LoadInner(std::uint64_t strip, std::uint64_t across, const Path& path) {
  const std::uint64_t down = format_.shard_rows / format_.chunk_rows;
  const std::uint64_t beside = format_.shard_dim / format_.chunk_dim;
  if (strip / down != shard_row_) {
    shard_row_ = strip / down;
    shards_.assign(format_.shards_across(), std::nullopt);
  }
  std::optional<Shard>& shard = shards_[across / beside];
  if (!shard) {
    Shard read;
    RHIZOME_ASSIGN_OR_RETURN(read.there, OpenFile(path));
    if (read.there) {
      auto ranges = ReadShardIndex(*file_, format_.index);
      if (!ranges && ranges.error().code() == StatusCode::kCorruption)
        return Fail(Damaged(ranges.error().message()));
      if (!ranges) return Fail(ranges.error());
      read.ranges = *std::move(ranges);
      read_bytes_ += format_.index.size_bytes();
    }
    shard = std::move(read);
  }
  if (!shard->there) return false;
  const std::uint64_t inner = strip % down * beside + across % beside;
  const InnerRange& range = shard->ranges[inner];
  if (range.missing()) return false;
  RHIZOME_ASSIGN_OR_RETURN(const bool there, OpenFile(path));
  // The file existed when its index was read.
  if (!there) return Fail(Damaged("the file is gone"));
  const Status loaded = LoadBytes(range.offset_bytes, range.size_bytes);
  if (!loaded.ok()) return Fail(loaded.WithContext(DescribeInner(inner, range)));
  return true;
}

/// Reads `bytes` bytes at `offset` of the open file and decodes them as a chunk.
Status ZarrSource::LoadBytes(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t chunk_bytes = format_.chunk_bytes();
  const std::uint64_t checksum_bytes =
      kChunkCrcBytes * (std::uint64_t{format_.inner_checksums} + format_.outer_checksums);
  const bool raw = format_.compressor == Compressor::kNone;
  // Checked before memory is allocated for the encoded or the decoded bytes.
  if (raw ? bytes != chunk_bytes + checksum_bytes
          : bytes > MaxFileBytes(chunk_bytes) + checksum_bytes || bytes < chunk_bytes / kMaxRatio)
    return Damaged(fmt::format("{} bytes are not a chunk of {} bytes", bytes, chunk_bytes));
  if (offset > file_->size_bytes() || bytes > file_->size_bytes() - offset)
    return Damaged("the file became shorter while it was read");
  encoded_.resize(bytes);
  const Status read = ReadExactly(*file_, offset, encoded_);
  if (read.code() == StatusCode::kCorruption) return Damaged(read.message());
  if (!read.ok()) return read;
  read_bytes_ += bytes;
  const Status decoded = DecodeChunkFile(encoded_);
  return decoded.ok() ? decoded : Damaged(decoded.message());
}

Status ZarrSource::DecodeChunkFile(std::span<const std::byte> encoded) {
  for (std::uint32_t i = 0; i < format_.outer_checksums; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(encoded, TakeCrc(encoded));
  }
  inner_.resize(format_.chunk_bytes() + kChunkCrcBytes * format_.inner_checksums);
  switch (format_.compressor) {
    case Compressor::kNone:
      if (encoded.size() != inner_.size()) return Damaged("has the wrong length");
      std::copy(encoded.begin(), encoded.end(), inner_.begin());
      break;
    case Compressor::kZstd:
      RHIZOME_RETURN_IF_ERROR(DecodeZstdFrame(encoded, inner_));
      break;
    case Compressor::kBlosc:
      RHIZOME_RETURN_IF_ERROR(DecodeBloscFrame(format_.blosc, encoded, inner_));
      break;
    case Compressor::kGzip:
      RHIZOME_RETURN_IF_ERROR(DecodeGzip(encoded, inner_));
      break;
  }
  std::span<const std::byte> content = inner_;
  for (std::uint32_t i = 0; i < format_.inner_checksums; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(content, TakeCrc(content));
  }
  return Status::Ok();
}

Status ZarrSource::Place(std::uint64_t strip, std::uint64_t across, bool there,
                         std::span<std::byte> out) {
  const std::uint64_t first = across * format_.chunk_dim;
  const std::uint64_t columns = std::min(format_.chunk_dim, format_.dim - first);
  const std::size_t bytes = format_.element_bytes();
  const ElementReader reader(format_);
  for (std::uint64_t row = 0; row < RowsInStrip(strip); ++row) {
    std::byte* const to = out.data() + row * format_.row_bytes() + first * bytes;
    if (!there) {
      for (std::uint64_t i = 0; i < columns; ++i)
        std::memcpy(to + i * bytes, format_.fill.data(), bytes);
      continue;
    }
    const std::byte* const from = inner_.data() + row * format_.chunk_dim * bytes;
    if (reader.Copies()) {
      std::memcpy(to, from, columns * bytes);
      continue;
    }
    for (std::uint64_t i = 0; i < columns; ++i) {
      if (!reader.Read(from + i * bytes, to + i * bytes)) {
        return Damaged(fmt::format("row {}, column {}: a uint64 does not fit int64",
                                   strip * format_.chunk_rows + row, first + i));
      }
    }
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
