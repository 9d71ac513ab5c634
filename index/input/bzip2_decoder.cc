#include <bzlib.h>

#include <algorithm>
#include <utility>

#include "index/input/decoder.h"

namespace rhizome {
inline namespace internal {
namespace {

class Bzip2Decoder final : public Decoder {
 public:
  explicit Bzip2Decoder(RawFile& file) : file_(file), block_(kDecoderBlockBytes) {}
  ~Bzip2Decoder() override { EndStream(); }

  Result<std::size_t> Read(std::span<std::byte> out) override {
    bzip2_.next_out = reinterpret_cast<char*>(out.data());
    bzip2_.avail_out = static_cast<unsigned>(std::min<std::size_t>(out.size(), 1U << 30));
    const unsigned space = bzip2_.avail_out;
    while (bzip2_.avail_out == space && space > 0) {
      if (!in_stream_) SkipPadding();
      // Within a stream bzip2 may hold back output, so it is called even if all input is consumed.
      if (bzip2_.avail_in == 0 && !flushing_) {
        RHIZOME_ASSIGN_OR_RETURN(const bool more, Refill());
        if (!more) return std::size_t{0};
        continue;
      }
      RHIZOME_RETURN_IF_ERROR(Decompress());
    }
    return static_cast<std::size_t>(space - bzip2_.avail_out);
  }

 private:
  /// Returns false at the end of the file, which must not be within a stream.
  Result<bool> Refill() {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, file_.Read(block_));
    if (bytes == 0) {
      if (in_stream_ || file_.consumed_bytes() == 0)
        return Fail(TruncatedFile(file_.path(), Compression::kBzip2));
      return false;
    }
    bzip2_.next_in = reinterpret_cast<char*>(block_.data());
    bzip2_.avail_in = static_cast<unsigned>(bytes);
    return true;
  }

  /// Skips zeros after a stream, which tapes and some tools append.
  void SkipPadding() {
    while (bzip2_.avail_in > 0 && *bzip2_.next_in == 0) {
      ++bzip2_.next_in;
      --bzip2_.avail_in;
    }
  }

  Status Decompress() {
    if (!in_stream_) {
      if (BZ2_bzDecompressInit(&bzip2_, /*verbosity=*/0, /*small=*/0) != BZ_OK)
        return DecoderWithoutMemory(file_.path(), Compression::kBzip2);
      in_stream_ = true;
    }
    const int code = BZ2_bzDecompress(&bzip2_);
    flushing_ = code == BZ_OK && bzip2_.avail_out == 0;
    if (code == BZ_OK) return Status::Ok();
    if (code == BZ_STREAM_END) {
      EndStream();
      return Status::Ok();
    }
    if (code == BZ_MEM_ERROR) return DecoderWithoutMemory(file_.path(), Compression::kBzip2);
    return DamagedFile(file_.path(), Compression::kBzip2, file_.consumed_bytes() - bzip2_.avail_in,
                       code == BZ_DATA_ERROR_MAGIC ? "no bzip2 stream begins here"
                                                   : "a checksum or a code is wrong");
  }

  void EndStream() {
    if (in_stream_) BZ2_bzDecompressEnd(&bzip2_);
    in_stream_ = false;
  }

  RawFile& file_;
  std::vector<std::byte> block_;
  bz_stream bzip2_{};
  bool in_stream_ = false;
  bool flushing_ = false;
};

}  // namespace

std::unique_ptr<Decoder> MakeBzip2Decoder(RawFile& file) {
  return std::make_unique<Bzip2Decoder>(file);
}

}  // namespace internal
}  // namespace rhizome
