#include "cache/feed/superbatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "cache/feed/packed_numbers.h"
#include "storage/base/hash.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Numbers in the header of an encoded minibatch, in this order. kEmptyLists counts the empty lists
/// at the end, which belong to the last hop; no lengths are written for them.
enum Field : std::size_t {
  kTag,
  kSeeds,
  kRows,
  kHops,
  kOffsets,
  kEmptyLists,
  kNeighbors,
  kDegrees,
  kTypes,
  kWeights,
  kEdges,
  kHopLists,
  kSeedOf,
  kFields
};
using Header = std::array<std::uint64_t, kFields>;

/// Flag in kDegrees: weighted degrees follow all other lists, one for each row. (A separate list
/// would add its head to minibatches without weighted degrees, too.)
constexpr std::uint64_t kWeightedDegreesFollow = std::uint64_t{1} << 63;

/// Flag in kDegrees: pairs and negatives follow all other lists, for the same reason.
constexpr std::uint64_t kPairsFollow = std::uint64_t{1} << 62;

/// A number of a packed list takes at least a bit.
constexpr std::uint64_t kBitsOfByte = 8;

constexpr std::uint64_t kFlags = kWeightedDegreesFollow | kPairsFollow;

/// Returns the differences of consecutive offsets, the first relative to 0. Restores any offsets,
/// because differences wrap around.
std::vector<std::uint64_t> Lengths(std::span<const std::uint32_t> offsets) {
  std::vector<std::uint64_t> lengths;
  lengths.reserve(offsets.size());
  std::uint32_t before = 0;
  for (const std::uint32_t offset : offsets) {
    lengths.push_back(static_cast<std::uint32_t>(offset - before));
    before = offset;
  }
  return lengths;
}

/// Returns the number of zeros at the end, up to `most`, a bound that the decoder can check.
std::size_t ZerosAtTheEnd(std::span<const std::uint64_t> lengths, std::size_t most) {
  std::size_t zeros = 0;
  while (zeros < std::min(most, lengths.size()) && lengths[lengths.size() - 1 - zeros] == 0) {
    ++zeros;
  }
  return zeros;
}

/// Encodes neighbours: a vertex that appears for the first time has the next local number and is
/// written as 0; any other is written as its number plus 1.
std::vector<std::uint64_t> CodeNeighbors(std::span<const std::uint32_t> neighbors,
                                         std::uint64_t next) {
  std::vector<std::uint64_t> codes;
  codes.reserve(neighbors.size());
  for (const std::uint32_t neighbor : neighbors) {
    const bool is_next = neighbor == next;
    codes.push_back(is_next ? 0 : std::uint64_t{neighbor} + 1);
    next += is_next ? 1 : 0;
  }
  return codes;
}

void AppendNumbers(std::span<const std::uint64_t> numbers, std::vector<std::byte>& bytes) {
  const std::size_t at = bytes.size();
  bytes.resize(at + numbers.size_bytes());
  if (!numbers.empty()) std::memcpy(bytes.data() + at, numbers.data(), numbers.size_bytes());
}

/// Removes `count` numbers from the front of `bytes`. Returns false if there are fewer.
bool TakeNumbers(std::span<const std::byte>& bytes, std::uint64_t count,
                 std::vector<std::uint64_t>& numbers) {
  if (count > bytes.size() / sizeof(std::uint64_t)) return false;
  numbers.resize(count);
  if (count > 0) std::memcpy(numbers.data(), bytes.data(), count * sizeof(std::uint64_t));
  bytes = bytes.subspan(count * sizeof(std::uint64_t));
  return true;
}

/// Removes a packed list of `count` numbers from the front of `bytes`, appends `zeros` zeros that
/// were not written, and sets values[i] = decode(number i). Returns false if `bytes` does not hold
/// the list.
template <typename T, typename Decode>
bool TakePacked(std::span<const std::byte>& bytes, std::uint64_t count, std::uint64_t zeros,
                std::vector<T>& values, Decode decode) {
  const std::optional<PackedNumbers> list = PackedNumbers::Open(bytes, count);
  if (!list) return false;
  values.resize(count + zeros);
  T* to = values.data();
  list->ForEach([&to, &decode](std::uint64_t number) { *to++ = decode(number); });
  for (std::uint64_t i = 0; i < zeros; ++i) *to++ = decode(0);
  bytes = bytes.subspan(list->size_bytes());
  return true;
}

