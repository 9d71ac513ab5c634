#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Element type of an array. Stored on disk: never renumber, only append.
enum class DataType : std::uint8_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat16 = 2,
  kInt64 = 3,
  kInt32 = 4,
  kUint32 = 5,
  kUint8 = 6,
  kBool = 7,  ///< one byte, 0 or 1
  kInt8 = 8,
  kInt16 = 9,
  kBfloat16 = 10,  ///< the upper half of a float32
  kFloat64 = 11,
};

/// Returns the size of one element in bytes; 0 for kInvalid.
std::size_t DataTypeBytes(DataType type);

/// Returns the name that Zarr v3 and NumPy use, such as "float32"; "invalid" for kInvalid.
std::string_view DataTypeName(DataType type);

/// The inverse of DataTypeName; returns nullopt for an unsupported name.
std::optional<DataType> ParseDataType(std::string_view name);

/// A std::variant of numbers and strings whose copies fail with std::bad_alloc when memory is
/// short. The std::variant of libstdc++ 12 assumes that such a variant always holds a value: if
/// copying a string throws, it destroys a copy that was never created, and the process ends. Here
/// the value is copied first and then moved in. Works wherever a std::variant does: std::get,
/// std::visit, ==.
template <typename... Types>
class Variant : public std::variant<Types...> {
  using Base = std::variant<Types...>;
  static_assert(std::is_nothrow_move_constructible_v<Base>);

 public:
  using Base::Base;
  using Base::operator=;
  Variant() = default;
  Variant(Variant&&) noexcept = default;
  Variant& operator=(Variant&&) noexcept = default;
  Variant(const Variant& other) : Base(CopyOf(other)) {}
  Variant& operator=(const Variant& other) { return *this = Variant(other); }
  ~Variant() = default;

 private:
  static Base CopyOf(const Base& other) {
    return std::visit(
        [](const auto& value) {
          return Base(std::in_place_type<std::decay_t<decltype(value)>>, value);
        },
        other);
  }
};

/// The permanent id of a vertex: dense, 0-based, never reused. Signed like libtorch's index type,
/// so that spans become tensors without a copy.
using VertexId = std::int64_t;

/// The position of a vertex in one generation's order. It changes with every compaction.
using Row = std::int64_t;

/// A vertex type or an edge type: an index into the schema's names.
using TypeId = std::uint16_t;

/// The number of a partition, a part of the edge set.
using PartitionId = std::uint16_t;

/// The index of a vertex within one partition: owned vertices first (in row order), then mirrors
/// (by row).
using LocalId = std::uint32_t;

/// Selects neighbour lists of a vertex: kOut, its outgoing edges; kIn, its incoming edges.
enum class Direction : std::uint8_t { kOut = 1, kIn = 2, kBoth = 3 };

/// Limits that readers check before they trust a size (storage/FORMAT.md, "Limits").
inline constexpr std::size_t kMaxPartitions = 1024;
inline constexpr std::size_t kMaxTypes = 65536;  // every TypeId
inline constexpr std::size_t kMaxNameBytes = 128;
inline constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMaxZarrJsonBytes = std::uint64_t{1} << 20;

/// XXH3-128 in its canonical (big-endian) byte order.
using Hash128 = std::array<std::byte, 16>;

/// The compression of a chunk. Stored on disk: never renumber, only append. blosclz is neither
/// written nor read: its decoder has an unfixed heap overflow (c-blosc #405).
enum class CodecKind : std::uint8_t {
  kInvalid = 0,
  kRaw = 1,
  kZstd = 2,
  kBloscLz4 = 3,
  kBloscZstd = 4,
  kNonzero = 5,  ///< only for arrays that are internal to a job: Zarr has no such codec
};

/// Returns "raw", "zstd", "blosc-lz4", "blosc-zstd" or "nonzero"; "invalid" for others.
std::string_view CodecName(CodecKind codec);

/// The inverse of CodecName, for codecs of arrays in a store (not nonzero).
std::optional<CodecKind> ParseCodec(std::string_view name);

/// A codec and its parameters.
struct Codec {
  CodecKind kind = CodecKind::kRaw;

  /// Compression level; zstd [1, 19], Blosc [1, 9], ignored by raw and nonzero.
  int level = 1;

  bool has_level() const { return kind != CodecKind::kRaw && kind != CodecKind::kNonzero; }

  /// Size of an element in bytes, for Blosc's shuffle.
  std::size_t element_bytes = 4;
};

/// 128 random bits that are stored in every file of a store, so that a file of another store is
/// detected.
struct StoreId {
  std::array<std::byte, 16> bytes{};

  friend bool operator==(const StoreId&, const StoreId&) = default;

  /// Creates an id from the kernel's generator, hashed with time, pid and a counter, so that a
  /// broken generator does not repeat ids.
  static StoreId Random();

  /// Parses 32 hex digits. Errors: kInvalidArgument.
  static Result<StoreId> Parse(std::string_view hex);
  std::string ToString() const;
};

/// A state of another store (the leader) whose changes were applied to this one.
struct LeaderState {
  StoreId store;
  std::uint64_t commit = 0;  ///< the last commit of the leader that was applied
  Hash128 commits{};         ///< the leader's HistoryState::commits after that commit
  friend bool operator==(const LeaderState&, const LeaderState&) = default;
};

/// Identifies the changes of a store up to a commit. Copies of a store that were written to
/// independently have commits with equal numbers and different hashes.
struct HistoryState {
  Hash128 commits{};                       ///< running hash over the commits; zeros: unknown
  std::optional<LeaderState> leader = {};  ///< the store that this one follows
  friend bool operator==(const HistoryState&, const HistoryState&) = default;

  bool known() const { return commits != Hash128{}; }
};

/// Hashes that distinguish a state of a store from states of its copies: copies that were written
/// to independently have commits, generations and manifests with equal numbers. All zeros: unknown,
/// because it was recorded by an older version of Rhizome.
struct StateId {
  Hash128 files{};    ///< hash of the files from which the state is read
  Hash128 commits{};  ///< HistoryState::commits after the last commit
  friend bool operator==(const StateId&, const StateId&) = default;

  bool known() const { return *this != StateId{}; }
  /// Returns 64 hex digits; empty if unknown.
  std::string ToString() const;
  /// Parses such digits. Returns nullopt if `text` is anything else.
  static std::optional<StateId> Parse(std::string_view text);
};

/// A state of a store, identified by numbers and hashes, so that another process can open exactly
/// that state while a reader holds it: GraphSnapshot::point (rhizome/graph.h) returns it,
/// StoreOptions::at opens it.
struct StorePoint {
  StoreId store;
  std::uint64_t generation = 0;
  std::uint64_t manifest_version = 0;
  std::uint64_t base_sequence = 0;  ///< commits up to this one are in the generation's files
  std::uint64_t first_commit = 0;   ///< the first commit of the delta; 0: the delta is empty
  std::uint64_t sequence = 0;       ///< the last commit
  StateId state = {};               ///< its `files` is Store::HashOfFiles
  friend bool operator==(const StorePoint&, const StorePoint&) = default;
};

}  // namespace rhizome

template <typename... Types>
struct std::hash<rhizome::Variant<Types...>> : std::hash<std::variant<Types...>> {};
