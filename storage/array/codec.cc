#include "storage/array/codec.h"

#include <blosc.h>
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "rhizome/types.h"
#include "storage/array/codec_frames.h"
#include "storage/array/codec_table.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/base/nonzero.h"

namespace rhizome {
namespace {

constexpr std::size_t kCrcBytes = 4;
constexpr std::size_t kBloscHeaderBytes = BLOSC_MIN_HEADER_LENGTH;
constexpr std::uint32_t kZstdMagic = 0xFD2FB528;  // magic of a frame, RFC 8878

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

Result<std::size_t> CompressZstd(const Codec& codec, std::span<const std::byte> raw,
                                 std::span<std::byte> out) {
  const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  if (context == nullptr) return Fail(Status::OutOfMemory("no memory for a zstd context"));
  // With all input in one call, zstd stores the content size in the frame.
  const std::size_t written =
      ZSTD_compressCCtx(context.get(), out.data(), out.size(), raw.data(), raw.size(), codec.level);
  if (ZSTD_isError(written) != 0) {
    return Fail(Status::IoError(fmt::format("zstd failed: {}", ZSTD_getErrorName(written))));
  }
  return written;
}

Result<std::size_t> CompressBlosc(const Codec& codec, std::span<const std::byte> raw,
                                  std::span<std::byte> out) {
  const char* name = codec.kind == CodecKind::kBloscLz4 ? BLOSC_LZ4_COMPNAME : BLOSC_ZSTD_COMPNAME;
  // The _ctx functions are thread-safe. Block size 0 lets Blosc choose it.
  const int written = blosc_compress_ctx(codec.level, BLOSC_SHUFFLE, codec.element_bytes,
                                         raw.size(), raw.data(), out.data(), out.size(), name,
                                         /*blocksize=*/0, /*numinternalthreads=*/1);
  if (written <= 0) {
    return Fail(Status::IoError(fmt::format("Blosc ({}) failed with {}", name, written)));
  }
  return static_cast<std::size_t>(written);
}

/// Checks the header of a zstd frame and its length before the decoder sees any byte.
Status CheckZstdFrame(std::span<const std::byte> frame, std::size_t raw_bytes) {
  if (frame.size() < 4 || LoadLittle<std::uint32_t>(frame.data()) != kZstdMagic)
    return Status::Corruption("not a zstd frame (offset 0, magic)");
  const unsigned long long content = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (content == ZSTD_CONTENTSIZE_ERROR) return Status::Corruption("bad zstd frame header");
  // Some writers (TensorStore) omit the size; the length of the decoder's output is checked anyway.
  if (content != ZSTD_CONTENTSIZE_UNKNOWN && content != raw_bytes) {
    return Status::Corruption(fmt::format(
        "the zstd frame claims {} decoded bytes, the array's shape needs {}", content, raw_bytes));
  }
  const std::size_t length = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(length) != 0 || length != frame.size())
    return Status::Corruption("the zstd frame does not end where the chunk ends");
  return {};
}

/// Checks the 16-byte header of a Blosc 1 frame: version, codec's version, flags, type size, then
/// decoded bytes, block bytes and frame bytes as little-endian uint32. Bits 5 to 7 of the flags
/// identify the codec; blosclz (0) must never reach the decoder.
Status CheckBloscFrame(CodecKind codec, std::span<const std::byte> frame, std::size_t raw_bytes) {
  if (frame.size() < kBloscHeaderBytes)
    return Status::Corruption("shorter than the header of a Blosc frame");
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(frame[at]); };
  if (byte(0) != BLOSC_VERSION_FORMAT)
    return Status::Corruption(fmt::format("Blosc frame version {} (offset 0)", byte(0)));
  const unsigned expected_format =
      codec == CodecKind::kBloscLz4 ? BLOSC_LZ4_FORMAT : BLOSC_ZSTD_FORMAT;
  if (byte(2) >> 5 != expected_format) {
    return Status::Corruption(
        fmt::format("codec {} in the Blosc frame (offset 2), the array's codec is {}", byte(2) >> 5,
                    CodecName(codec)));
  }
  static_assert(BLOSC_LZ4_VERSION_FORMAT == 1 && BLOSC_ZSTD_VERSION_FORMAT == 1);
  if (byte(1) != 1) return Status::Corruption(fmt::format("codec version {} (offset 1)", byte(1)));
  if ((byte(2) & 0x08) != 0) return Status::Corruption("reserved Blosc flag (offset 2)");
  if (byte(3) == 0) return Status::Corruption("Blosc type size 0 (offset 3)");