bool TakeRows(std::span<const std::byte>& bytes, std::uint64_t count, std::vector<Row>& rows) {
  return TakePacked(bytes, count, 0, rows,
                    [](std::uint64_t number) { return static_cast<Row>(number); });
}

bool TakeOffsets(std::span<const std::byte>& bytes, std::uint64_t count, std::uint64_t zeros,
                 std::vector<std::uint32_t>& offsets) {
  return TakePacked(bytes, count, zeros, offsets,
                    [end = std::uint32_t{0}](std::uint64_t length) mutable {
                      return end += static_cast<std::uint32_t>(length);
                    });
}

bool TakeNeighbors(std::span<const std::byte>& bytes, std::uint64_t count, std::uint64_t next,
                   std::vector<std::uint32_t>& neighbors) {
  return TakePacked(bytes, count, 0, neighbors, [next](std::uint64_t code) mutable {
    const bool is_next = code == 0;
    const std::uint64_t neighbor = is_next ? next : code - 1;
    next += is_next ? 1 : 0;
    return static_cast<std::uint32_t>(neighbor);
  });
}

bool TakeWords(std::span<const std::byte>& bytes, std::uint64_t count,
               std::vector<std::uint32_t>& words) {
  return TakePacked(bytes, count, 0, words,
                    [](std::uint64_t number) { return static_cast<std::uint32_t>(number); });
}

std::vector<std::uint64_t> BitsOf(std::span<const float> numbers) {
  std::vector<std::uint64_t> bits;
  bits.reserve(numbers.size());
  for (const float number : numbers) bits.push_back(std::bit_cast<std::uint32_t>(number));
  return bits;
}

float FloatOf(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }

/// Appends types, weights as bits, and edges as all partitions followed by all positions.
void AppendEdgeFacts(const Minibatch& m, std::vector<std::byte>& bytes) {
  AppendPacked(std::vector<std::uint64_t>(m.types.begin(), m.types.end()), bytes);
  AppendPacked(BitsOf(m.weights), bytes);
  std::vector<std::uint64_t> numbers;
  for (const EdgeId& edge : m.edges) numbers.push_back(edge.partition);
  AppendPacked(numbers, bytes);
  numbers.clear();
  for (const EdgeId& edge : m.edges) numbers.push_back(edge.position);
  AppendPacked(numbers, bytes);
}

bool TakeEdgeFacts(std::span<const std::byte>& bytes, const Header& header, Minibatch& m) {
  const auto type = [](std::uint64_t number) { return static_cast<TypeId>(number); };
  const auto in_partition = [](std::uint64_t number) {
    return EdgeId{.partition = static_cast<PartitionId>(number), .position = 0};
  };
  std::vector<std::uint64_t> positions;
  if (!TakePacked(bytes, header[kTypes], 0, m.types, type) ||
      !TakePacked(bytes, header[kWeights], 0, m.weights, FloatOf) ||
      !TakePacked(bytes, header[kEdges], 0, m.edges, in_partition) ||
      !TakePacked(bytes, header[kEdges], 0, positions, [](std::uint64_t number) { return number; }))
    return false;
  for (std::size_t i = 0; i < positions.size(); ++i) m.edges[i].position = positions[i];
  return true;
}

bool TakeWeightedDegrees(std::span<const std::byte>& bytes, const Header& header,
                         std::vector<float>& degrees) {
  const bool follow = (header[kDegrees] & kWeightedDegreesFollow) != 0;
  return !follow || TakePacked(bytes, header[kRows], 0, degrees, FloatOf);
}

bool HasPairs(const Minibatch& m) {
  return !m.pairs.empty() || !m.negatives[0].empty() || !m.negatives[1].empty();
}

