#include <algorithm>
#include <span>
#include <vector>

#include "edits.h"
#include "input.h"
#include "seeds.h"
#include "storage/array/codec.h"
#include "storage/array/shard_file.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"

namespace {

using namespace rhizome;

ArrayEntry DrawEntry(fuzzing::Input& input) {
  ArrayEntry entry{.name = "x", .attributes = {}};
  entry.dim = 1 + input.Byte() % 5;
  entry.dtype = DataType::kInt32;
  entry.layout = ArrayLayout::kChunk;
  entry.codec.kind = static_cast<CodecKind>(1 + input.Byte() % 4);
  entry.codec.element_bytes = 4;
  entry.inner_rows = 1 + input.Byte() % 8;
  entry.chunk_rows = entry.inner_rows * (1 + input.Byte() % 6);
  entry.rows = 1 + input.Byte() % entry.chunk_rows;
  return entry;
}

FileEntry EntryOf(std::span<const std::byte> bytes) {
  return {"x", bytes.size(), Xxh3(bytes), Crc32c(bytes)};
}

/// Reads all rows. Returns nullopt if the shard is rejected.
std::optional<std::vector<std::byte>> ReadShard(const ArrayEntry& entry,
                                                std::span<const std::byte> bytes,
                                                const FileEntry& file) {
  const std::uint64_t tail_bytes = ShardTailBytes(entry);
  if (bytes.size() < tail_bytes) return {};
  const auto table =
      DecodeShardTail(entry, entry.rows, bytes.subspan(bytes.size() - tail_bytes), file);
  if (!table) {
    RHIZOME_CHECK(table.error().code() == StatusCode::kCorruption);
    return {};
  }
  std::vector<std::byte> rows(entry.rows * entry.row_bytes());
  const std::uint64_t inner_bytes = entry.inner_rows * entry.row_bytes();
  bool sound = true;
  for (std::uint64_t inner = 0; inner * inner_bytes < rows.size(); ++inner) {
    const InnerRange& range = table->ranges[inner];
    const auto to = std::span(rows).subspan(inner * inner_bytes);
    const Status status =
        DecodeInner(entry, *table, inner, bytes.subspan(range.offset_bytes, range.size_bytes),
                    to.first(std::min<std::uint64_t>(to.size(), inner_bytes)));
    RHIZOME_CHECK(status.ok() || status.code() == StatusCode::kCorruption);
    sound = sound && status.ok();
  }
  RHIZOME_CHECK(FindShardDamage(entry, entry.rows, bytes, file).empty() == sound);
  if (!sound) return {};
  return rows;
}

}  // namespace

// Reads a shard of random rows, which must return the rows that were written. With edits and the
// original checksums of the manifest it must be rejected, unless no byte that is read has changed.
// With checksums recomputed after the edits, reading must stay in bounds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> all(data, size);
  constexpr std::size_t kDrawnBytes = 64;
  fuzzing::Input input(all.first(std::min(size, kDrawnBytes)));
  const ArrayEntry entry = DrawEntry(input);
  std::vector<std::byte> rows(entry.rows * entry.row_bytes());
  for (std::byte& byte : rows) byte = static_cast<std::byte>(input.Byte());
  const auto shard = EncodeShard(entry, rows);
  RHIZOME_CHECK(shard.has_value() && shard->size() <= MaxShardBytes(entry));
  const FileEntry file = EntryOf(*shard);
  const auto whole = ReadShard(entry, *shard, file);
  RHIZOME_CHECK(whole.has_value() && *whole == rows);

  const auto edited = fuzzing::WithEdits(*shard, all.subspan(std::min(size, kDrawnBytes)));
  if (edited.size() == shard->size()) {
    const auto read = ReadShard(entry, edited, file);
    RHIZOME_CHECK(!read.has_value() || *read == rows);
  }
  static_cast<void>(ReadShard(entry, edited, EntryOf(edited)));
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (std::uint8_t codec = 0; codec < 4; ++codec) {
    Seed head = {2, codec, 3, 3, 9};
    for (std::uint8_t i = 0; head.size() < 64; ++i)
      head.push_back(static_cast<std::uint8_t>(i * 7));
    AddEdits(seeds, head, 400, 400);
  }
  return seeds;
}