  const std::uint32_t decoded = LoadLittle<std::uint32_t>(frame.data() + 4);
  const std::uint32_t block = LoadLittle<std::uint32_t>(frame.data() + 8);
  const std::uint32_t length = LoadLittle<std::uint32_t>(frame.data() + 12);
  if (decoded != raw_bytes) {
    return Status::Corruption(fmt::format(
        "the Blosc frame claims {} decoded bytes (offset 4), the array's shape needs {}", decoded,
        raw_bytes));
  }
  if (length != frame.size()) {
    return Status::Corruption(fmt::format(
        "the Blosc frame claims to be {} bytes long (offset 12), it is {}", length, frame.size()));
  }
  if (block == 0 || block > raw_bytes)
    return Status::Corruption(fmt::format("Blosc block size {} (offset 8)", block));
  return {};
}

Status DecodeRaw(std::span<const std::byte> encoded, std::span<std::byte> out) {
  if (encoded.size() != out.size()) {
    return Status::Corruption(fmt::format("{} bytes instead of {}", encoded.size(), out.size()));
  }
  std::copy(encoded.begin(), encoded.end(), out.begin());
  return {};
}

}  // namespace

Status internal::DecodeZstdFrame(std::span<const std::byte> frame, std::span<std::byte> out) {
  RHIZOME_RETURN_IF_ERROR(CheckZstdFrame(frame, out.size()));
  const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  if (context == nullptr) return Status::OutOfMemory("no memory for a zstd context");
  // Decoding in one call uses `out` itself as the window, so a frame cannot make zstd allocate one.
  const std::size_t written =
      ZSTD_decompressDCtx(context.get(), out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(written) != 0)
    return Status::Corruption(fmt::format("bad zstd frame: {}", ZSTD_getErrorName(written)));
  if (written != out.size()) {
    return Status::Corruption(
        fmt::format("the zstd frame holds {} bytes instead of {}", written, out.size()));
  }
  return {};
}

Status internal::DecodeBloscFrame(CodecKind codec, std::span<const std::byte> frame,
                                  std::span<std::byte> out) {
  RHIZOME_RETURN_IF_ERROR(CheckBloscFrame(codec, frame, out.size()));
  std::size_t decoded = 0;
  if (blosc_cbuffer_validate(frame.data(), frame.size(), &decoded) != 0 || decoded != out.size())
    return Status::Corruption("bad Blosc frame");
  const int written = blosc_decompress_ctx(frame.data(), out.data(), out.size(), 1);
  if (written < 0 || static_cast<std::size_t>(written) != out.size())
    return Status::Corruption(fmt::format("bad Blosc frame: the decoder returned {}", written));
  return {};
}

