// The implementations of RowSource: .npy files, Zarr arrays, columns in memory, and a concatenation
// of several sources. OpenRows chooses by the kind of the file.

#include "index/ingest/row_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "index/input/npy.h"
#include "index/input/zip_member.h"
#include "storage/array/zarr_source.h"

namespace rhizome {
namespace {

class NpyRows final : public RowSource {
 public:
  explicit NpyRows(std::unique_ptr<NpyReader> reader) : reader_(std::move(reader)) {
    rows = reader_->header().rows();
    dim = reader_->header().dim();
    dtype = reader_->header().dtype;
  }
  Status Read(std::span<std::byte> out) override { return reader_->Read(out); }
  Status Finish() override { return reader_->Finish(); }
  std::uint64_t file_bytes() const override { return reader_->stream().total_bytes(); }

 private:
  std::unique_ptr<NpyReader> reader_;
};

class ZarrRows final : public RowSource {
 public:
  explicit ZarrRows(std::unique_ptr<ZarrSource> source) : source_(std::move(source)) {
    rows = source_->format().rows;
    dim = source_->format().dim;
    dtype = source_->format().dtype;
  }

  Status Read(std::span<std::byte> out) override {
    while (!out.empty()) {
      if (taken_ == strip_.size()) {
        if (next_ == source_->format().strips())
          return Status::InvalidArgument("no more rows of a Zarr array");
        strip_.resize(source_->RowsInStrip(next_) * source_->format().row_bytes());
        RHIZOME_RETURN_IF_ERROR(source_->ReadStrip(next_++, strip_));
        taken_ = 0;
      }
      const std::size_t bytes = std::min(out.size(), strip_.size() - taken_);
      std::memcpy(out.data(), strip_.data() + taken_, bytes);
      taken_ += bytes;
      out = out.subspan(bytes);
    }
    return Status::Ok();
  }
  std::uint64_t memory_bytes() const override {
    const ZarrSourceFormat& format = source_->format();
    // While an index is decoded, it is in memory twice: as read, and sorted.
    const std::uint64_t index_bytes = format.index_bytes() + 2 * format.index.size_bytes();
    return std::min(format.rows, format.chunk_rows) * format.row_bytes() +
           2 * format.chunk_bytes() + (format.sharded ? index_bytes : 0);
  }

 private:
  std::unique_ptr<ZarrSource> source_;
  std::vector<std::byte> strip_;
  std::size_t taken_ = 0;
  std::uint64_t next_ = 0;
};

template <typename T>
class HeldColumn final : public RowSource {
 public:
  explicit HeldColumn(std::shared_ptr<const std::vector<T>> values) : values_(std::move(values)) {
    rows = values_->size();
    dim = 1;
    dtype = sizeof(T) == 1 ? DataType::kUint8 : DataType::kInt64;
  }
  Status Read(std::span<std::byte> out) override {
    const auto bytes = std::as_bytes(std::span(*values_));
    std::memcpy(out.data(), bytes.data() + taken_, out.size());
    taken_ += out.size();
    return Status::Ok();
  }

 private:
  std::shared_ptr<const std::vector<T>> values_;
  std::size_t taken_ = 0;
};

class JoinedRows final : public RowSource {
 public:
  JoinedRows(std::vector<RowPiece> pieces, std::uint64_t count, std::vector<std::byte> fill)
      : pieces_(std::move(pieces)), fill_(std::move(fill)) {
    rows = count;
    dim = pieces_.front().source->dim;
    dtype = pieces_.front().source->dtype;
    fill_.resize(DataTypeBytes(dtype));
  }

  // Alternates between filling the gap before the next piece and reading that piece.
  Status Read(std::span<std::byte> out) override {
    while (!out.empty()) {
      const std::uint64_t end = next_ == pieces_.size() ? data_bytes() : Begin(next_);
      if (done_ < end) {
        const std::size_t bytes = std::min<std::uint64_t>(out.size(), end - done_);
        for (std::size_t at = 0; at < bytes; at += fill_.size())
          std::memcpy(out.data() + at, fill_.data(), fill_.size());
        done_ += bytes;
        out = out.subspan(bytes);
      } else if (next_ == pieces_.size()) {
        return Status::InvalidArgument("no more rows");
      } else {
        RHIZOME_RETURN_IF_ERROR(ReadPiece(out));
      }
    }
    return Status::Ok();
  }

  Status Finish() override {
    while (next_ < pieces_.size()) RHIZOME_RETURN_IF_ERROR(FinishPiece());
    return Status::Ok();
  }
  std::uint64_t file_bytes() const override {
    std::uint64_t bytes = 0;
    for (const RowPiece& piece : pieces_) bytes += piece.source->file_bytes();
    return bytes;
  }
  std::uint64_t memory_bytes() const override {
    std::uint64_t bytes = 0;
    for (const RowPiece& piece : pieces_) bytes += piece.source->memory_bytes();
    return bytes;
  }