/// Appends the number of pairs, the number of vertex types of each side, and the type and the
/// number of vertices of each; then packed lists: sources, targets and types of all pairs, and the
/// vertices of each type.
void AppendPairs(const Minibatch& m, std::vector<std::byte>& bytes) {
  std::vector<std::uint64_t> head{m.pairs.size(), m.negatives[0].size(), m.negatives[1].size()};
  std::vector<std::uint64_t> vertices;
  for (const auto& side : m.negatives) {
    for (const MinibatchNegatives& negatives : side) {
      head.push_back(negatives.type);
      head.push_back(negatives.vertices.size());
      vertices.insert(vertices.end(), negatives.vertices.begin(), negatives.vertices.end());
    }
  }
  AppendNumbers(head, bytes);
  std::vector<std::uint64_t> numbers;
  for (const MinibatchPair& pair : m.pairs) numbers.push_back(pair.src);
  for (const MinibatchPair& pair : m.pairs) numbers.push_back(pair.dst);
  AppendPacked(numbers, bytes);
  AppendPacked(vertices, bytes);
  numbers.clear();
  for (const MinibatchPair& pair : m.pairs) numbers.push_back(pair.type);
  AppendPacked(numbers, bytes);
}

/// Takes the type and the number of vertices of each part of the negatives. `parts`: by side.
/// Returns false if `bytes` is too short, or has an impossible number.
bool TakeNegativeHeads(std::span<const std::byte>& bytes, std::span<const std::uint64_t> parts,
                       Minibatch& m, std::uint64_t& vertices) {
  for (std::size_t side = 0; side < 2; ++side) {
    std::vector<std::uint64_t> heads;
    if (parts[side] > bytes.size() || !TakeNumbers(bytes, 2 * parts[side], heads)) return false;
    const std::uint64_t most = kBitsOfByte * bytes.size();
    for (std::size_t i = 0; i < heads.size(); i += 2) {
      if (vertices > most || heads[i + 1] > most - vertices) return false;
      m.negatives[side].push_back({.type = static_cast<TypeId>(heads[i])});
      m.negatives[side].back().vertices.resize(heads[i + 1]);
      vertices += heads[i + 1];
    }
  }
  return true;
}

bool TakePairs(std::span<const std::byte>& bytes, const Header& header, Minibatch& m) {
  if ((header[kDegrees] & kPairsFollow) == 0) return true;
  std::vector<std::uint64_t> counts;
  std::vector<std::uint32_t> ends, vertices, types;
  std::uint64_t all = 0;
  if (!TakeNumbers(bytes, 3, counts) || counts[0] > kBitsOfByte * bytes.size() ||
      !TakeNegativeHeads(bytes, std::span(counts).subspan(1), m, all) ||
      !TakeWords(bytes, 2 * counts[0], ends) || !TakeWords(bytes, all, vertices) ||
      !TakeWords(bytes, counts[0], types))
    return false;
  const auto is_seed = [&](std::uint32_t local) { return local < header[kSeeds]; };
  if (!std::all_of(ends.begin(), ends.end(), is_seed) ||
      !std::all_of(vertices.begin(), vertices.end(), is_seed))
    return false;
  for (std::size_t i = 0; i < types.size(); ++i)
    m.pairs.push_back({ends[i], ends[types.size() + i], static_cast<TypeId>(types[i])});
  auto next = vertices.begin();
  for (auto& side : m.negatives) {
    for (MinibatchNegatives& negatives : side) {
      const auto end = next + static_cast<std::ptrdiff_t>(negatives.vertices.size());
      std::copy(next, end, negatives.vertices.begin());
      next = end;
    }
  }
  return true;
}

}  // namespace

