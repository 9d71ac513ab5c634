#include "cache/tables/table_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "cache/tables/row_table.h"
#include "storage/base/bytes.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/stored_file.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kMagic = "RZROWTAB";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 56;
constexpr std::size_t kHeaderCrcAt = 48;
constexpr std::string_view kInfix = ".checkpoint-";

struct Header {
  std::uint32_t version = 0;
  std::uint32_t block_bytes = 0;
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t number = 0;
  std::uint64_t progress_bytes = 0;
};

std::vector<std::byte> EncodeHeader(const TableShape& shape, const TableCheckpoint& checkpoint) {
  ByteWriter out;
  out.Bytes(std::as_bytes(std::span(kMagic)));
  out.Number(kVersion);
  out.Number(static_cast<std::uint32_t>(shape.block_bytes));
  out.Number(shape.rows);
  out.Number(shape.row_bytes);
  out.Number(checkpoint.number);
  out.Number(static_cast<std::uint64_t>(checkpoint.progress.size()));
  out.Number(Crc32c(out.bytes()));
  out.Number(std::uint32_t{0});
  return out.Take();
}

/// Reads a file from front to back and computes its CRC-32C.
class SequentialReader {
 public:
  explicit SequentialReader(ReadableFile& file) : file_(file) {}

  Status Read(std::span<std::byte> out) {
    std::span<std::byte> rest = out;
    while (!rest.empty()) {
      RHIZOME_ASSIGN_OR_RETURN(const std::size_t got, file_.ReadAt(offset_, rest));
      if (got == 0) return Damaged("it is truncated");
      rest = rest.subspan(got);
      offset_ += got;
    }
    crc_ = Crc32c(out, crc_);
    return Status::Ok();
  }

  Status Damaged(std::string_view why) const {
    return Status::Corruption(
        fmt::format("checkpoint '{}' is damaged: {}", file_.path().string(), why));
  }

  std::uint32_t crc() const { return crc_; }

 private:
  ReadableFile& file_;
  std::uint64_t offset_ = 0;
  std::uint32_t crc_ = 0;
};

Result<Header> ReadHeader(SequentialReader& reader, const Path& path) {
  std::array<std::byte, kHeaderBytes> bytes{};
  RHIZOME_RETURN_IF_ERROR(reader.Read(bytes));
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return Fail(reader.Damaged("it does not begin with RZROWTAB"));
  if (LoadLittle<std::uint32_t>(&bytes[kHeaderCrcAt]) !=
      Crc32c(std::span<const std::byte>(bytes).first(kHeaderCrcAt)))
    return Fail(reader.Damaged("its header does not have its checksum"));
  ByteReader fields(std::span<const std::byte>(bytes).subspan(kMagic.size()));
  Header header;
  header.version = fields.Number<std::uint32_t>("version");
  header.block_bytes = fields.Number<std::uint32_t>("block_bytes");
  header.rows = fields.Number<std::uint64_t>("rows");
  header.row_bytes = fields.Number<std::uint64_t>("row_bytes");
  header.number = fields.Number<std::uint64_t>("number");
  header.progress_bytes = fields.Number<std::uint64_t>("progress_bytes");
  if (header.version > kVersion) {
    return Fail(Status::Unsupported(
        fmt::format("checkpoint '{}' has format version {}, but this build reads up to {}",
                    path.string(), header.version, kVersion)));
  }
  return header;
}

}  // namespace

TableShape TableShape::Of(std::uint64_t rows, std::uint64_t row_bytes) {
  TableShape shape;
  shape.rows = rows;
  shape.row_bytes = row_bytes;
  shape.block_bytes = AlignUp(row_bytes, RowTable::kBlockBytes);
  shape.rows_per_block = shape.block_bytes / row_bytes;
  shape.blocks = (rows + shape.rows_per_block - 1) / shape.rows_per_block;
  return shape;
}

Path TableRowsPath(const Path& folder, const std::string& name) {
  return folder / (name + ".rows");
}

Path TableCheckpointPath(const Path& folder, const std::string& name, std::uint64_t number) {
  return folder / fmt::format("{}{}{}", name, kInfix, number);
}