 private:
  std::uint64_t RowBytes() const { return dim * DataTypeBytes(dtype); }
  std::uint64_t Begin(std::size_t piece) const { return pieces_[piece].first_row * RowBytes(); }

  /// Reads from the current piece; moves to the next one at its end.
  Status ReadPiece(std::span<std::byte>& out) {
    RowSource& source = *pieces_[next_].source;
    const std::uint64_t left = Begin(next_) + source.rows * RowBytes() - done_;
    const std::size_t bytes = std::min<std::uint64_t>(out.size(), left);
    RHIZOME_RETURN_IF_ERROR(source.Read(out.first(bytes)));
    done_ += bytes;
    out = out.subspan(bytes);
    return bytes == left ? FinishPiece() : Status::Ok();
  }
  Status FinishPiece() { return pieces_[next_++].source->Finish(); }

  std::vector<RowPiece> pieces_;
  std::vector<std::byte> fill_;
  std::size_t next_ = 0;    // the current piece, or the next one
  std::uint64_t done_ = 0;  // bytes returned so far
};

/// Returns whether `path`, after resolving symbolic links, is of this kind.
bool Is(FileSystem& fs, const Path& path, DirectoryEntry::Kind kind) {
  std::error_code unresolved;
  const Path real = std::filesystem::canonical(path, unresolved);
  const auto info = fs.Stat(unresolved ? path : real);
  return info && info->kind == kind;
}

}  // namespace

bool HasRows(FileSystem& fs, const ArrayFile& file) {
  if (file.open || ContentExtension(file.path) == ".npy" || ParseNpzMember(file.path)) return true;
  return Is(fs, file.path, DirectoryEntry::Kind::kDirectory);
}

Result<std::unique_ptr<RowSource>> OpenRows(FileSystem& fs, const ArrayFile& file) {
  if (file.open) return file.open(fs);
  if (ContentExtension(file.path) == ".npy" || ParseNpzMember(file.path))
    return OpenNpyRows(fs, file.path);
  if (Is(fs, file.path, DirectoryEntry::Kind::kFile))
    return Fail(
        Status::InvalidArgument(fmt::format("'{}' is neither a .npy file nor the folder of a Zarr "
                                            "v3 array; write the rows as one of them (numpy.save)",
                                            file.path.string())));
  return OpenZarrRows(fs, file.path);
}

Result<std::unique_ptr<RowSource>> OpenNpyRows(FileSystem& fs, const Path& path) {
  std::unique_ptr<InputStream> stream;
  if (const auto npz = ParseNpzMember(path)) {
    RHIZOME_ASSIGN_OR_RETURN(auto member, OpenZipMember(fs, npz->file, npz->member + ".npy"));
    stream = InputStream::OfFile(std::move(member));
  } else {
    RHIZOME_ASSIGN_OR_RETURN(stream, InputStream::Open(fs, path));
  }
  RHIZOME_ASSIGN_OR_RETURN(auto reader, NpyReader::Open(std::move(stream), {}));
  return std::make_unique<NpyRows>(std::move(reader));
}

Result<std::unique_ptr<RowSource>> OpenZarrRows(FileSystem& fs, const Path& folder) {
  RHIZOME_ASSIGN_OR_RETURN(auto source, ZarrSource::Open(fs, folder));
  return std::make_unique<ZarrRows>(std::move(source));
}

std::unique_ptr<RowSource> ColumnRows(std::shared_ptr<const std::vector<std::int64_t>> values) {
  return std::make_unique<HeldColumn<std::int64_t>>(std::move(values));
}
std::unique_ptr<RowSource> ColumnRows(std::shared_ptr<const std::vector<std::uint8_t>> values) {
  return std::make_unique<HeldColumn<std::uint8_t>>(std::move(values));
}

Result<std::unique_ptr<RowSource>> JoinRows(std::vector<RowPiece> pieces, std::uint64_t rows,
                                            std::vector<std::byte> fill) {
  std::uint64_t end = 0;
  for (const RowPiece& piece : pieces) {
    const RowSource& source = *piece.source;
    if (source.dim != pieces.front().source->dim || source.dtype != pieces.front().source->dtype)
      return Fail(Status::InvalidArgument(fmt::format(
          "its parts differ: {} columns of {} and {} columns of {}", pieces.front().source->dim,
          DataTypeName(pieces.front().source->dtype), source.dim, DataTypeName(source.dtype))));
    if (piece.first_row < end || source.rows > rows - piece.first_row)
      return Fail(Status::InvalidArgument(
          fmt::format("{} rows from row {} exceed {}", source.rows, piece.first_row, rows)));
    end = piece.first_row + source.rows;
  }
  return std::make_unique<JoinedRows>(std::move(pieces), rows, std::move(fill));
}

}  // namespace rhizome
