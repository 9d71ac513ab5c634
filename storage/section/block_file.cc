#include "storage/section/block_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"
#include "storage/io/io_completion.h"

namespace rhizome {
inline namespace internal {
namespace {

// Larger pieces are not read any faster; with pieces of this size, checking overlaps with reading.
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;

}  // namespace

Result<std::unique_ptr<BlockFile>> BlockFile::Open(FileSystem& fs, const Path& path, FileKind kind,
                                                   const StoreId& store_id, bool direct) {
  std::unique_ptr<BlockFile> opened(new BlockFile());
  // The tables are read only once, so they go through the page cache, without alignment.
  RHIZOME_ASSIGN_OR_RETURN(auto tables, fs.OpenRead(path));
  Status status = opened->ReadTables(*tables, kind, store_id);
  if (!status.ok() && status.code() != StatusCode::kIoError)
    status = status.WithContext(path.string());
  RHIZOME_RETURN_IF_ERROR(std::move(status));
  opened->file_ = std::move(tables);
  if (direct) {
    RHIZOME_ASSIGN_OR_RETURN(opened->file_, fs.OpenRead(path, {.direct = true}));
    if (opened->file_->size_bytes() != opened->footer_.file_bytes)
      return Fail(Status::Corruption(
          fmt::format("{}: its length changed while it was open", path.string())));
  }
  return opened;
}

Status BlockFile::ReadTables(ReadableFile& file, FileKind kind, const StoreId& store_id) {
  const std::uint64_t size = file.size_bytes();
  if (size < sizeof(SectionPreamble) + sizeof(SectionFooter)) {
    return Status::Corruption(
        fmt::format("offset {0}: {0} bytes are too few for a section file (truncated)", size));
  }
  std::array<std::byte, sizeof(SectionPreamble)> preamble;
  std::array<std::byte, sizeof(SectionFooter)> footer;
  RHIZOME_RETURN_IF_ERROR(ReadExactly(file, 0, preamble));
  RHIZOME_RETURN_IF_ERROR(ReadExactly(file, size - footer.size(), footer));
  RHIZOME_ASSIGN_OR_RETURN(footer_, CheckSectionEnds(preamble, footer, size, kind, store_id));
  std::vector<std::byte> table(footer_.block_count * sizeof(std::uint32_t));
  RHIZOME_RETURN_IF_ERROR(ReadExactly(file, footer_.crc_table_offset, table));
  RHIZOME_ASSIGN_OR_RETURN(block_crcs_, CheckBlockTable(footer_, table));

  crc32c_ = Crc32cOfBlocks(block_crcs_, kSectionBlockBytes, footer_.crc_table_offset);
  crc32c_ = Crc32cCombine(crc32c_, footer_.crc_table_crc, table.size());
  crc32c_ = Crc32cCombine(crc32c_, Crc32c(footer), footer.size());

  // The section table and the preamble are in blocks whose checksums must be correct, too.
  const std::uint64_t begin = AlignDown(footer_.table_offset, kSectionBlockBytes);
  std::vector<std::byte> last(footer_.crc_table_offset - begin);
  RHIZOME_RETURN_IF_ERROR(ReadExactly(file, begin, last));
  RHIZOME_RETURN_IF_ERROR(CheckSectionBlocks(block_crcs_, footer_.crc_table_offset, begin, last));
  std::vector<std::byte> first(std::min(kSectionBlockBytes, footer_.crc_table_offset));
  RHIZOME_RETURN_IF_ERROR(ReadExactly(file, 0, first));
  RHIZOME_RETURN_IF_ERROR(CheckSectionBlocks(block_crcs_, footer_.crc_table_offset, 0, first));
  RHIZOME_ASSIGN_OR_RETURN(
      entries_, CheckSectionTable(footer_, std::span(last).subspan(footer_.table_offset - begin)));
  return {};
}

BlockFile::Blocks BlockFile::BlocksOf(std::uint64_t offset_bytes, std::uint64_t size_bytes) const {
  const std::uint64_t begin = AlignDown(offset_bytes, kSectionBlockBytes);
  std::uint64_t end = AlignUp(offset_bytes + size_bytes, kSectionBlockBytes);
  if (!direct()) end = std::min(end, this->size_bytes());
  return {begin, end - begin};
}

Status BlockFile::Check(const Blocks& blocks, std::span<const std::byte> bytes) const {
  RHIZOME_CHECK(bytes.size() >= blocks.size_bytes);
  RHIZOME_DCHECK(blocks.offset_bytes % kSectionBlockBytes == 0);
  const Status status = CheckSectionBlocks(block_crcs_, footer_.crc_table_offset,
                                           blocks.offset_bytes, bytes.first(blocks.size_bytes));
  return status.ok() ? status : status.WithContext(path().string());
}

Result<std::vector<std::byte>> BlockFile::Read(std::uint64_t offset_bytes,
                                               std::uint64_t size_bytes) const {
  if (offset_bytes > footer_.crc_table_offset ||
      size_bytes > footer_.crc_table_offset - offset_bytes) {
    return Fail(Status::Corruption(fmt::format("{}: there are no {} bytes at offset {}",
                                               path().string(), size_bytes, offset_bytes)));
  }
  if (size_bytes == 0) return std::vector<std::byte>();
  const Blocks blocks = BlocksOf(offset_bytes, size_bytes);
  RHIZOME_ASSIGN_OR_RETURN(const auto memory, AlignedBuffer::Allocate(blocks.size_bytes));
  ReadRequest request{
      .file = file_.get(), .offset_bytes = blocks.offset_bytes, .buffer = memory.bytes()};
  PendingRead pending;
  if (BeginRead(request, pending) == ReadStep::kContinue) ReadInline(pending, {});
  RHIZOME_RETURN_IF_ERROR(std::move(request.status));
  RHIZOME_RETURN_IF_ERROR(Check(blocks, memory.bytes()));
  const auto from = memory.bytes().subspan(offset_bytes - blocks.offset_bytes, size_bytes);
  return std::vector<std::byte>(from.begin(), from.end());
}

Status BlockFile::Load(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out,
                       const IoQueueOptions& io) const {
  RHIZOME_CHECK(begin % kSectionBlockBytes == 0);
  RHIZOME_DCHECK(begin <= end && out.size() >= BlocksOf(begin, end - begin).size_bytes);
  std::vector<ReadRequest> requests;
  for (std::uint64_t at = begin; at < end; at += kPieceBytes) {
    const Blocks blocks = BlocksOf(at, std::min(kPieceBytes, end - at));
    requests.push_back({.file = file_.get(),
                        .offset_bytes = blocks.offset_bytes,
                        .buffer = out.subspan(at - begin, blocks.size_bytes)});
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto queue, IoQueue::Open(io));
  Status failed;
  std::size_t submitted = 0;
  while (submitted < requests.size() || queue->in_flight() > 0) {
    if (failed.ok() && submitted < requests.size()) {
      RHIZOME_ASSIGN_OR_RETURN(const std::size_t taken,
                               queue->Submit(std::span(requests).subspan(submitted)));
      submitted += taken;
    } else if (queue->in_flight() == 0) {
      break;
    }
    RHIZOME_ASSIGN_OR_RETURN(const auto done, queue->Reap(1));
    for (const ReadRequest* const request : done) {
      if (!failed.ok()) continue;
      failed = request->status.ok()
                   ? Check({request->offset_bytes, request->buffer.size()}, request->buffer)
                   : request->status;
    }
  }
  return failed;
}

}  // namespace internal
}  // namespace rhizome
