#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "index/input/file_format.h"
#include "rhizome/file_system.h"

namespace rhizome {
inline namespace internal {

/// The bytes of a file, as they are stored, read once from front to back.
/// Threads: one at a time.
class RawFile {
 public:
  RawFile(std::unique_ptr<ReadableFile> file, Path path)
      : file_(std::move(file)), path_(std::move(path)) {}

  /// Reads the next bytes; returns 0 at the end.
  /// Errors: kInvalidArgument, the file is shorter than when it was opened; kIoError.
  Result<std::size_t> Read(std::span<std::byte> out);

  /// Reads the file's first bytes, up to kFormatBytes, without taking them from Read. Must be
  /// called before Read, once.
  Result<std::span<const std::byte>> Peek();

  const Path& path() const { return path_; }
  std::uint64_t consumed_bytes() const { return offset_bytes_ - (head_.size() - head_taken_); }
  std::uint64_t total_bytes() const { return file_->size_bytes(); }

 private:
  Result<std::size_t> ReadFile(std::span<std::byte> out);

  std::unique_ptr<ReadableFile> file_;
  const Path path_;
  std::uint64_t offset_bytes_ = 0;
  std::vector<std::byte> head_;  // bytes of Peek
  std::size_t head_taken_ = 0;   // how many of them Read has returned
};

/// Decompresses a file.
/// Threads: one at a time.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Reads up to out.size() decompressed bytes; returns 0 only at the end.
  /// Errors: as InputStream::Read.
  virtual Result<std::size_t> Read(std::span<std::byte> out) = 0;
};

/// Bytes of the file that a decoder reads at once.
inline constexpr std::size_t kDecoderBlockBytes = std::size_t{256} << 10;

/// The largest window (zstd) or dictionary (xz) that a file may need: memory of its decoder.
inline constexpr int kMaxWindowLog = 27;
inline constexpr std::uint64_t kMaxWindowBytes = std::uint64_t{1} << kMaxWindowLog;

/// Returns the decoder of a compression; kNone copies.
/// Ownership: `file` must outlive the decoder.
std::unique_ptr<Decoder> MakeDecoder(Compression compression, RawFile& file);
std::unique_ptr<Decoder> MakeBzip2Decoder(RawFile& file);
std::unique_ptr<Decoder> MakeXzDecoder(RawFile& file);

/// Returns the error for a file that ends within its compressed data.
Status TruncatedFile(const Path& path, Compression compression);

/// Returns the error for compressed data that is invalid near byte `offset` of the file.
Status DamagedFile(const Path& path, Compression compression, std::uint64_t offset,
                   std::string_view why);

/// Returns the error for a file whose decoder would need more than kMaxWindowBytes.
Status LargeWindow(const Path& path, Compression compression);

/// Returns the error for a decoder that lacks memory.
Status DecoderWithoutMemory(const Path& path, Compression compression);

}  // namespace internal
}  // namespace rhizome
