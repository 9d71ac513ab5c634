#include "storage/section/section_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/section/block_file.h"
#include "storage/section/paged_sections.h"
#include "storage/section/section_format.h"

namespace rhizome {
inline namespace internal {
namespace {

// Smaller pieces are collected up to this size before they are passed to the sink.
constexpr std::size_t kWriteBufferBytes = std::size_t{64} << 10;

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

/// Writes a section file in one pass:
///   1. the constructor writes the preamble;
///   2. TryBegin pads to the alignment and begins a section, Append writes its bytes (Put collects
///      small pieces; Write passes them on and computes the checksums of their blocks);
///   3. TryFinish writes the section table, the checksums of the blocks, and the footer.
/// Memory: 32 bytes per section and 4 bytes per block of 4 KiB; the sections themselves are
/// streamed. Once a call has failed, every later call fails too.
class SectionFileWriter::Impl {
 public:
  Impl(ByteSink& sink, FileKind kind, const StoreId& store_id) : sink_(sink) {
    buffer_.reserve(kWriteBufferBytes);
    SectionPreamble preamble = {};
    preamble.magic = kSectionMagic;
    preamble.version = kSectionVersion;
    preamble.file_kind = kind;
    preamble.store_id = store_id;
    failed_ = Put(BytesOf(preamble));
  }

  Status BeginSection(std::uint32_t kind, std::uint32_t element_bytes) {
    return Keep(failed_.ok() ? TryBegin(kind, element_bytes) : failed_);
  }

  Status Append(std::span<const std::byte> bytes) {
    if (!failed_.ok()) return failed_;
    if (!open_) return Keep(Status::InvalidArgument("Append without BeginSection"));
    return Keep(Put(bytes));
  }

  Status Finish() { return Keep(failed_.ok() ? TryFinish() : failed_); }

 private:
  Status Keep(Status status) {
    failed_ = std::move(status);
    return failed_;
  }

  Status TryBegin(std::uint32_t kind, std::uint32_t element_bytes) {
    const auto same = [&](const SectionEntry& entry) { return entry.kind == kind; };
    const bool width_fits =
        element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
    if (kind == 0 || !width_fits || entries_.size() == kMaxSections || finished_ ||
        std::any_of(entries_.begin(), entries_.end(), same)) {
      return Status::InvalidArgument(fmt::format(
          "cannot begin section {} of {}-byte elements: kinds must be unique and not 0, elements "
          "must have 1, 2, 4 or 8 bytes, and there can be at most {} sections",
          kind, element_bytes, kMaxSections));
    }
    RHIZOME_RETURN_IF_ERROR(EndSection());
    entries_.push_back({kind, element_bytes, offset_, 0, 0});
    open_ = true;
    return {};
  }

  /// Sets the element count of the open section, and pads up to the next section or the section
  /// table.
  Status EndSection() {
    if (open_) {
      SectionEntry& entry = entries_.back();
      const std::uint64_t bytes = offset_ - entry.offset_bytes;
      if (bytes % entry.element_bytes != 0) {
        return Status::InvalidArgument(
            fmt::format("section {} has {} bytes, which is not a multiple of the element size {}",
                        entry.kind, bytes, entry.element_bytes));
      }
      entry.element_count = bytes / entry.element_bytes;
      open_ = false;
    }
    constexpr std::array<std::byte, kSectionAlignment> kZeros = {};
    return Put(std::span(kZeros).first(AlignUp(offset_, kSectionAlignment) - offset_));
  }

  Status TryFinish() {
    if (finished_) return Status::InvalidArgument("Finish was called before");
    RHIZOME_RETURN_IF_ERROR(EndSection());
    finished_ = true;
    SectionFooter footer = {};
    RHIZOME_DCHECK(offset_ % kSectionAlignment == 0);
    footer.table_offset = offset_;
    for (const SectionEntry& entry : entries_) RHIZOME_RETURN_IF_ERROR(Put(BytesOf(entry)));
    RHIZOME_RETURN_IF_ERROR(Flush());
    if (offset_ % kSectionBlockBytes != 0) block_crcs_.push_back(block_crc_);

    const auto crcs = std::as_bytes(std::span(block_crcs_));
    RHIZOME_DCHECK(written_ == offset_ &&
                   block_crcs_.size() == AlignUp(offset_, kSectionBlockBytes) / kSectionBlockBytes);
    footer.crc_table_offset = offset_;
    footer.block_count = block_crcs_.size();
    footer.file_bytes = offset_ + crcs.size() + sizeof(footer);
    footer.section_count = static_cast<std::uint32_t>(entries_.size());
    footer.block_bytes = kSectionBlockBytes;
    footer.crc_table_crc = Crc32c(crcs);
    footer.version = kSectionVersion;
    footer.magic = kSectionEndMagic;
    footer.footer_crc = Crc32c(BytesOf(footer).first(offsetof(SectionFooter, footer_crc)));
    RHIZOME_RETURN_IF_ERROR(sink_.Append(crcs));
    return sink_.Append(BytesOf(footer));
  }

  Status Put(std::span<const std::byte> bytes) {
    offset_ += bytes.size();
    if (buffer_.size() + bytes.size() > kWriteBufferBytes) {
      RHIZOME_RETURN_IF_ERROR(Flush());
      if (bytes.size() >= kWriteBufferBytes) return Write(bytes);
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    RHIZOME_DCHECK(offset_ == written_ + buffer_.size());
    return {};
  }

  Status Flush() {
    RHIZOME_RETURN_IF_ERROR(Write(buffer_));
    buffer_.clear();
    return {};
  }

  Status Write(std::span<const std::byte> bytes) {
    if (bytes.empty()) return {};
    RHIZOME_RETURN_IF_ERROR(sink_.Append(bytes));
    while (!bytes.empty()) {
      const std::uint64_t room = kSectionBlockBytes - written_ % kSectionBlockBytes;
      const auto part = bytes.first(std::min<std::uint64_t>(room, bytes.size()));
      block_crc_ = Crc32c(part, block_crc_);
      written_ += part.size();
      bytes = bytes.subspan(part.size());
      if (part.size() < room) continue;
      block_crcs_.push_back(std::exchange(block_crc_, 0));
    }
    RHIZOME_DCHECK(block_crcs_.size() == written_ / kSectionBlockBytes);
    return {};
  }

  ByteSink& sink_;
  std::uint64_t offset_ = 0;   // offset in the file of the next byte, after the buffered ones
  std::uint64_t written_ = 0;  // bytes that were passed to the sink and checksummed
  std::vector<std::byte> buffer_;
  std::vector<SectionEntry> entries_;
  std::vector<std::uint32_t> block_crcs_;
  std::uint32_t block_crc_ = 0;  // CRC of the incomplete current block
  bool open_ = false;
  bool finished_ = false;
  Status failed_;
};

SectionFileWriter::SectionFileWriter(ByteSink& sink, FileKind kind, const StoreId& store_id)
    : impl_(std::make_unique<Impl>(sink, kind, store_id)) {}
SectionFileWriter::~SectionFileWriter() = default;
Status SectionFileWriter::BeginSection(std::uint32_t kind, std::uint32_t element_bytes) try {
  return impl_->BeginSection(kind, element_bytes);
} catch (...) {
  return StatusOfException();
}
Status SectionFileWriter::Append(std::span<const std::byte> bytes) {
  return Guarded([&] { return impl_->Append(bytes); });
}
Status SectionFileWriter::Finish() {
  return Guarded([&] { return impl_->Finish(); });
}

SectionFile::SectionFile() = default;
SectionFile::SectionFile(SectionFile&&) noexcept = default;
SectionFile& SectionFile::operator=(SectionFile&&) noexcept = default;
SectionFile::~SectionFile() = default;

Result<SectionFile> SectionFile::Load(FileSystem& fs, const Path& path, FileKind kind,
                                      const StoreId& store_id, const LoadOptions& options) try {
  SectionFile file;
  file.path_ = path;
  RHIZOME_ASSIGN_OR_RETURN(file.blocks_, BlockFile::Open(fs, path, kind, store_id, options.direct));
  file.size_bytes_ = file.blocks_->size_bytes();
  if (options.crc32c && file.blocks_->crc32c() != *options.crc32c) {
    return Fail(Status::Corruption(fmt::format(
        "'{}' is not the file that the manifest names: its CRC-32C differs", path.string())));
  }
  for (const SectionEntry& entry : file.blocks_->entries()) {
    file.entries_.push_back(
        {entry.kind, entry.element_bytes, entry.offset_bytes, entry.element_count, nullptr});
  }
  if (options.paged) {
    RHIZOME_ASSIGN_OR_RETURN(file.pages_, PagedSections::Create(*file.blocks_));
    return file;
  }
  RHIZOME_RETURN_IF_ERROR(options.leave.empty() ? file.LoadAll(options.io)
                                                : file.LoadSome(options.leave, options.io));
  return file;
} catch (...) {
  return Fail(StatusOfException());
}

Status SectionFile::LoadAll(const IoQueueOptions& io) {
  const SectionFooter& footer = blocks_->footer();
  RHIZOME_ASSIGN_OR_RETURN(
      auto memory, AlignedBuffer::Allocate(AlignUp(footer.crc_table_offset, kSectionBlockBytes)));
  RHIZOME_RETURN_IF_ERROR(blocks_->Load(0, footer.crc_table_offset, memory.bytes(), io));
  const Status padding = CheckSectionPadding(blocks_->entries(), footer, memory.bytes());
  if (!padding.ok()) return padding.WithContext(path_.string());
  for (Entry& entry : entries_) entry.data = memory.bytes().data() + entry.offset_bytes;
  buffers_.push_back(std::move(memory));
  blocks_.reset();
  return {};
}

// Loads each run of adjacent sections that are not left on disk into one buffer.
Status SectionFile::LoadSome(std::span<const std::uint32_t> leave, const IoQueueOptions& io) {
  const auto left = [&](const Entry& entry) {
    return std::find(leave.begin(), leave.end(), entry.kind) != leave.end();
  };
  for (std::size_t i = 0; i < entries_.size();) {
    if (left(entries_[i])) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < entries_.size() && !left(entries_[end])) ++end;
    const std::uint64_t first_byte = AlignDown(entries_[i].offset_bytes, kSectionBlockBytes);
    const Entry& last = entries_[end - 1];
    const std::uint64_t end_byte = last.offset_bytes + last.count * last.element_bytes;
    RHIZOME_ASSIGN_OR_RETURN(
        auto memory, AlignedBuffer::Allocate(std::max(
                         AlignUp(end_byte, kSectionBlockBytes) - first_byte, kSectionBlockBytes)));
    RHIZOME_RETURN_IF_ERROR(blocks_->Load(first_byte, end_byte, memory.bytes(), io));
    for (; i < end; ++i)
      entries_[i].data = memory.bytes().data() + (entries_[i].offset_bytes - first_byte);
    buffers_.push_back(std::move(memory));
  }
  return {};
}

Result<SectionFile> SectionFile::Parse(std::vector<std::byte> bytes, const Path& path,
                                       FileKind kind, const StoreId& store_id) try {
  const auto entries = CheckSectionFile(bytes, kind, store_id);
  if (!entries) return Fail(entries.error().WithContext(path.string()));
  SectionFile file;
  file.path_ = path;
  file.size_bytes_ = bytes.size();
  file.bytes_ =
      std::move(bytes);  // operator new aligns to 16 and sections to 64: fine for elements
  for (const SectionEntry& entry : *entries) {
    file.entries_.push_back({entry.kind, entry.element_bytes, entry.offset_bytes,
                             entry.element_count, file.bytes_.data() + entry.offset_bytes});
  }
  return file;
} catch (...) {
  return Fail(StatusOfException());
}

const SectionFile::Entry* SectionFile::Find(std::uint32_t kind) const {
  for (const Entry& entry : entries_) {
    if (entry.kind == kind) return &entry;
  }
  return nullptr;
}

Result<const PagedSection*> SectionFile::Page(std::uint32_t kind, std::uint64_t expected_count,
                                              std::uint64_t limit) const {
  RHIZOME_CHECK(paged());
  RHIZOME_RETURN_IF_ERROR(Expect(kind, ElementBytes(kind), expected_count));
  const Entry& entry = *Find(kind);
  return &pages_->Page({entry.kind, entry.element_bytes, entry.offset_bytes, entry.count, 0},
                       limit);
}

bool SectionFile::Has(std::uint32_t kind) const { return Find(kind) != nullptr; }

std::uint32_t SectionFile::ElementBytes(std::uint32_t kind) const {
  const Entry* const entry = Find(kind);
  return entry == nullptr ? 0 : entry->element_bytes;
}

std::uint64_t SectionFile::Count(std::uint32_t kind) const {
  const Entry* const entry = Find(kind);
  return entry == nullptr ? 0 : entry->count;
}

std::vector<std::uint32_t> SectionFile::Kinds() const {
  std::vector<std::uint32_t> kinds;
  for (const Entry& entry : entries_) kinds.push_back(entry.kind);
  return kinds;
}

Status SectionFile::Expect(std::uint32_t kind, std::uint32_t element_bytes,
                           std::uint64_t expected_count) const {
  const Entry* const entry = Find(kind);
  if (entry == nullptr)
    return Status::Corruption(fmt::format("{}: section {} is missing", path_.string(), kind));
  if (entry->element_bytes == element_bytes && entry->count == expected_count) return {};
  return Status::Corruption(
      fmt::format("{}: section {} at offset {} has {} elements of {} bytes, expected {} of {}",
                  path_.string(), kind, entry->offset_bytes, entry->count, entry->element_bytes,
                  expected_count, element_bytes));
}

bool SectionFile::Resident(std::uint32_t kind) const {
  const Entry* const entry = Find(kind);
  return entry != nullptr && entry->data != nullptr;
}

std::uint64_t SectionFile::OffsetBytes(std::uint32_t kind) const {
  const Entry* const entry = Find(kind);
  return entry == nullptr ? 0 : entry->offset_bytes;
}

std::uint64_t SectionFile::SectionBytes(std::uint32_t kind) const {
  const Entry* const entry = Find(kind);
  return entry == nullptr ? 0 : entry->count * entry->element_bytes;
}

Result<std::vector<std::byte>> SectionFile::ReadBytes(std::uint64_t offset_bytes,
                                                      std::uint64_t size_bytes) const {
  if (blocks_ == nullptr)
    return Fail(Status::InvalidArgument(fmt::format(
        "{}: the file is in memory, so nothing can be read from disk", path_.string())));
  return blocks_->Read(offset_bytes, size_bytes);
}

Result<std::span<const std::byte>> SectionFile::RawSection(std::uint32_t kind,
                                                           std::uint32_t element_bytes,
                                                           std::uint64_t expected_count) const {
  RHIZOME_RETURN_IF_ERROR(Expect(kind, element_bytes, expected_count));
  const Entry* const entry = Find(kind);
  if (entry->data == nullptr && paged())
    return pages_->Fetch(entry->offset_bytes, entry->count * entry->element_bytes);
  if (entry->data == nullptr)
    return Fail(Status::InvalidArgument(
        fmt::format("{}: section {} was not loaded into memory", path_.string(), kind)));
  return std::span(entry->data, entry->count * entry->element_bytes);
}

}  // namespace internal
}  // namespace rhizome