// Layout: the header (Field); hop offsets; packed lists of rows, list lengths, neighbours, degrees
// and edge attributes; hop lists; the packed list of seeds by vertex; weighted degrees, and
// pairs with negatives, if any; and the slack that PackedNumbers needs. DecodeMinibatch reads the
// same sequence and checks that it ends exactly.
std::vector<std::byte> EncodeMinibatch(const Minibatch& m) {
  std::vector<std::uint64_t> lengths = Lengths(m.offsets);
  const std::size_t empty_lists = ZerosAtTheEnd(lengths, m.rows.size());
  lengths.resize(lengths.size() - empty_lists);
  Header header = {m.tag,           m.seed_count,     m.rows.size(),      m.hop_offsets.size(),
                   lengths.size(),  empty_lists,      m.neighbors.size(), m.degrees.size(),
                   m.types.size(),  m.weights.size(), m.edges.size(),     m.hop_lists.size(),
                   m.seed_of.size()};
  if (!m.weighted_degrees.empty()) header[kDegrees] |= kWeightedDegreesFollow;
  if (HasPairs(m)) header[kDegrees] |= kPairsFollow;
  std::vector<std::byte> bytes;
  AppendNumbers(header, bytes);
  AppendNumbers(m.hop_offsets, bytes);
  AppendPacked(std::vector<std::uint64_t>(m.rows.begin(), m.rows.end()), bytes);
  AppendPacked(lengths, bytes);
  AppendPacked(CodeNeighbors(m.neighbors, m.seed_count), bytes);
  AppendPacked(std::vector<std::uint64_t>(m.degrees.begin(), m.degrees.end()), bytes);
  AppendEdgeFacts(m, bytes);
  AppendNumbers(m.hop_lists, bytes);
  AppendPacked(std::vector<std::uint64_t>(m.seed_of.begin(), m.seed_of.end()), bytes);
  if (!m.weighted_degrees.empty()) AppendPacked(BitsOf(m.weighted_degrees), bytes);
  if (HasPairs(m)) AppendPairs(m, bytes);
  bytes.resize(bytes.size() + kPackedSlackBytes);
  return bytes;
}

Result<Minibatch> DecodeMinibatch(std::span<const std::byte> bytes) {
  Header header{};
  const Status corrupt = Status::Corruption("scratch minibatch: lengths are inconsistent");
  if (bytes.size() < sizeof(header)) return Fail(corrupt);
  std::memcpy(header.data(), bytes.data(), sizeof(header));
  bytes = bytes.subspan(sizeof(header));
  Minibatch m;
  m.tag = header[kTag];
  m.seed_count = header[kSeeds];
  const bool whole =
      header[kSeeds] <= header[kRows] && header[kEmptyLists] <= header[kRows] &&
      TakeNumbers(bytes, header[kHops], m.hop_offsets) && TakeRows(bytes, header[kRows], m.rows) &&
      TakeOffsets(bytes, header[kOffsets], header[kEmptyLists], m.offsets) &&
      TakeNeighbors(bytes, header[kNeighbors], m.seed_count, m.neighbors) &&
      TakeWords(bytes, header[kDegrees] & ~kFlags, m.degrees) && TakeEdgeFacts(bytes, header, m) &&
      TakeNumbers(bytes, header[kHopLists], m.hop_lists) &&
      TakeWords(bytes, header[kSeedOf], m.seed_of) &&
      TakeWeightedDegrees(bytes, header, m.weighted_degrees) && TakePairs(bytes, header, m) &&
      bytes.size() == kPackedSlackBytes;
  if (!whole) return Fail(corrupt);
  return m;
}

Result<SuperbatchWriter> SuperbatchWriter::Create(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, fs.CreateFile(path));
  return SuperbatchWriter(std::move(file));
}

Status SuperbatchWriter::Append(const Minibatch& minibatch) {
  const std::vector<std::byte> bytes = EncodeMinibatch(minibatch);
  entries_.push_back(
      {.offset_bytes = file_->size_bytes(), .size_bytes = bytes.size(), .crc32c = Crc32c(bytes)});
  return file_->Append(bytes);
}

Result<std::vector<SuperbatchEntry>> SuperbatchWriter::Finish() {
  // No sync: the file is worthless after a crash.
  RHIZOME_RETURN_IF_ERROR(file_->Close());
  return std::move(entries_);
}

Result<Minibatch> ReadMinibatch(ReadableFile& file, const SuperbatchEntry& entry) {
  std::vector<std::byte> bytes(entry.size_bytes);
  RHIZOME_RETURN_IF_ERROR(ReadExactly(file, entry.offset_bytes, bytes));
  if (Crc32c(bytes) != entry.crc32c) {
    return Fail(Status::Corruption(fmt::format("{}: minibatch at offset {}: wrong checksum",
                                               file.path().string(), entry.offset_bytes)));
  }
  return DecodeMinibatch(bytes);
}

}  // namespace internal
}  // namespace rhizome
