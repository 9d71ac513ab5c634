#include <array>
#include <cstring>
#include <random>
#include <string>

#include "edits.h"
#include "gzip.h"
#include "input.h"
#include "memory_files.h"
#include "seeds.h"
#include "storage/array/codec.h"
#include "storage/array/shard_index.h"
#include "storage/array/zarr_source.h"
#include "storage/base/check.h"
#include "storage/base/half.h"
#include "storage/base/hash.h"

namespace {

using namespace rhizome;

const Path kFolder = "/no/such/folder";
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 16;
constexpr std::uint64_t kFill = 7;

struct Type {
  const char* name;
  DataType read_as;
};
constexpr std::array<Type, 11> kTypes = {{{"float32", DataType::kFloat32},
                                          {"float16", DataType::kFloat16},
                                          {"float64", DataType::kFloat64},
                                          {"int64", DataType::kInt64},
                                          {"int32", DataType::kInt32},
                                          {"uint32", DataType::kUint32},
                                          {"uint8", DataType::kUint8},
                                          {"bfloat16", DataType::kBfloat16},
                                          {"int16", DataType::kInt16},
                                          {"uint64", DataType::kInt64},
                                          {"int8", DataType::kInt8}}};

struct Compressor {
  CodecKind kind;    ///< kInvalid: gzip
  const char* json;  ///< its codecs in zarr.json; our encoder appends a checksum to compressed data
};
constexpr std::array<Compressor, 5> kCompressors = {
    {{CodecKind::kRaw, ""},
     {CodecKind::kZstd, R"(, {"name": "zstd", "configuration": {"level": 1}}, "crc32c")"},
     {CodecKind::kBloscLz4, R"(, {"name": "blosc", "configuration": {"cname": "lz4"}}, "crc32c")"},
     {CodecKind::kBloscZstd,
      R"(, {"name": "blosc", "configuration": {"cname": "zstd"}}, "crc32c")"},
     {CodecKind::kInvalid, R"(, {"name": "gzip", "configuration": {"level": 6}}, "crc32c")"}}};

std::vector<std::byte> Compressed(CodecKind kind, const std::string& raw) {
  if (kind != CodecKind::kInvalid) {
    const auto encoded = EncodeChunk({.kind = kind}, std::as_bytes(std::span(raw)));
    RHIZOME_CHECK(encoded.has_value());
    return *encoded;
  }
  std::vector<std::byte> packed = fuzzing::Gzip(raw);
  const std::uint32_t crc = Crc32c(packed);
  const auto* const seal = reinterpret_cast<const std::byte*>(&crc);
  packed.insert(packed.end(), seal, seal + sizeof(crc));
  return packed;
}

/// Encodes a small number in that type, little-endian.
std::string BytesOf(std::uint64_t value, DataType type) {
  std::array<char, 8> bytes{};
  const auto real = static_cast<double>(value);
  const auto single = static_cast<float>(value);
  const std::uint16_t half =
      type == DataType::kFloat16 ? FloatToHalf(single) : FloatToBfloat(single);
  if (type == DataType::kFloat64)
    std::memcpy(bytes.data(), &real, sizeof(real));
  else if (type == DataType::kFloat32)
    std::memcpy(bytes.data(), &single, sizeof(single));
  else if (type == DataType::kFloat16 || type == DataType::kBfloat16)
    std::memcpy(bytes.data(), &half, sizeof(half));
  else
    std::memcpy(bytes.data(), &value, sizeof(value));
  return {bytes.data(), DataTypeBytes(type)};
}

/// An array in the style of another writer, drawn from fuzz input: its files, and the rows that
/// they contain.
class Sample {
 public:
  explicit Sample(fuzzing::Input& input) {
    type_ = kTypes[input.Byte() % kTypes.size()];
    compressor_ = kCompressors[input.Byte() % kCompressors.size()];
    const std::uint8_t kinds = input.Byte();
    big_endian_ = (kinds & 1) != 0;
    flat_ = (kinds & 2) != 0;
    inner_checksum_ = (kinds & 4) != 0;
    prefixed_ = (kinds & 8) != 0;
    separator_ = (kinds & 16) != 0 ? '/' : '.';
    rows_ = input.Byte() % 40;
    dim_ = flat_ ? 1 : 1 + input.Byte() % 5;
    chunk_rows_ = 1 + input.Byte() % 12;
    chunk_dim_ = flat_ ? 1 : 1 + input.Byte() % 4;
    random_.seed(input.Byte());
    missing_ = input.Byte();
    const std::uint8_t shards = input.Byte();
    sharded_ = (shards & 1) != 0;
    down_ = sharded_ ? 1 + (shards >> 1) % 4 : 1;
    beside_ = sharded_ && !flat_ ? 1 + (shards >> 3) % 3 : 1;
    index_ = {.inner_chunks = down_ * beside_,
              .at_start = (shards & 32) != 0,
              .big_endian = (shards & 64) != 0,
              .checksums = (shards & 128) != 0 ? 0U : 1U};
    expected_.resize(rows_ * dim_);
    for (std::uint64_t c = 0; c * down_ * chunk_rows_ < rows_; ++c)
      for (std::uint64_t a = 0; a * beside_ * chunk_dim_ < dim_; ++a) AddFile(c, a);
  }

