#include "index/ingest/held_out_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <utility>

#include "index/input/table_writer.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kFrameBytes = std::size_t{256} << 10;  // of lines
constexpr int kLevel = 3;

}  // namespace

Result<HeldOutFile> HeldOutFile::Create(SpillSpace* space) {
  HeldOutFile file;
  if (space == nullptr) return file;
  RHIZOME_ASSIGN_OR_RETURN(file.spilled_, SpillWriter::Create(*space, kFrameBytes));
  return file;
}

Status HeldOutFile::AddLine(std::span<const std::string_view> fields) {
  const std::size_t begin = lines_.size();
  for (const std::string_view field : fields) {
    if (lines_.size() > begin) lines_ += '\t';
    const Status added = AppendField(field, TableForm::kTabs, lines_);
    if (added.ok()) continue;
    lines_.resize(begin);
    return Status::InvalidArgument(
        fmt::format("an edge that is held out has a field with a tab, a line break, or a blank at "
                    "an end, which a tab-separated file cannot have: \"{}\"; change it, or skip "
                    "its column with '-'",
                    field.substr(0, 100)));
  }
  lines_ += '\n';
  return lines_.size() < kFrameBytes ? Status::Ok() : Compress();
}

// A zstd file is a sequence of frames, so that each piece of lines is compressed by itself.
Status HeldOutFile::Compress() {
  if (lines_.empty()) return Status::Ok();
  std::vector<std::byte> frame(ZSTD_compressBound(lines_.size()));
  const std::size_t size =
      ZSTD_compress(frame.data(), frame.size(), lines_.data(), lines_.size(), kLevel);
  if (ZSTD_isError(size) != 0)
    return Status::OutOfMemory(
        fmt::format("zstd cannot compress lines: {}", ZSTD_getErrorName(size)));
  frame.resize(size);
  lines_.clear();
  if (spilled_) return spilled_->Append(frame);
  frames_.insert(frames_.end(), frame.begin(), frame.end());
  return Status::Ok();
}

Status HeldOutFile::Write(const Path& path) {
  RHIZOME_RETURN_IF_ERROR(Compress());
  RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  if (!spilled_) {
    RHIZOME_RETURN_IF_ERROR(file.Append(frames_));
    std::vector<std::byte>().swap(frames_);
    return file.Commit();
  }
  RHIZOME_ASSIGN_OR_RETURN(const SpillFile spilled, spilled_->Finish());
  RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(spilled, /*ahead=*/false));
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto block, reader.Next());
    if (block.empty()) return file.Commit();
    RHIZOME_RETURN_IF_ERROR(file.Append(block));
  }
}

}  // namespace internal
}  // namespace rhizome
