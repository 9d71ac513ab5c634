#include <lzma.h>

#include "index/input/decoder.h"

namespace rhizome {
inline namespace internal {
namespace {

// A decoder with a dictionary of kMaxWindowBytes needs a little more; the next larger size of a
// dictionary is 1.5 times as large.
constexpr std::uint64_t kMaxXzBytes = kMaxWindowBytes + (std::uint64_t{1} << 20);

class XzDecoder final : public Decoder {
 public:
  explicit XzDecoder(RawFile& file) : file_(file), block_(kDecoderBlockBytes) {}
  ~XzDecoder() override { lzma_end(&lzma_); }

  Result<std::size_t> Read(std::span<std::byte> out) override {
    RHIZOME_RETURN_IF_ERROR(Start());
    lzma_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    lzma_.avail_out = out.size();
    while (lzma_.avail_out == out.size() && !out.empty() && !ended_) {
      if (lzma_.avail_in == 0 && !at_end_of_file_) RHIZOME_RETURN_IF_ERROR(Refill());
      // At the end of the file liblzma checks that the last stream is whole.
      RHIZOME_RETURN_IF_ERROR(Check(lzma_code(&lzma_, at_end_of_file_ ? LZMA_FINISH : LZMA_RUN)));
    }
    return out.size() - lzma_.avail_out;
  }

 private:
  Status Start() {
    if (started_) return Status::Ok();
    started_ = true;
    return Check(
        lzma_stream_decoder(&lzma_, kMaxXzBytes, LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK));
  }

  Status Refill() {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, file_.Read(block_));
    at_end_of_file_ = bytes == 0;
    lzma_.next_in = reinterpret_cast<const std::uint8_t*>(block_.data());
    lzma_.avail_in = bytes;
    return Status::Ok();
  }

  Status Check(lzma_ret code) {
    switch (code) {
      case LZMA_OK:
        return Status::Ok();
      case LZMA_STREAM_END:
        ended_ = true;
        return Status::Ok();
      case LZMA_BUF_ERROR:
        return TruncatedFile(file_.path(), Compression::kXz);
      case LZMA_MEMLIMIT_ERROR:
        return LargeWindow(file_.path(), Compression::kXz);
      case LZMA_MEM_ERROR:
        return DecoderWithoutMemory(file_.path(), Compression::kXz);
      case LZMA_OPTIONS_ERROR:
      case LZMA_UNSUPPORTED_CHECK:
        return Damaged("it uses a filter or a checksum that liblzma does not know");
      default:
        return Damaged("a checksum or a code is wrong");
    }
  }

  Status Damaged(std::string_view why) const {
    return DamagedFile(file_.path(), Compression::kXz, file_.consumed_bytes() - lzma_.avail_in,
                       why);
  }

  RawFile& file_;
  std::vector<std::byte> block_;
  lzma_stream lzma_ = LZMA_STREAM_INIT;
  bool started_ = false;
  bool at_end_of_file_ = false;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Decoder> MakeXzDecoder(RawFile& file) { return std::make_unique<XzDecoder>(file); }

}  // namespace internal
}  // namespace rhizome
