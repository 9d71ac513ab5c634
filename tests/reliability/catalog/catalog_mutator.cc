// Implements MutateCatalog: chooses a file, changes bytes of a table (MutateTable) or a record of a
// log or MANIFEST (MutateLog), recomputes the checksums of blocks and records, and rewrites the
// catalogue's seal.

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string_view>

#include "reliability/catalog/catalog_mutation.h"
#include "storage/base/bytes.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/catalog/catalog_log.h"
#include "storage/catalog/rocks_unpacker.h"

namespace rhizome::testing {
namespace {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

struct Place {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

constexpr std::size_t kFooterBytes = 53;
constexpr std::size_t kRecordHeadBytes = 7;

std::size_t Below(Random& random, std::size_t bound) { return random() % bound; }

/// Overwrites some bytes with values that are likely to matter.
void ChangeBytes(std::span<std::byte> bytes, Random& random) {
  const std::size_t at = Below(random, bytes.size());
  switch (Below(random, 5)) {
    case 0:
      bytes[at] ^= static_cast<std::byte>(1U << Below(random, 8));
      break;
    case 1:
      bytes[at] = static_cast<std::byte>(random());
      break;
    case 2:  // a number that is too small or too large
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                  std::min<std::size_t>(bytes.size() - at, 1U << Below(random, 4)),
                  Below(random, 2) == 0 ? std::byte{0xFF} : std::byte{0});
      break;
    case 3: {  // off by one
      const int step = Below(random, 2) == 0 ? 1 : -1;
      bytes[at] = static_cast<std::byte>(std::to_integer<int>(bytes[at]) + step);
      break;
    }
    default: {  // bytes from elsewhere in the block
      const std::size_t from = Below(random, bytes.size());
      const std::size_t count =
          std::min({std::size_t{1} + Below(random, 16), bytes.size() - at, bytes.size() - from});
      std::memmove(bytes.data() + at, bytes.data() + from, count);
    }
  }
}

/// Returns the positions of a table's blocks, without their trailers.
std::vector<Place> BlocksOf(const Bytes& table) {
  std::vector<Place> out;
  if (table.size() < kFooterBytes) return out;
  const auto all = std::as_bytes(std::span(table));
  const auto add = [&](Unpacker& in) {
    const std::size_t offset = in.Number();
    out.push_back({offset, in.Number()});
    return out.back();
  };
  const auto values = [&](const Place& block, bool sized) {  // entries without shared keys
    const std::size_t restarts =
        LoadLittle<std::uint32_t>(table.data() + block.offset + block.bytes - 4);
    Unpacker in(all.subspan(block.offset, block.bytes - 4 * (restarts + 1)));
    while (!in.empty()) {
      in.Number();
      const std::uint64_t own = in.Number();
      if (sized) in.Number();
      in.Take(own);
      add(in);
    }
  };
  Unpacker in(all.last(kFooterBytes).subspan(1));
  const Place names = add(in);
  const Place index = add(in);
  values(names, true);
  values(index, false);
  return out;
}

void SumBlock(Bytes& table, const Place& block) {
  const bool crc = table[table.size() - kFooterBytes] == std::byte{1};
  const std::span<const std::byte> with_type =
      std::span(table).subspan(block.offset, block.bytes + 1);
  const auto xxh = [&] {
    return static_cast<std::uint32_t>(XXH3_64bits(with_type.data(), block.bytes)) ^
           std::to_integer<std::uint32_t>(with_type.back()) * 0x6B9083D9U;
  };
  StoreLittle<std::uint32_t>(table.data() + block.offset + block.bytes + 1,
                             crc ? MaskedLogCrc(Crc32c(with_type)) : xxh());
}

std::string MutateTable(Bytes& table, Random& random) {
  const std::vector<Place> blocks = BlocksOf(table);
  if (blocks.empty()) return "nothing";
  if (Below(random, 16) == 0) {
    ChangeBytes(std::span(table).last(kFooterBytes), random);
    return "footer";
  }
  // The few blocks that describe the table are chosen as often as the many data blocks.
  const std::size_t some =
      Below(random, 2) == 0 ? std::min<std::size_t>(blocks.size(), 4) : blocks.size();
  const Place block = blocks[Below(random, some)];
  const auto bytes = std::span(table).subspan(block.offset, block.bytes);
  // Lengths and offsets are at the end of a block and of each entry.
  if (Below(random, 4) == 0)
    ChangeBytes(bytes.last(std::min<std::size_t>(bytes.size(), 12)), random);
  else
    ChangeBytes(bytes, random);
  if (Below(random, 40) == 0)
    table[block.offset + block.bytes] = static_cast<std::byte>(random() % 10);
  SumBlock(table, block);
  return "block at " + std::to_string(block.offset);
}

/// Writes records in the format of RocksDB's log.
Bytes LogOf(const std::vector<Bytes>& records) {
  Bytes out;
  for (const Bytes& record : records) {
    std::size_t at = 0;
    do {
      std::size_t left = kLogBlockBytes - out.size() % kLogBlockBytes;
      if (left < kRecordHeadBytes) {
        out.resize(out.size() + left);
        left = kLogBlockBytes;
      }
      const std::size_t count = std::min(left - kRecordHeadBytes, record.size() - at);
      const bool first = at == 0;
      const bool last = at + count == record.size();
      const std::size_t head = out.size();
      out.resize(head + kRecordHeadBytes + count);
      out[head + 6] = std::byte(first ? (last ? 1 : 2) : (last ? 4 : 3));
      StoreLittle(out.data() + head + 4, static_cast<std::uint16_t>(count));
      std::copy_n(record.begin() + static_cast<std::ptrdiff_t>(at), count,
                  out.begin() + static_cast<std::ptrdiff_t>(head + kRecordHeadBytes));
      StoreLittle(out.data() + head,
                  MaskedLogCrc(Crc32c(std::span(out).subspan(head + 6, 1 + count))));
      at += count;
    } while (at < record.size());
  }
  return out;
}

std::vector<Bytes> RecordsOf(const Bytes& log) {
  std::vector<Bytes> records;
  LogRecords parts;
  const LogScan scan = ScanLog(log);
  parts.Read(std::span(log).first(scan.good_bytes), 0, [&](std::span<const std::byte> record) {
    records.emplace_back(record.begin(), record.end());
    return true;
  });
  return records;
}

std::string MutateLog(Bytes& log, Random& random) {
  std::vector<Bytes> records = RecordsOf(log);
  if (records.empty()) return "nothing";
  const std::size_t which = Below(random, records.size());
  Bytes& record = records[which];
  const std::size_t changes = 1 + Below(random, 2);
  for (std::size_t i = 0; i < changes && !record.empty(); ++i) {
    const auto at = record.begin() + static_cast<std::ptrdiff_t>(Below(random, record.size()));
    switch (Below(random, 8)) {
      case 0:
        record.insert(at, static_cast<std::byte>(random()));
        break;
      case 1:
        record.erase(at);
        break;
      case 2:
        ChangeBytes(std::span(record).first(std::min<std::size_t>(record.size(), 20)), random);
        break;
      default:
        ChangeBytes(record, random);
    }
  }
  log = LogOf(records);
  if (Below(random, 20) == 0) {  // changes the type of a record fragment
    log[6] = static_cast<std::byte>(random() % 12);
    const auto bytes = LoadLittle<std::uint16_t>(log.data() + 4);
    StoreLittle(log.data(), MaskedLogCrc(Crc32c(std::span(log).subspan(6, 1 + bytes))));
  }
  return "record " + std::to_string(which);
}

/// Rewrites the seal as specified in "Catalogue seal" of FORMAT.md.
void Seal(CatalogFiles& files) {
  const auto current = files.find("CURRENT");
  if (!files.contains("SEAL") || current == files.end()) return;
  std::string name(reinterpret_cast<const char*>(current->second.data()), current->second.size());
  name.resize(name.find_last_not_of('\n') + 1);
  const Bytes& manifest = files[name];
  constexpr std::string_view kMagic = "RZCSEAL1";
  ByteWriter out;
  out.Bytes(std::as_bytes(std::span(kMagic)));
  out.Number(static_cast<std::uint64_t>(manifest.size()));
  out.Bytes(Xxh3(manifest));
  out.String(name);
  out.Number(Crc32c(out.bytes()));
  files["SEAL"] = out.Take();
}

}  // namespace

std::string MutateCatalog(CatalogFiles& files, std::uint64_t seed, const std::string& only) {
  Random random(seed);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files) {
    const bool known =
        name.ends_with(".sst") || name.ends_with(".log") || name.starts_with("MANIFEST-");
    if (known && !bytes.empty() && name.find(only) != std::string::npos) names.push_back(name);
  }
  if (names.empty()) return "nothing";
  const std::string name = names[Below(random, names.size())];
  const std::string what =
      name.ends_with(".sst") ? MutateTable(files[name], random) : MutateLog(files[name], random);
  Seal(files);
  return name + ", " + what;
}

}  // namespace rhizome::testing
