// Decoders of compressed input: plain, gzip and zstd; bzip2 and xz have files of their own. Each
// reads blocks of the file (RawFile::Read) and decompresses them into the caller's buffer.

#include "index/input/decoder.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kFrameHeaderBytes = 18;  // upper bound of zstd

class PlainDecoder final : public Decoder {
 public:
  explicit PlainDecoder(RawFile& file) : file_(file) {}
  Result<std::size_t> Read(std::span<std::byte> out) override { return file_.Read(out); }

 private:
  RawFile& file_;
};

class GzipDecoder final : public Decoder {
 public:
  explicit GzipDecoder(RawFile& file) : file_(file), block_(kDecoderBlockBytes) {}
  ~GzipDecoder() override {
    if (started_) inflateEnd(&zlib_);
  }

  Result<std::size_t> Read(std::span<std::byte> out) override {
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30));
    const uInt room = zlib_.avail_out;
    while (zlib_.avail_out == room && room > 0) {
      if (started_ && !in_member_) SkipPadding();
      if (zlib_.avail_in == 0) {
        RHIZOME_ASSIGN_OR_RETURN(const bool more, Refill());
        if (!more) return std::size_t{0};
        continue;  // the new block may begin with padding
      }
      RHIZOME_RETURN_IF_ERROR(Inflate());
    }
    return static_cast<std::size_t>(room - zlib_.avail_out);
  }

 private:
  /// Returns false at the end of the file, which must not be within a member.
  Result<bool> Refill() {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, file_.Read(block_));
    if (bytes == 0) {
      if (!started_ || in_member_) return Fail(TruncatedFile(file_.path(), Compression::kGzip));
      return false;
    }
    zlib_.next_in = reinterpret_cast<Bytef*>(block_.data());
    zlib_.avail_in = static_cast<uInt>(bytes);
    return true;
  }

  /// Skips zeros after a member, which tapes and some tools append.
  void SkipPadding() {
    while (zlib_.avail_in > 0 && *zlib_.next_in == 0) {
      ++zlib_.next_in;
      --zlib_.avail_in;
    }
  }

  Status Inflate() {
    if (!started_) {
      if (inflateInit2(&zlib_, 16 + MAX_WBITS) != Z_OK)
        return DecoderWithoutMemory(file_.path(), Compression::kGzip);
      started_ = true;
    } else if (!in_member_) {
      inflateReset(&zlib_);
    }
    in_member_ = true;
    const int code = inflate(&zlib_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) in_member_ = false;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return Status::Ok();
    return DamagedFile(file_.path(), Compression::kGzip, file_.consumed_bytes() - zlib_.avail_in,
                       zlib_.msg != nullptr ? zlib_.msg : "zlib error");
  }

  RawFile& file_;
  std::vector<std::byte> block_;
  z_stream zlib_{};
  bool started_ = false;
  bool in_member_ = false;
};

class ZstdDecoder final : public Decoder {
 public:
  explicit ZstdDecoder(RawFile& file)
      : file_(file), block_(kDecoderBlockBytes), context_(ZSTD_createDCtx()) {
    if (context_) ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  Result<std::size_t> Read(std::span<std::byte> out) override {
    if (!context_) return Fail(DecoderWithoutMemory(file_.path(), Compression::kZstd));
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos == 0 && output.size > 0) {
      // Within a frame zstd may hold back output, so it is called even if all input is consumed.
      if (input_.pos == input_.size && !flushing_) {
        RHIZOME_ASSIGN_OR_RETURN(const bool more, Refill());
        if (!more) return std::size_t{0};
      }
      const std::size_t from = input_.pos;
      const std::size_t decoded = output.pos;
      const std::size_t hint = ZSTD_decompressStream(context_.get(), &output, &input_);
      if (ZSTD_isError(hint)) return Fail(Failed(hint));
      in_frame_ = hint != 0;
      flushing_ = in_frame_ && output.pos == output.size;
      RHIZOME_RETURN_IF_ERROR(CountFrame(from, output.pos - decoded));
    }
    return output.pos;
  }

 private:
  Status Failed(std::size_t code) const {
    if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
      return LargeWindow(file_.path(), Compression::kZstd);
    return Damaged(ZSTD_getErrorName(code));
  }
  Status Damaged(std::string_view why) const {
    return DamagedFile(file_.path(), Compression::kZstd,
                       file_.consumed_bytes() - (input_.size - input_.pos), why);
  }