std::uint64_t TableCheckpointBytes(const TableShape& shape) {
  return kHeaderBytes + 4 * shape.blocks + (shape.blocks + 7) / 8 + 4;
}

Result<std::vector<std::uint64_t>> ListTableCheckpoints(FileSystem& fs, const Path& folder,
                                                        const std::string& name) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, fs.List(folder));
  std::vector<std::uint64_t> numbers;
  const std::string prefix = name + std::string(kInfix);
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.starts_with(prefix)) continue;
    const std::string_view digits = std::string_view(entry.name).substr(prefix.size());
    std::uint64_t number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    if (error == std::errc() && stop == end && number > 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Status WriteTableCheckpoint(FileSystem& fs, const Path& folder, const std::string& name,
                            const TableShape& shape, const TableCheckpoint& checkpoint) {
  RHIZOME_ASSIGN_OR_RETURN(const auto file,
                           fs.CreateFile(TableCheckpointPath(folder, name, checkpoint.number)));
  std::uint32_t crc = 0;
  const auto append = [&](std::span<const std::byte> bytes) {
    crc = Crc32c(bytes, crc);
    return file->Append(bytes);
  };
  RHIZOME_RETURN_IF_ERROR(append(EncodeHeader(shape, checkpoint)));
  RHIZOME_RETURN_IF_ERROR(append(checkpoint.progress));
  RHIZOME_RETURN_IF_ERROR(append(std::as_bytes(std::span(checkpoint.crcs))));
  RHIZOME_RETURN_IF_ERROR(append(checkpoint.slots.bytes()));
  RHIZOME_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(&crc, 1))));
  RHIZOME_RETURN_IF_ERROR(file->Sync());
  RHIZOME_RETURN_IF_ERROR(file->Close());
  return fs.SyncDirectory(folder);
}

Result<TableCheckpoint> ReadTableCheckpoint(FileSystem& fs, const Path& folder,
                                            const std::string& name, const TableShape& shape,
                                            std::uint64_t number) {
  const Path path = TableCheckpointPath(folder, name, number);
  RHIZOME_ASSIGN_OR_RETURN(const auto file, OpenStored(fs, path));
  SequentialReader reader(*file);
  RHIZOME_ASSIGN_OR_RETURN(const Header header, ReadHeader(reader, path));
  const bool same = header.rows == shape.rows && header.row_bytes == shape.row_bytes &&
                    header.block_bytes == shape.block_bytes;
  const std::uint64_t without_progress = TableCheckpointBytes(shape);
  if (same && (file->size_bytes() < without_progress ||
               header.progress_bytes != file->size_bytes() - without_progress))
    return Fail(reader.Damaged(fmt::format("it has {} bytes", file->size_bytes())));
  if (!same) {
    return Fail(Status::InvalidArgument(fmt::format(
        "checkpoint '{}' is of a table of {} rows of {} bytes, not of {} rows of {} bytes",
        path.string(), header.rows, header.row_bytes, shape.rows, shape.row_bytes)));
  }
  TableCheckpoint checkpoint{.number = number,
                             .slots = BlockBits(shape.blocks),
                             .crcs = std::vector<std::uint32_t>(shape.blocks),
                             .progress = std::vector<std::byte>(header.progress_bytes)};
  RHIZOME_RETURN_IF_ERROR(reader.Read(checkpoint.progress));
  RHIZOME_RETURN_IF_ERROR(reader.Read(std::as_writable_bytes(std::span(checkpoint.crcs))));
  RHIZOME_RETURN_IF_ERROR(reader.Read(checkpoint.slots.bytes()));
  const std::uint32_t expected = reader.crc();
  std::uint32_t stored = 0;
  RHIZOME_RETURN_IF_ERROR(reader.Read(std::as_writable_bytes(std::span(&stored, 1))));
  if (stored != expected || header.version == 0 || header.number != number)
    return Fail(reader.Damaged("its bytes do not have its checksum"));
  return checkpoint;
}

}  // namespace internal
}  // namespace rhizome
