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

#include "rhizome/storage/codec.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/shard_index.h"

namespace rhizome::inline internal {

/// What the zarr.json of another writer's array says, as far as it can be read here: Zarr v3, one
/// or two dimensions, a regular grid, codecs `bytes`, then at most one of `zstd`, `blosc` (lz4,
/// lz4hc, zstd) and `gzip`, with `crc32c` anywhere behind `bytes`; all of that, or inside
/// `sharding_indexed`, whose index has the codecs `bytes` and `crc32c`. A chunk is the least that
/// is decoded: of a sharded array, an inner chunk.
struct ZarrSourceFormat {
  enum class Compressor : std::uint8_t { kNone, kZstd, kBlosc, kGzip };

  std::uint64_t rows = 0;
  std::uint64_t dim = 1;  ///< at least 1; 1 for an array of one dimension
  bool two_dimensional = false;
  std::uint64_t chunk_rows = 1;  ///< at least 1
  std::uint64_t chunk_dim = 1;
  DataType dtype = DataType::kInvalid;  ///< of what is read; float64 becomes float32
  bool float64 = false;                 ///< as it is stored
  bool big_endian = false;
  std::array<std::byte, 8> fill = {};  ///< one element of dtype, for chunks that are not there

  Compressor compressor = Compressor::kNone;
  CodecKind blosc = CodecKind::kInvalid;
  std::uint32_t inner_checksums = 0;  ///< crc32c before the compressor
  std::uint32_t outer_checksums = 0;  ///< and behind it

  bool sharded = false;
  std::uint64_t shard_rows = 1;  ///< multiples of chunk_rows and chunk_dim; equal without shards
  std::uint64_t shard_dim = 1;
  ShardIndexFormat index;  ///< of each shard

  std::string key_prefix;  ///< "c" or nothing
  char key_separator = '/';

  std::size_t stored_element_bytes() const { return float64 ? 8 : DataTypeBytes(dtype); }
  std::uint64_t chunk_bytes() const { return chunk_rows * chunk_dim * stored_element_bytes(); }
  std::uint64_t row_bytes() const { return dim * DataTypeBytes(dtype); }
  /// Rows of chunks that stand beside one another.
  std::uint64_t strips() const { return rows / chunk_rows + (rows % chunk_rows != 0 ? 1 : 0); }
  std::uint64_t chunks_across() const { return dim / chunk_dim + (dim % chunk_dim != 0 ? 1 : 0); }
  std::uint64_t shards_across() const { return dim / shard_dim + (dim % shard_dim != 0 ? 1 : 0); }
  /// Of the indexes that are held at a time: those of the shards that stand beside one another.
  std::uint64_t index_bytes() const {
    constexpr std::uint64_t kHeldBytes = 64;  // beside the ranges
    return sharded ? shards_across() * (index.size_bytes() + kHeldBytes) : 0;
  }
};

/// The most bytes of a decoded chunk that are accepted.
inline constexpr std::uint64_t kMaxSourceChunkBytes = std::uint64_t{1} << 30;

/// The most bytes of indexes that are held at a time.
inline constexpr std::uint64_t kMaxSourceIndexBytes = std::uint64_t{1} << 28;

/// Parses such a document; touches no file. Errors: kInvalidArgument, naming the field and what
/// would do.
Result<ZarrSourceFormat> ParseZarrSource(std::string_view text);

/// Reads an array of another writer, strip by strip. Nothing vouches for its files: all sizes are
/// known from the metadata and compared before memory is taken; a chunk that is not there has the
/// fill value, and an array that claims far more than its chunks could hold is refused.
/// Threads: one at a time. Ownership: `fs` must outlive it.
class ZarrSource {
 public:
  /// `folder` holds zarr.json. Errors: kNotFound; kInvalidArgument, naming the file.
  static Result<std::unique_ptr<ZarrSource>> Open(FileSystem& fs, const Path& folder);

  const ZarrSourceFormat& format() const { return format_; }
  std::uint64_t RowsInStrip(std::uint64_t strip) const;

  /// Reads the rows of a strip: RowsInStrip(strip) * format().row_bytes() bytes.
  /// Errors: kInvalidArgument naming the chunk, damaged or of the wrong size, or a float64 that is
  /// beyond float32; kIoError.
  Status ReadStrip(std::uint64_t strip, std::span<std::byte> out);

  /// Of chunks, so far.
  std::uint64_t read_bytes() const { return read_bytes_; }

 private:
  ZarrSource(FileSystem& fs, Path folder, ZarrSourceFormat format)
      : fs_(fs), folder_(std::move(folder)), format_(std::move(format)) {}
  /// The shard that is being read, or whose rows of chunks are, and where its chunks lie.
  struct Shard {
    bool there = false;
    std::vector<InnerRange> ranges;
  };

  /// The file of a chunk, or of the shard that holds it.
  Path ChunkPath(std::uint64_t strip, std::uint64_t across) const;
  /// False: there is no such file.
  Result<bool> OpenFile(const Path& path);
  Result<bool> LoadChunk(std::uint64_t strip, std::uint64_t across, const Path& path);
  Result<bool> LoadInner(std::uint64_t strip, std::uint64_t across, const Path& path);
  Status LoadBytes(std::uint64_t offset, std::uint64_t bytes);
  Status DecodeChunkFile(std::span<const std::byte> encoded);
  Status Place(std::uint64_t strip, std::uint64_t across, bool there, std::span<std::byte> out);

  FileSystem& fs_;
  const Path folder_;
  const ZarrSourceFormat format_;
  Path open_path_;  // of file_; null: there is no such file
  std::unique_ptr<ReadableFile> file_;
  std::uint64_t shard_row_ = ~std::uint64_t{0};  // of shards_
  std::vector<std::optional<Shard>> shards_;     // those beside one another, as they are needed
  std::vector<std::byte> encoded_;
  std::vector<std::byte> inner_;  // a chunk with the checksums that were compressed with it
  std::uint64_t read_bytes_ = 0;
  std::uint64_t given_bytes_ = 0;
};

}  // namespace rhizome::inline internal
