#include "storage/section/paged_sections.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

// A longer run of blocks is read in pieces of this size.
constexpr std::uint64_t kPieceBlocks = 256;

}  // namespace

Result<std::unique_ptr<PagedSections>> PagedSections::Create(const BlockFile& file) {
  std::unique_ptr<PagedSections> made(new PagedSections(file));
  const std::uint64_t blocks = file.footer().block_count;
  RHIZOME_ASSIGN_OR_RETURN(made->memory_, AlignedBuffer::Reserve(blocks * kSectionBlockBytes, 0));
  // With huge pages, each block that is read would take 2 MiB of memory.
  const auto memory = made->memory_.bytes();
  if (!memory.empty()) static_cast<void>(::madvise(memory.data(), memory.size(), MADV_NOHUGEPAGE));
  made->held_ = std::vector<std::atomic<std::uint64_t>>((blocks + 63) / 64);
  return made;
}

Result<std::span<const std::byte>> PagedSections::Fetch(std::uint64_t offset_bytes,
                                                        std::uint64_t size_bytes) const {
  const std::uint64_t covered = file_.footer().crc_table_offset;
  if (offset_bytes > covered || size_bytes > covered - offset_bytes)
    return Fail(Status::Corruption(fmt::format("{}: there are no {} bytes at offset {}",
                                               path().string(), size_bytes, offset_bytes)));
  if (size_bytes == 0) return std::span<const std::byte>();
  const std::uint64_t end = (offset_bytes + size_bytes - 1) / kSectionBlockBytes + 1;
  for (std::uint64_t block = offset_bytes / kSectionBlockBytes; block < end; ++block) {
    if (Holds(block)) continue;
    std::uint64_t last = block + 1;
    while (last < end && last - block < kPieceBlocks && !Holds(last)) ++last;
    RHIZOME_RETURN_IF_ERROR(Read(block, last - block));
  }
  return std::span<const std::byte>(memory_.bytes()).subspan(offset_bytes, size_bytes);
}

// Another thread may have read a block in the meantime and may use it already, so that a block is
// copied only if it is still missing.
Status PagedSections::Read(std::uint64_t first_block, std::uint64_t blocks) const {
  const std::uint64_t begin = first_block * kSectionBlockBytes;
  const std::uint64_t size =
      std::min(blocks * kSectionBlockBytes, file_.footer().crc_table_offset - begin);
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, file_.Read(begin, size));
  const MutexLock lock(mutex_);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = first_block + i;
    if (Holds(block)) continue;
    const std::uint64_t at = i * kSectionBlockBytes;
    std::memcpy(memory_.bytes().data() + begin + at, bytes.data() + at,
                std::min(kSectionBlockBytes, size - at));
    held_[block / 64].fetch_or(std::uint64_t{1} << (block % 64), std::memory_order_release);
  }
  return Status::Ok();
}

const std::byte* PagedSection::Elements(std::uint64_t first, std::uint64_t count) const {
  if (first > entry_.element_count || count > entry_.element_count - first)
    ThrowStatus(Status::Corruption(
        fmt::format("{}: section {} at offset {} has {} elements, but elements {} to {} are needed",
                    file_.path().string(), entry_.kind, entry_.offset_bytes, entry_.element_count,
                    first, first + count)));
  const auto bytes =
      file_.Fetch(entry_.offset_bytes + first * entry_.element_bytes, count * entry_.element_bytes);
  if (!bytes) ThrowStatus(bytes.error());
  return bytes->data();
}

std::uint64_t PagedSection::At(std::uint64_t i) const {
  const std::byte* const from = Elements(i, 1);
  std::uint64_t value = 0;
  std::memcpy(&value, from, entry_.element_bytes);  // little-endian, like the host
  if (value >= limit_)
    ThrowStatus(Status::Corruption(
        fmt::format("{}: section {} at offset {}, entry {}: {} is not below {}",
                    file_.path().string(), entry_.kind, entry_.offset_bytes, i, value, limit_)));
  return value;
}

}  // namespace internal
}  // namespace rhizome
