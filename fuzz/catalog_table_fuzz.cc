#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "seeds.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/catalog/catalog_log.h"
#include "storage/catalog/catalog_table.h"
#include "storage/io/files.h"

// Opens arbitrary bytes as a RocksDB table, in seven of eight cases with a correct magic and
// version. The parser must not read beyond the file, and its reads are limited to the size of a
// block.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kVersionBytes = 12;
  std::vector<std::byte> table(size);
  std::copy_n(reinterpret_cast<const std::byte*>(data), size, table.begin());
  if (size >= kVersionBytes && data[0] % 8 != 0) {
    rhizome::StoreLittle(table.data() + size - 12, std::uint32_t{5});
    rhizome::StoreLittle(table.data() + size - 8, std::uint64_t{0x88E241B785F4CFF7});
  }
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    RHIZOME_CHECK(offset <= table.size() && out.size() <= table.size() - offset);
    std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return rhizome::Status::Ok();
  };
  const auto opened = rhizome::CatalogTable::Open(table.size(), read);
  for (std::size_t block = 0; opened && block < opened->block_count(); ++block) {
    const auto [begin, end] = opened->PlaceOf(block);
    static_cast<void>(opened->CheckBlock(block, std::span(table).subspan(begin, end - begin)));
  }
  return 0;
}

namespace {

/// Has RocksDB write a table with the given checksum type.
std::vector<std::byte> MakeTable(rocksdb::ChecksumType checksum) {
  std::string path = (std::filesystem::temp_directory_path() / "catalog_table.XXXXXX").string();
  const int file = mkstemp(path.data());
  RHIZOME_CHECK(file >= 0);
  close(file);
  rocksdb::BlockBasedTableOptions table;
  table.checksum = checksum;
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  RHIZOME_CHECK(writer.Open(path).ok() && writer.Put("key", "value").ok() && writer.Finish().ok());
  const auto bytes = rhizome::ReadWholeFile(rhizome::FileSystem::Posix(), path, 1 << 20);
  RHIZOME_CHECK(bytes.has_value());
  std::filesystem::remove(path);
  return *bytes;
}

}  // namespace

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (const auto kind : {rocksdb::kCRC32c, rocksdb::kXXH3, rocksdb::kNoChecksum}) {
    const Seed table = Joined({}, MakeTable(kind));
    AddChanged(seeds, table, 0, 100);
    AddChanged(seeds, table, table.size() - 53, 212);  // the footer
    Seed raw = table;                                  // the target does not correct the end
    raw[0] = 0;
    AddChanged(seeds, raw, raw.size() - 12, 48);
    if (kind != rocksdb::kCRC32c) continue;
    // Changes in the list of meta blocks, with a correct checksum. The first name in the list
    // belongs to the properties block.
    constexpr std::string_view kName = "rocksdb.properties";
    const auto found = std::search(table.begin(), table.end(), kName.begin(), kName.end());
    RHIZOME_CHECK(found != table.end());
    const auto begin = static_cast<std::size_t>(found - table.begin()) - 3;  // behind its lengths
    const auto sum_of = [&](const Seed& bytes, std::size_t end) {
      return MaskedLogCrc(Crc32c(std::as_bytes(std::span(bytes)).subspan(begin, end - begin)));
    };
    std::size_t end = begin + kName.size();
    while (end + 4 < table.size() &&
           LoadLittle<std::uint32_t>(std::as_bytes(std::span(table)).data() + end) !=
               sum_of(table, end))
      ++end;
    RHIZOME_CHECK(end + 4 < table.size());
    for (std::size_t at = begin; at < end; ++at) {
      for (const std::uint8_t value : {0, 1, 127, 255}) {
        Seed changed = table;
        changed[at] = value;
        StoreLittle(reinterpret_cast<std::byte*>(changed.data()) + end, sum_of(changed, end));
        seeds.push_back(changed);
      }
    }
  }
  return seeds;
}
