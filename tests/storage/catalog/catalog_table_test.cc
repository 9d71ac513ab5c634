#include "storage/catalog/catalog_table.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "storage/array_fixture.h"
#include "storage/catalog/catalog.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

using testing::FixedStoreId;
using testing::TempDir;
using Bytes = std::vector<std::byte>;

/// Returns a RocksDB table from a closed catalogue.
Bytes MakeTable() {
  const TempDir dir;
  const Path path = dir.path() / "c";
  const auto catalog =
      Catalog::Open(FileSystem::Posix(), path, Catalog::Mode::kCreate, FixedStoreId());
  EXPECT_OK(catalog);
  EXPECT_OK((*catalog)->Commit({.generation = 1}));
  EXPECT_OK((*catalog)->Close());
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".sst")
      return *ReadWholeFile(FileSystem::Posix(), entry.path(), 1 << 20);
  ADD_FAILURE() << "no table";
  return {};
}

/// Returns the tables of a RocksDB database with these column families, one table per family.
std::vector<Bytes> TablesOfFamilies(const std::vector<std::string>& names) {
  const TempDir dir;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions format;
  format.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(format));
  rocksdb::DB* opened = nullptr;
  EXPECT_TRUE(rocksdb::DB::Open(options, (dir.path() / "db").string(), &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  for (const std::string& name : names) {
    rocksdb::ColumnFamilyHandle* family = nullptr;
    EXPECT_TRUE(db->CreateColumnFamily(options, name, &family).ok());
    EXPECT_TRUE(db->Put({}, family, "key", "value").ok());
    EXPECT_TRUE(db->Flush({}, family).ok());
    EXPECT_TRUE(db->DestroyColumnFamilyHandle(family).ok());
  }
  std::vector<Bytes> tables;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path() / "db"))
    if (entry.path().extension() == ".sst")
      tables.push_back(*ReadWholeFile(FileSystem::Posix(), entry.path(), 1 << 20));
  EXPECT_EQ(tables.size(), names.size());
  return tables;
}

Status Check(const Bytes& table) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    if (offset > table.size() || out.size() > table.size() - offset)
      return Status::Corruption("read behind the end");
    std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return Status::Ok();
  };
  const auto opened = CatalogTable::Open(table.size(), read);
  if (!opened) return opened.error();
  for (std::size_t block = 0; block < opened->block_count(); ++block) {
    const auto [begin, end] = opened->PlaceOf(block);
    RHIZOME_RETURN_IF_ERROR(
        opened->CheckBlock(block, std::span(table).subspan(begin, end - begin)));
  }
  return Status::Ok();
}

Bytes Flipped(Bytes table, std::size_t bit) {
  table[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  return table;
}

TEST(CatalogTableTest, ATableOfRocksDbIsSound) { EXPECT_OK(Check(MakeTable())); }

// The repair creates the column families that tables name, and RocksDB ends the process if two
// family ids have the same name.
TEST(CatalogTableTest, TablesOfOtherFamiliesAreRefused) {
  for (const Bytes& table : TablesOfFamilies({"meta", "delta"})) EXPECT_OK(Check(table));
  for (const Bytes& table : TablesOfFamilies({"delta", "meta", "delta2"}))
    EXPECT_EQ(Check(table).code(), StatusCode::kCorruption);
}

TEST(CatalogTableTest, FlippedBitsOfThePropertiesAreFound) {
  const Bytes table = MakeTable();
  const std::string_view name = "leveldb.BytewiseComparator";
  const auto wanted = std::as_bytes(std::span(name));
  const auto found = std::search(table.begin(), table.end(), wanted.begin(), wanted.end());
  ASSERT_NE(found, table.end());
  const auto at = static_cast<std::size_t>(found - table.begin());
  for (std::size_t bit = at * 8; bit < (at + name.size()) * 8; ++bit)
    EXPECT_EQ(Check(Flipped(table, bit)).code(), StatusCode::kCorruption) << bit;
}

// The footer contains the checksum type, the offset of the index, and the magic number. Newer
// format versions have a checksum of the footer.
TEST(CatalogTableTest, FlippedBitsOfTheFooterAreFound) {
  const Bytes table = MakeTable();
  const std::size_t footer = table.size() - 53;
  for (std::size_t bit = footer * 8; bit < (footer + 3) * 8; ++bit)
    EXPECT_EQ(Check(Flipped(table, bit)).code(), StatusCode::kCorruption) << bit;
  for (std::size_t bit = (table.size() - 8) * 8; bit < table.size() * 8; ++bit)
    EXPECT_EQ(Check(Flipped(table, bit)).code(), StatusCode::kCorruption) << bit;
}

TEST(CatalogTableTest, ACutTableIsDamage) {
  const Bytes table = MakeTable();
  for (std::size_t size = 0; size < table.size(); ++size)
    EXPECT_EQ(Check({table.begin(), table.begin() + static_cast<std::ptrdiff_t>(size)}).code(),
              StatusCode::kCorruption)
        << size;
}

// For any footer, no read exceeds the size limit of its block.
TEST(CatalogTableTest, RubbishIsRefused) {
  std::mt19937_64 rng(testing::TestSeed());
  const Bytes table = MakeTable();
  for (int round = 0; round < 2000; ++round) {
    Bytes other = table;
    for (int change = 0; change < 4; ++change)
      other[other.size() - 1 - 12 - rng() % 41] = static_cast<std::byte>(rng());
    static_cast<void>(Check(other));
  }
}

}  // namespace
}  // namespace rhizome