namespace {

ZarrJson NothingToConfigure(const Codec&) { return ZarrJson::Object(); }

ZarrJson ConfigureZstd(const Codec& codec) {
  return ZarrJson::Object().With("level", codec.level).With("checksum", false);
}

std::uint64_t MaxZstdBytes(std::uint64_t raw_bytes) { return ZSTD_compressBound(raw_bytes); }

Status DecompressZstd(const Codec&, std::span<const std::byte> frame, std::span<std::byte> out) {
  return DecodeZstdFrame(frame, out);
}

ZarrJson ConfigureBlosc(const Codec& codec) {
  ZarrJson json = ZarrJson::Object();
  json.Set("cname", codec.kind == CodecKind::kBloscLz4 ? "lz4" : "zstd");
  json.Set("clevel", codec.level);
  json.Set("shuffle", "shuffle");
  json.Set("typesize", codec.element_bytes);
  json.Set("blocksize", 0);
  return json;
}

std::uint64_t MaxBloscBytes(std::uint64_t raw_bytes) { return raw_bytes + BLOSC_MAX_OVERHEAD; }

Status CheckBlosc(const Codec& codec, std::size_t) {
  if (codec.element_bytes != 0 && codec.element_bytes <= BLOSC_MAX_TYPESIZE) return {};
  return Status::InvalidArgument(
      fmt::format("Blosc cannot shuffle elements of {} bytes", codec.element_bytes));
}

Status DecompressBlosc(const Codec& codec, std::span<const std::byte> frame,
                       std::span<std::byte> out) {
  return DecodeBloscFrame(codec.kind, frame, out);
}

std::uint64_t MaxPackedBytes(std::uint64_t raw_bytes) { return MaxNonzeroBytes(raw_bytes); }

Status CheckNonzero(const Codec& codec, std::size_t raw_bytes) {
  if (codec.element_bytes == 4 && raw_bytes % 4 == 0) return {};
  return Status::InvalidArgument("codec nonzero needs elements of four bytes");
}

Result<std::size_t> CompressNonzero(const Codec&, std::span<const std::byte> raw,
                                    std::span<std::byte> out) {
  return PackNonzero(raw, out);
}

Status DecompressNonzero(const Codec&, std::span<const std::byte> frame, std::span<std::byte> out) {
  return UnpackNonzero(frame, out);
}

std::uint64_t MaxRawBytes(std::uint64_t raw_bytes) { return raw_bytes; }

constexpr const char* kBloscLevel = "/configuration/clevel";

/// To add a codec, add a value to CodecKind, the codec's functions, and a row here.
constexpr std::array<CodecEntry, 5> kCodecs = {{
    {.kind = CodecKind::kRaw,
     .name = "raw",
     .highest_level = 0,
     .usual_level = 0,
     .published = true,
     .zarr_name = "",
     .zarr_level = nullptr,
     .zarr_configuration = NothingToConfigure,
     .max_frame_bytes = MaxRawBytes,
     .check = nullptr,
     .compress = nullptr,
     .decompress = nullptr},
    {.kind = CodecKind::kZstd,
     .name = "zstd",
     .highest_level = 19,
     .usual_level = 3,
     .published = true,
     .zarr_name = "zstd",
     .zarr_level = "/configuration/level",
     .zarr_configuration = ConfigureZstd,
     .max_frame_bytes = MaxZstdBytes,
     .check = nullptr,
     .compress = CompressZstd,
     .decompress = DecompressZstd},
    {.kind = CodecKind::kBloscLz4,
     .name = "blosc-lz4",
     .highest_level = 9,
     .usual_level = 5,
     .published = true,
     .zarr_name = "blosc",
     .zarr_level = kBloscLevel,
     .zarr_configuration = ConfigureBlosc,
     .max_frame_bytes = MaxBloscBytes,
     .check = CheckBlosc,
     .compress = CompressBlosc,
     .decompress = DecompressBlosc},
    {.kind = CodecKind::kBloscZstd,
     .name = "blosc-zstd",
     .highest_level = 9,
     .usual_level = 5,
     .published = true,
     .zarr_name = "blosc",
     .zarr_level = kBloscLevel,
     .zarr_configuration = ConfigureBlosc,
     .max_frame_bytes = MaxBloscBytes,
     .check = CheckBlosc,
     .compress = CompressBlosc,
     .decompress = DecompressBlosc},
    {.kind = CodecKind::kNonzero,
     .name = "nonzero",
     .highest_level = 0,
     .usual_level = 0,
     .published = false,
     .zarr_name = "rhizome.nonzero",
     .zarr_level = nullptr,
     .zarr_configuration = NothingToConfigure,
     .max_frame_bytes = MaxPackedBytes,
     .check = CheckNonzero,
     .compress = CompressNonzero,
     .decompress = DecompressNonzero},
}};

Status CheckEncodable(const Codec& codec, std::span<const std::byte> raw) {
  if (raw.size() > kMaxChunkBytes) {
    return Status::InvalidArgument(
        fmt::format("a chunk of {} bytes is above the limit of {}; use fewer rows a chunk",
                    raw.size(), kMaxChunkBytes));
  }
  const CodecEntry* const known = FindCodec(codec.kind);
  if (known == nullptr)
    return Status::InvalidArgument(
        fmt::format("unknown codec number {}", static_cast<int>(codec.kind)));
  if (codec.kind == CodecKind::kRaw) return {};
  if (raw.empty()) return Status::InvalidArgument("an empty chunk cannot be compressed");
  if (known->check != nullptr) RHIZOME_RETURN_IF_ERROR(known->check(codec, raw.size()));
  return CheckCodecLevel(*known, codec.level);
}

}  // namespace

std::span<const CodecEntry> internal::AllCodecs() { return kCodecs; }

const CodecEntry* internal::FindCodec(CodecKind kind) {
  for (const CodecEntry& entry : kCodecs) {
    if (entry.kind == kind) return &entry;
  }
  return nullptr;
}