  std::string Metadata() const {
    const std::string shape = std::to_string(rows_) + (flat_ ? "" : ", " + std::to_string(dim_));
    const std::string grid = Extents(chunk_rows_ * down_, chunk_dim_ * beside_);
    return R"({"zarr_format": 3, "node_type": "array", "shape": [)" + shape +
           R"(], "data_type": ")" + type_.name +
           R"(", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [)" + grid +
           R"(]}}, "chunk_key_encoding": {"name": ")" + (prefixed_ ? "default" : "v2") +
           R"(", "configuration": {"separator": ")" + separator_ + R"("}}, "fill_value": )" +
           std::to_string(kFill) + R"(, "codecs": [)" + (sharded_ ? Sharding() : Codecs()) + "]}";
  }

  /// The chunk files by path.
  std::map<Path, std::vector<std::byte>>& chunks() { return chunks_; }

  /// The range of bytes that a checksum of a file covers. The checksum follows it.
  struct Sealed {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::optional<Sealed> SealOf(const std::vector<std::byte>& file) const {
    constexpr std::size_t kSealBytes = sizeof(std::uint32_t);
    if (sharded_) {
      const std::size_t index_bytes = index_.size_bytes();
      if (index_.checksums == 0 || file.size() < index_bytes) return {};
      const std::size_t begin = index_.at_start ? 0 : file.size() - index_bytes;
      return Sealed{begin, begin + index_bytes - kSealBytes};
    }
    const bool has_seal = compressor_.kind != CodecKind::kRaw || inner_checksum_;
    if (!has_seal || file.size() < kSealBytes) return {};
    return Sealed{0, file.size() - kSealBytes};
  }

  /// The bytes of all rows as a reader must return them.
  std::string Rows() const {
    std::string rows;
    for (const std::uint64_t value : expected_) rows += BytesOf(value, type_.read_as);
    return rows;
  }

 private:
  std::string Extents(std::uint64_t rows, std::uint64_t columns) const {
    return std::to_string(rows) + (flat_ ? "" : ", " + std::to_string(columns));
  }

  static std::string BytesCodec(bool big_endian) {
    return std::string(R"({"name": "bytes", "configuration": {"endian": ")") +
           (big_endian ? "big" : "little") + R"("}})";
  }

  std::string Codecs() const {
    return BytesCodec(big_endian_) + (inner_checksum_ ? R"(, "crc32c")" : "") + compressor_.json;
  }

  std::string Sharding() const {
    return R"({"name": "sharding_indexed", "configuration": {"chunk_shape": [)" +
           Extents(chunk_rows_, chunk_dim_) + R"(], "codecs": [)" + Codecs() +
           R"(], "index_codecs": [)" + BytesCodec(index_.big_endian) +
           (index_.checksums > 0 ? R"(, "crc32c")" : "") + R"(], "index_location": ")" +
           (index_.at_start ? "start" : "end") + R"("}})";
  }

  /// Adds the file of a chunk, or of a shard of chunks.
  void AddFile(std::uint64_t down, std::uint64_t across) {
    std::vector<std::byte> bytes;
    std::vector<InnerRange> ranges(index_.inner_chunks);
    const std::size_t index_bytes = sharded_ ? index_.size_bytes() : 0;
    if (index_.at_start) bytes.resize(index_bytes);
    bool anything = false;
    for (std::uint64_t i = 0; i < ranges.size(); ++i) {
      const auto chunk = Chunk(down * down_ + i / beside_, across * beside_ + i % beside_);
      if (!chunk) continue;
      anything = true;
      ranges[i] = {bytes.size(), chunk->size()};
      bytes.insert(bytes.end(), chunk->begin(), chunk->end());
    }
    if (!anything) return;
    if (sharded_) {
      const auto index = EncodeShardIndex(index_, ranges);
      if (!index_.at_start) bytes.resize(bytes.size() + index_bytes);
      const std::size_t begin = index_.at_start ? 0 : bytes.size() - index_bytes;
      std::copy(index.begin(), index.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    std::string key = prefixed_ ? std::string("c") + separator_ : std::string();
    key += std::to_string(down);
    if (!flat_) key += separator_ + std::to_string(across);
    chunks_[kFolder / key] = std::move(bytes);
  }

  /// Draws a chunk. Returns nullopt if it is to be missing from the array.
  std::optional<std::vector<std::byte>> Chunk(std::uint64_t number, std::uint64_t across) {
    const bool missing = random_() % 256 < missing_;
    std::string bytes;
    for (std::uint64_t i = 0; i < chunk_rows_ * chunk_dim_; ++i) {
      const std::uint64_t value = random_() % 256;
      std::string element = BytesOf(value, type_.read_as);
      if (big_endian_) std::reverse(element.begin(), element.end());
      bytes += element;
      const std::uint64_t row = number * chunk_rows_ + i / chunk_dim_;
      const std::uint64_t column = across * chunk_dim_ + i % chunk_dim_;
      if (row < rows_ && column < dim_) expected_[row * dim_ + column] = missing ? kFill : value;
    }
    if (missing) return {};
    if (inner_checksum_) {
      const std::uint32_t crc = Crc32c(std::as_bytes(std::span(bytes)));
      bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
    }
    return Compressed(compressor_.kind, bytes);
  }

  Type type_{};
  Compressor compressor_{};
  bool big_endian_ = false;
  bool flat_ = false;
  bool inner_checksum_ = false;
  bool prefixed_ = false;
  char separator_ = '.';
  std::uint64_t rows_ = 0;
  std::uint64_t dim_ = 1;
  std::uint64_t chunk_rows_ = 1;
  std::uint64_t chunk_dim_ = 1;
  bool sharded_ = false;
  std::uint64_t down_ = 1;    // rows of inner chunks in a shard
  std::uint64_t beside_ = 1;  // columns of inner chunks in a shard
  ShardIndexFormat index_;
  unsigned missing_ = 0;
  std::mt19937 random_;
  std::vector<std::uint64_t> expected_;  // [rows, dim]
  std::map<Path, std::vector<std::byte>> chunks_;
};

/// Checks that an accepted document stays within the limits.
void CheckFormat(const ZarrSourceFormat& format) {
  std::uint64_t bytes = 0;
  RHIZOME_CHECK(!__builtin_mul_overflow(format.rows, format.row_bytes(), &bytes));
  RHIZOME_CHECK(format.dim > 0 && format.chunk_rows > 0 && format.chunk_dim > 0);
  RHIZOME_CHECK(format.chunk_bytes() <= kMaxSourceChunkBytes);
  RHIZOME_CHECK(format.shard_rows % format.chunk_rows == 0);
  RHIZOME_CHECK(format.shard_dim % format.chunk_dim == 0);
  RHIZOME_CHECK(format.index_bytes() <= kMaxSourceIndexBytes);
  RHIZOME_CHECK(DataTypeBytes(format.dtype) > 0);
}

/// Reads all rows. Returns nullopt if they are rejected or too many.
std::optional<std::string> ReadAll(fuzzing::MemoryFiles& files) {
  const auto source = ZarrSource::Open(files, kFolder);
  if (!source) {
    RHIZOME_CHECK(source.error().code() == StatusCode::kInvalidArgument);
    return {};
  }
  const ZarrSourceFormat& format = (*source)->format();
  CheckFormat(format);
  const bool small = format.rows <= kMaxBytes && format.row_bytes() <= kMaxBytes &&
                     format.rows * format.row_bytes() <= kMaxBytes &&
                     format.chunk_bytes() <= kMaxBytes;
  if (!small) return {};
  std::string all;
  for (std::uint64_t strip = 0; strip < format.strips(); ++strip) {
    std::string rows((*source)->RowsInStrip(strip) * format.row_bytes(), '\0');
    const Status status =
        (*source)->ReadStrip(strip, std::as_writable_bytes(std::span(rows.data(), rows.size())));
    RHIZOME_CHECK(status.ok() || status.code() == StatusCode::kInvalidArgument);
    if (!status.ok()) return {};
    all += rows;
  }
  return all;
}

/// Edits one file, and corrects its checksum if there is one: the chunk's, or the index's.
void EditChunk(Sample& sample, std::uint8_t which, std::span<const std::uint8_t> edits) {
  if (sample.chunks().empty()) return;
  auto chunk = sample.chunks().begin();
  std::advance(chunk, which % sample.chunks().size());
  std::vector<std::byte>& bytes = chunk->second;
  bytes = fuzzing::WithEdits(std::move(bytes), edits);
  const auto sealed = sample.SealOf(bytes);
  if (!sealed) return;
  const std::uint32_t seal =
      Crc32c(std::span(bytes).subspan(sealed->begin, sealed->end - sealed->begin));
  std::memcpy(bytes.data() + sealed->end, &seal, sizeof(seal));
}

}  // namespace