  Result<bool> Refill() {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, file_.Read(block_));
    if (bytes == 0) {
      if (in_frame_ || file_.consumed_bytes() == 0)
        return Fail(TruncatedFile(file_.path(), Compression::kZstd));
      return false;
    }
    input_ = {block_.data(), bytes, 0};
    return true;
  }

  /// Checks the frame's length if the frame declares one. Zstd checks it when it decodes a frame at
  /// once, but not if the last of several blocks is empty.
  Status CountFrame(std::size_t from, std::size_t decoded) {
    const std::size_t missing = kFrameHeaderBytes - header_.size();
    const std::byte* const begin = block_.data() + from;
    header_.insert(header_.end(), begin, begin + std::min(input_.pos - from, missing));
    frame_bytes_ += decoded;
    if (in_frame_) return Status::Ok();
    const unsigned long long declared = ZSTD_getFrameContentSize(header_.data(), header_.size());
    const bool known = declared != ZSTD_CONTENTSIZE_UNKNOWN && declared != ZSTD_CONTENTSIZE_ERROR;
    if (known && declared != frame_bytes_)
      return Damaged("a frame does not have the length in its header");
    header_.clear();
    frame_bytes_ = 0;
    return Status::Ok();
  }

  struct FreeContext {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  RawFile& file_;
  std::vector<std::byte> block_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool in_frame_ = false;
  bool flushing_ = false;
  std::vector<std::byte> header_;  // the first bytes of the current frame
  std::uint64_t frame_bytes_ = 0;  // decoded bytes of the current frame
};

}  // namespace

Result<std::size_t> RawFile::Read(std::span<std::byte> out) {
  if (head_taken_ == head_.size()) return ReadFile(out);
  const std::size_t bytes = std::min(out.size(), head_.size() - head_taken_);
  std::memcpy(out.data(), head_.data() + head_taken_, bytes);
  head_taken_ += bytes;
  return bytes;
}

Result<std::span<const std::byte>> RawFile::Peek() {
  while (head_.size() < kFormatBytes) {
    const std::size_t held = head_.size();
    head_.resize(kFormatBytes);
    const Result<std::size_t> bytes = ReadFile(std::span(head_).subspan(held));
    head_.resize(held + bytes.value_or(0));
    if (!bytes) return Fail(bytes.error());
    if (*bytes == 0) break;
  }
  return head_;
}

Result<std::size_t> RawFile::ReadFile(std::span<std::byte> out) {
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, file_->ReadAt(offset_bytes_, out));
  // The length at opening is authoritative: a file that ends earlier was truncated, or could not be
  // read.
  if (bytes == 0 && !out.empty() && offset_bytes_ < file_->size_bytes())
    return Fail(Status::InvalidArgument(
        fmt::format("{}: ends at byte {}, but was {} bytes long when it was opened",
                    path().string(), offset_bytes_, file_->size_bytes())));
  offset_bytes_ += bytes;
  return bytes;
}

std::unique_ptr<Decoder> MakeDecoder(Compression compression, RawFile& file) {
  switch (compression) {
    case Compression::kNone:
      break;
    case Compression::kGzip:
      return std::make_unique<GzipDecoder>(file);
    case Compression::kZstd:
      return std::make_unique<ZstdDecoder>(file);
    case Compression::kBzip2:
      return MakeBzip2Decoder(file);
    case Compression::kXz:
      return MakeXzDecoder(file);
  }
  return std::make_unique<PlainDecoder>(file);
}

Status TruncatedFile(const Path& path, Compression compression) {
  return Status::InvalidArgument(
      fmt::format("{}: truncated {} stream: the file ends in the middle of the compressed data; "
                  "copy or download it again",
                  path.string(), CompressionName(compression)));
}

Status DamagedFile(const Path& path, Compression compression, std::uint64_t offset,
                   std::string_view why) {
  return Status::InvalidArgument(
      fmt::format("{0}: damaged {1} stream near byte {2}: {3}; copy or download it again ({1} -t "
                  "tests a file)",
                  path.string(), CompressionName(compression), offset, why));
}

Status LargeWindow(const Path& path, Compression compression) {
  return Status::InvalidArgument(fmt::format(
      "{}: to decompress this {} stream needs a window above {} MiB, which is the limit; "
      "decompress it, or compress it again with {}",
      path.string(), CompressionName(compression), kMaxWindowBytes >> 20,
      compression == Compression::kXz ? "xz -9" : "zstd -19"));
}

Status DecoderWithoutMemory(const Path& path, Compression compression) {
  return Status::OutOfMemory(fmt::format("{}: there is no memory to decompress its {} stream",
                                         path.string(), CompressionName(compression)));
}

}  // namespace internal
}  // namespace rhizome
