#include "index/input/text_sample.h"

#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "index/input/input_stream.h"
#include "index/input/text_sniffer.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kCompressedSampleBytes = std::size_t{4} << 20;

/// Removes lines that may be incomplete from both ends.
std::string WholeLines(std::string_view text, bool at_start, bool at_end) {
  if (!at_start) {
    const std::size_t first = text.find('\n');
    text.remove_prefix(first == text.npos ? text.size() : first + 1);
  }
  if (!at_end) {
    const std::size_t last = text.rfind('\n');
    text = text.substr(0, last == text.npos ? 0 : last + 1);
  }
  return std::string(text);
}

Result<TextSample> SampleStream(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  std::string text(kCompressedSampleBytes, '\0');
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes,
                           stream->ReadFull(std::as_writable_bytes(std::span(text))));
  text.resize(bytes);
  TextSample sample;
  sample.file_bytes = stream->total_bytes();
  sample.whole = bytes < kCompressedSampleBytes;
  sample.bytes = bytes;
  if (!sample.whole && stream->consumed_bytes() > 0) {
    sample.bytes = static_cast<std::uint64_t>(static_cast<double>(bytes) *
                                              static_cast<double>(sample.file_bytes) /
                                              static_cast<double>(stream->consumed_bytes()));
  }
  sample.pieces.push_back(WholeLines(text, true, sample.whole));
  return sample;
}

}  // namespace

Result<bool> IsCompressed(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const FileHead head, ReadHead(fs, path, kFormatBytes));
  return head.compression != Compression::kNone;
}

Result<TextSample> SampleText(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  const std::uint64_t total = stream->total_bytes();
  RHIZOME_ASSIGN_OR_RETURN(const bool compressed, IsCompressed(fs, path));
  if (compressed || total <= kSamples * kSampleBytes) return SampleStream(fs, path);
  RHIZOME_ASSIGN_OR_RETURN(auto file, fs.OpenRead(std::filesystem::canonical(path)));
  TextSample sample;
  sample.bytes = sample.file_bytes = total;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::uint64_t offset = (total - kSampleBytes) / (kSamples - 1) * i;
    std::string text(kSampleBytes, '\0');
    RHIZOME_RETURN_IF_ERROR(ReadExactly(*file, offset, std::as_writable_bytes(std::span(text))));
    sample.pieces.push_back(WholeLines(text, offset == 0, false));
  }
  return sample;
}

}  // namespace internal
}  // namespace rhizome