// Parses an arbitrary document, and reads a small array of every kind, which must return the rows
// that were written. With edits in the document, or in a chunk whose checksum is corrected, the
// array must be rejected as invalid input, or read in bounds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kSampleBytes = 10;
  if (size < 2) return 0;
  const std::span<const std::uint8_t> input(data + 2, size - 2);
  if (data[0] % 4 == 0) {
    const auto format = ParseZarrSource({reinterpret_cast<const char*>(data + 1), size - 1});
    if (format) CheckFormat(*format);
    return 0;
  }
  fuzzing::Input drawn(input.first(std::min(input.size(), kSampleBytes)));
  Sample sample(drawn);
  const auto edits = input.subspan(std::min(input.size(), kSampleBytes));
  std::string metadata = sample.Metadata();
  const bool sound = data[0] % 4 == 1;
  if (data[0] % 4 == 2) metadata = fuzzing::WithEdits(std::move(metadata), edits);
  if (data[0] % 4 == 3) EditChunk(sample, data[1], edits);
  const auto text = std::as_bytes(std::span(metadata));
  fuzzing::MemoryFiles files;
  files.files = std::move(sample.chunks());
  files.files[kFolder / "zarr.json"] = {text.begin(), text.end()};
  const auto rows = ReadAll(files);
  if (sound) RHIZOME_CHECK(rows.has_value() && *rows == sample.Rows());
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < 120; ++i) {
    Seed drawn(10);
    for (std::uint8_t& byte : drawn) byte = static_cast<std::uint8_t>(random());
    Input input(drawn);
    const std::string metadata = Sample(input).Metadata();
    for (const std::uint8_t kind : {1, 2, 3}) {
      Seed head = {kind, static_cast<std::uint8_t>(i)};
      head.insert(head.end(), drawn.begin(), drawn.end());
      AddEdits(seeds, head, kind == 1 ? 0 : kind == 2 ? metadata.size() : 100, kind == 2 ? 60 : 12);
    }
    AddChanged(seeds, Joined({0}, metadata), 1, 12);
    for (const char* const fill :
         {"-5", "1.5", "300", "99999999999999999999", "\"NaN\"", "\"-Infinity\"", "\"0x7fc00001\"",
          "\"0x7e00\"", "\"0x7ff8000000000000\"", "\"0xzz\"", "true", "1e300"}) {
      std::string other = metadata;
      const std::string_view before = "\"fill_value\": 7";
      other.replace(other.find(before) + before.size() - 1, 1, fill);
      seeds.push_back(Joined({0}, other));
    }
    std::string huge = metadata;
    const std::string_view grid = "\"chunk_shape\": [";
    huge.insert(huge.find(grid) + grid.size(), "99999999999");
    seeds.push_back(Joined({0}, huge));
  }
  // An array of int64.
  seeds.push_back({3, 0, 2, 0, 0, 5, 0, 11, 0, 1, 0, 0, 7, 0, 0, 0x7F});
  return seeds;
}
