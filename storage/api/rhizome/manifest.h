#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// An immutable file of a generation.
struct FileEntry {
  std::string path;  ///< relative to the generation's folder, '/' between names
  std::uint64_t size_bytes = 0;
  Hash128 xxh3{};
  std::uint32_t crc32c = 0;  ///< CRC-32C of the whole file; verified when chunks are read
  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

/// The layout of an array's chunks. Stored on disk: never renumber, only append.
enum class ArrayLayout : std::uint8_t {
  kInvalid = 0,
  kRow = 1,    ///< uncompressed chunks and a checksum per row, for random row reads
  kChunk = 2,  ///< chunks that may be compressed, for scans
};
std::string_view ArrayLayoutName(ArrayLayout layout);

/// A value for ArrayEntry::inner_rows, and for options that set it, that requests shards with inner
/// chunks of 32 to 64 KiB (or of one row).
inline constexpr std::uint64_t kChosenInnerRows = ~std::uint64_t{0};

/// How readers of Zarr see an array. Stored on disk: never renumber, only append.
enum class ArrayForm : std::uint8_t {
  kInvalid = 0,
  kZeroFill = 1,    ///< fill value 0, sidecar among the arrays: written by older builds
  kMarkedFill = 2,  ///< unambiguous fill value (FORMAT.md), sidecar in sums/
};

/// An array of shape [rows, dim]. Row r belongs to the vertex at row r of the order.
struct ArrayEntry {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  DataType dtype = DataType::kFloat32;
  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec;
  std::uint64_t chunk_rows = 0;

  /// Identifies the array within its store, in row checksums (RowCrc, chunk_array.h) and in the
  /// delta.
  std::uint64_t array_id = 0;

  /// Free-form metadata of the array, such as the hash of the model that produced it.
  std::vector<std::pair<std::string, std::string>> attributes;

  /// Rows of an inner chunk if chunks are shards; otherwise 0.
  std::uint64_t inner_rows = 0;

  ArrayForm form = ArrayForm::kMarkedFill;

  std::uint64_t row_bytes() const { return dim * DataTypeBytes(dtype); }
  std::uint64_t chunk_count() const {
    return chunk_rows == 0 ? 0 : (rows + chunk_rows - 1) / chunk_rows;
  }
  bool sharded() const { return inner_rows != 0; }
  friend bool operator==(const ArrayEntry& a, const ArrayEntry& b);
};

/// Type of the users' keys. Stored on disk: never renumber, only append.
enum class ExternalIdKind : std::uint8_t {
  kInvalid = 0,
  kDense = 1,    ///< integers 0 to n-1, which are the vertex ids themselves: no dictionary
  kInteger = 2,  ///< any int64
  kString = 3,   ///< UTF-8
};

/// In EdgeEnds: several vertex types, none, or an unknown one.
inline constexpr TypeId kSeveralTypes = 65535;

/// The vertex type of all sources of the edges of one type, and of all their destinations.
struct EdgeEnds {
  TypeId source = kSeveralTypes;
  TypeId destination = kSeveralTypes;
  friend bool operator==(const EdgeEnds&, const EdgeEnds&) = default;
};

/// Metadata of a generation: its size and types, and the quality of its partitions and order.
struct GenerationInfo {
  std::uint64_t vertices = 0;
  std::uint64_t edges = 0;  ///< directed edges; an undirected pair counts twice, a self-loop once
  std::uint32_t partitions = 0;
  ExternalIdKind id_kind = ExternalIdKind::kDense;
  bool symmetric = false;  ///< undirected: every edge is stored in both directions
  bool weighted = false;
  Direction directions = Direction::kBoth;  ///< readable lists (symmetric: kBoth, stored once)
  std::string partitioner;
  std::string order;
  double replication_factor = 0;
  double vertex_balance = 0;
  double edge_balance = 0;
  double interior_share = 0;
  std::vector<std::string> vertex_types;  ///< names by TypeId; at least one
  std::vector<std::string> edge_types;

  /// By edge type. Empty if there is one vertex type, and in generations of older builds.
  std::vector<EdgeEnds> edge_ends = {};
};

/// A name for one version of an array: `live` in emb@live.
struct ArrayAlias {
  std::string name;

  /// The versions to which it has referred, oldest first; the last is the current one. All of them
  /// exist.
  std::vector<std::uint64_t> history;
  friend bool operator==(const ArrayAlias&, const ArrayAlias&) = default;
};

/// An array that has versions: the versions of `emb` are the arrays emb.v1, emb.v2 and so on.
struct ArraySeries {
  std::string name;
  std::uint64_t last_version = 0;   ///< highest number assigned; never reused
  std::vector<ArrayAlias> aliases;  ///< sorted by name
  friend bool operator==(const ArraySeries&, const ArraySeries&) = default;
};

/// How many generations before the current one are kept on disk, for programs that read their
/// arrays as Zarr and hold no PIN. The newest are kept, as long as they have at most `bytes` in
/// total. They are removed earlier if a compaction needs the space.
struct KeepRule {
  std::uint32_t generations = 1;
  std::uint64_t bytes = std::uint64_t{64} << 30;
  friend bool operator==(const KeepRule&, const KeepRule&) = default;
};

/// The sealed list of all files and arrays of one generation. The catalogue identifies the current
/// manifest by its length and hash; a file that no manifest names is not part of the store.
struct Manifest {
  std::uint64_t generation = 0;
  std::uint64_t version = 0;  ///< incremented when arrays are added or removed
  GenerationInfo info;
  std::vector<FileEntry> files;     ///< sorted by path
  std::vector<ArrayEntry> arrays;   ///< sorted by name
  std::vector<ArraySeries> series;  ///< sorted by name
  KeepRule keep;

  /// Finds the file with that path; nullptr if there is none. The pointers that this and the
  /// following functions return are valid until the manifest changes.
  const FileEntry* FindFile(std::string_view path) const;

  /// Finds the array of that name or, if there is none, the version that it refers to
  /// (array_versions.h): emb@3, emb@live, or emb for the live version, otherwise the newest.
  /// Returns nullptr if there is none.
  const ArrayEntry* FindArray(std::string_view name) const;
  const ArraySeries* FindSeries(std::string_view name) const;
};

}  // namespace rhizome