Status internal::CheckCodecLevel(const CodecEntry& entry, int level) {
  if (entry.highest_level == 0 || (level >= 1 && level <= entry.highest_level)) return {};
  return Status::InvalidArgument(fmt::format("compression level {} of {} is not in [1, {}]", level,
                                             entry.name, entry.highest_level));
}

std::string_view CodecName(CodecKind codec) {
  const CodecEntry* const known = FindCodec(codec);
  return known == nullptr ? "invalid" : known->name;
}

std::vector<CodecKind> PublishedCodecs() {
  std::vector<CodecKind> codecs;
  for (const CodecEntry& entry : kCodecs)
    if (entry.published) codecs.push_back(entry.kind);
  return codecs;
}

CodecLevels LevelsOf(CodecKind codec) {
  const CodecEntry* const known = FindCodec(codec);
  if (known == nullptr) return {};
  return {.highest = known->highest_level, .usual = known->usual_level};
}

std::optional<CodecKind> ParseCodec(std::string_view name) {
  for (const CodecEntry& entry : kCodecs) {
    if (entry.name == name && entry.published) return entry.kind;
  }
  return std::nullopt;
}

std::uint64_t MaxEncodedBytes(const Codec& codec, std::uint64_t raw_bytes) {
  const CodecEntry* const known = FindCodec(codec.kind);
  if (known == nullptr) return 0;
  return known->max_frame_bytes(raw_bytes) + (codec.kind == CodecKind::kRaw ? 0 : kCrcBytes);
}

Result<std::size_t> EncodeChunkInto(const Codec& codec, std::span<const std::byte> raw,
                                    std::span<std::byte> out) {
  RHIZOME_RETURN_IF_ERROR(CheckEncodable(codec, raw));
  if (out.size() < MaxEncodedBytes(codec, raw.size()))
    return Fail(Status::InvalidArgument(
        fmt::format("a buffer of {} bytes may be too small for an encoded chunk of {}", out.size(),
                    raw.size())));
  if (codec.kind == CodecKind::kRaw) {
    std::copy(raw.begin(), raw.end(), out.begin());
    return raw.size();
  }
  const std::span<std::byte> room = out.first(out.size() - kCrcBytes);
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t frame_bytes,
                           FindCodec(codec.kind)->compress(codec, raw, room));
  RHIZOME_DCHECK(frame_bytes <= room.size());
  StoreLittle(out.data() + frame_bytes, Crc32c(out.first(frame_bytes)));
  return frame_bytes + kCrcBytes;
}

Result<std::vector<std::byte>> EncodeChunk(const Codec& codec, std::span<const std::byte> raw) {
  RHIZOME_RETURN_IF_ERROR(CheckEncodable(codec, raw));  // checked before memory is allocated
  std::vector<std::byte> out(MaxEncodedBytes(codec, raw.size()));
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t size, EncodeChunkInto(codec, raw, out));
  out.resize(size);
  return out;
}

/// Decodes in these steps:
///   1. A raw chunk is copied.
///   2. The length must be plausible, and the CRC-32C at the end must be correct.
///   3. The frame's header must match the codec and out.size(); the frame is decoded into `out`.
Status DecodeChunk(const Codec& codec, std::span<const std::byte> encoded,
                   std::span<std::byte> out) {
  if (codec.kind == CodecKind::kRaw) return DecodeRaw(encoded, out);
  const CodecEntry* const known = FindCodec(codec.kind);
  if (known == nullptr)
    return Status::Corruption(fmt::format("unknown codec {}", static_cast<int>(codec.kind)));
  if (encoded.size() < kCrcBytes || encoded.size() > MaxEncodedBytes(codec, out.size())) {
    return Status::Corruption(
        fmt::format("an encoded chunk of {} bytes is too small to decode to {} bytes",
                    encoded.size(), out.size()));
  }
  const auto frame = encoded.first(encoded.size() - kCrcBytes);
  const auto stored = LoadLittle<std::uint32_t>(encoded.data() + frame.size());
  const std::uint32_t computed = Crc32c(frame);
  if (stored != computed) {
    return Status::Corruption(
        fmt::format("chunk checksum is {:08x}, its bytes give {:08x}", stored, computed));
  }
  return known->decompress(codec, frame, out);
}

}  // namespace rhizome
