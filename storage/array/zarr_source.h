#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/codec.h"
#include "storage/array/shard_index.h"

namespace rhizome {
inline namespace internal {

/// The metadata of an array that another program wrote. Supported are Zarr v3 arrays of one or two
/// dimensions on a regular grid. Their codecs are `bytes`, then at most one of `zstd`, `blosc`
/// (lz4, lz4hc, zstd) and `gzip`, with `crc32c` anywhere after `bytes`; or `sharding_indexed` with
/// such codecs inside, whose index has the codecs `bytes` and `crc32c`. In this struct a chunk is
/// the unit that is decoded: in a sharded array, an inner chunk.
struct ZarrSourceFormat {
  enum class Compressor : std::uint8_t { kNone, kZstd, kBlosc, kGzip };

  std::uint64_t rows = 0;
  std::uint64_t dim = 1;  ///< at least 1; 1 for a one-dimensional array
  bool two_dimensional = false;
  std::uint64_t chunk_rows = 1;  ///< at least 1
  std::uint64_t chunk_dim = 1;
  DataType dtype = DataType::kInvalid;  ///< of the rows that ReadStrip returns
  bool uint64 = false;                  ///< stored as uint64, returned as int64
  bool big_endian = false;
  std::array<std::byte, 8> fill = {};  ///< one element of dtype, for missing chunks

  Compressor compressor = Compressor::kNone;
  CodecKind blosc = CodecKind::kInvalid;
  std::uint32_t inner_checksums = 0;  ///< crc32c before the compressor
  std::uint32_t outer_checksums = 0;  ///< crc32c after the compressor

  bool sharded = false;
  std::uint64_t shard_rows = 1;  ///< a multiple of chunk_rows; equal without shards
  std::uint64_t shard_dim = 1;   ///< a multiple of chunk_dim; equal without shards
  ShardIndexFormat index;        ///< the format of each shard's index

  std::string key_prefix;  ///< "c" or empty
  char key_separator = '/';

  std::size_t element_bytes() const { return DataTypeBytes(dtype); }
  std::uint64_t chunk_bytes() const { return chunk_rows * chunk_dim * element_bytes(); }
  std::uint64_t row_bytes() const { return dim * DataTypeBytes(dtype); }
  /// The number of strips. A strip is a row of the chunk grid: the chunks with the same rows.
  std::uint64_t strips() const { return rows / chunk_rows + (rows % chunk_rows != 0 ? 1 : 0); }
  std::uint64_t chunks_across() const { return dim / chunk_dim + (dim % chunk_dim != 0 ? 1 : 0); }
  std::uint64_t shards_across() const { return dim / shard_dim + (dim % shard_dim != 0 ? 1 : 0); }
  /// Memory of the shard indexes that are kept at a time: the indexes of a row of the shard grid.
  std::uint64_t index_bytes() const {
    constexpr std::uint64_t kHeldBytes = 64;  // a bound on the bytes of a Shard besides its ranges
    return sharded ? shards_across() * (index.size_bytes() + kHeldBytes) : 0;
  }
};

/// Max accepted size of a decoded chunk, in bytes.
inline constexpr std::uint64_t kMaxSourceChunkBytes = std::uint64_t{1} << 30;

/// Max size of the indexes that are kept at a time, in bytes.
inline constexpr std::uint64_t kMaxSourceIndexBytes = std::uint64_t{1} << 28;

/// Parses a zarr.json; accesses no file. Errors: kInvalidArgument, naming the field and the
/// accepted values.
Result<ZarrSourceFormat> ParseZarrSource(std::string_view text);

/// Reads an array that another program wrote, strip by strip. Its files are not trusted: all sizes
/// are derived from the metadata and compared before memory is allocated. A missing chunk consists
/// of the fill value. An array that claims far more bytes than its files can contain is refused,
/// and so is a symbolic link in its folder. Threads: one at a time. Ownership: `fs` must outlive
/// it.
class ZarrSource {
 public:
  /// Opens the array whose zarr.json is in `folder`. Errors: kNotFound; kInvalidArgument, naming
  /// the file.
  static Result<std::unique_ptr<ZarrSource>> Open(FileSystem& fs, const Path& folder);

  const ZarrSourceFormat& format() const { return format_; }
  std::uint64_t RowsInStrip(std::uint64_t strip) const;

  /// Reads the rows of a strip into `out`, RowsInStrip(strip) * format().row_bytes() bytes,
  /// row-major.
  /// Errors: kInvalidArgument, naming a chunk that is damaged, has a wrong size, or contains a
  /// uint64 that does not fit int64; kIoError.
  Status ReadStrip(std::uint64_t strip, std::span<std::byte> out);

  /// Bytes of chunks and indexes that were read so far.
  std::uint64_t read_bytes() const { return read_bytes_; }

 private:
  ZarrSource(FileSystem& fs, Path folder, ZarrSourceFormat format)
      : fs_(fs),
        folder_(std::move(folder)),
        enclosed_(fs.Enclose(folder_)),
        format_(std::move(format)) {}
  /// A shard of the current row of shards, with the positions of its chunks.
  struct Shard {
    bool there = false;
    std::vector<InnerRange> ranges;
  };

  /// Returns the path of a chunk's file, or of the shard that contains it.
  Path ChunkPath(std::uint64_t strip, std::uint64_t across) const;
  /// Opens a file unless it is already open; returns false if it does not exist.
  Result<bool> OpenFile(const Path& path);
  Result<bool> LoadChunk(std::uint64_t strip, std::uint64_t across, const Path& path);
  Result<bool> LoadInner(std::uint64_t strip, std::uint64_t across, const Path& path);
  Status LoadBytes(std::uint64_t offset, std::uint64_t bytes);
  Status DecodeChunkFile(std::span<const std::byte> encoded);
  Status Place(std::uint64_t strip, std::uint64_t across, bool there, std::span<std::byte> out);

  FileSystem& fs_;
  const Path folder_;
  const std::shared_ptr<FolderEnclosure> enclosed_;  // a link in it could lead anywhere
  const ZarrSourceFormat format_;
  Path open_path_;                               // the path of file_
  std::unique_ptr<ReadableFile> file_;           // null: there is no such file
  std::uint64_t shard_row_ = ~std::uint64_t{0};  // row of the shard grid in shards_
  std::vector<std::optional<Shard>> shards_;     // the shards of that row, read when needed
  std::vector<std::byte> encoded_;
  std::vector<std::byte> inner_;  // a decoded chunk, and the checksums that were compressed with it
  std::uint64_t read_bytes_ = 0;
  std::uint64_t given_bytes_ = 0;
};

}  // namespace internal
}  // namespace rhizome
