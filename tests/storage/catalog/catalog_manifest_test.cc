#include "storage/catalog/catalog_manifest.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "storage/catalog/catalog.h"
#include "testing/golden.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::GoldenStoreId;
using testing::TempDir;
using Mode = Catalog::Mode;

std::set<std::uint64_t> TablesIn(const Path& folder) {
  std::set<std::uint64_t> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".sst") out.insert(std::stoull(entry.path().stem()));
  return out;
}

/// Creates a catalogue that was opened and closed often, so that it has several tables.
void MakeTables(const Path& folder) {
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const Mode mode = i == 1 ? Mode::kCreate : Mode::kWrite;
    const auto catalog = Catalog::Open(FileSystem::Posix(), folder, mode, GoldenStoreId());
    ASSERT_OK(catalog);
    CommitRecord record;
    record.generation = record.manifest_version = i;
    record.sequence = i;
    ASSERT_OK((*catalog)->Commit(record));
    const std::vector<std::byte> record_bytes(10, std::byte{5});
    const DeltaCommit commit{.sequence = i, .record = record_bytes, .rows = {}};
    ASSERT_OK((*catalog)->AppendDelta(std::span(&commit, 1), /*sync=*/true));
  }
}

/// Returns the MANIFEST of a closed catalogue.
std::vector<std::byte> ManifestIn(const Path& folder) {
  const std::vector<std::byte> current = testing::ReadBytes(folder / "CURRENT");
  return testing::ReadBytes(folder / ManifestNameIn(current));
}

TEST(CatalogManifestTest, NamesTheTablesThatAreThere) {
  TempDir dir;
  MakeTables(dir / "c");
  const std::vector<std::byte> manifest = ManifestIn(dir / "c");
  const auto live = LiveTables(manifest);
  ASSERT_OK(live);
  EXPECT_GE(live->size(), 2U);
  std::set<std::uint64_t> numbers;
  for (const auto& [number, bytes] : *live) {
    numbers.insert(number);
    const std::string name = std::to_string(number);
    EXPECT_EQ(bytes, std::filesystem::file_size(
                         dir / "c" / (std::string(6 - name.size(), '0') + name + ".sst")));
  }
  EXPECT_EQ(numbers, TablesIn(dir / "c"));
}

// A RocksDB secondary skips a table that it cannot open, and shows the state before it.
TEST(CatalogManifestTest, AReaderIsToldOfEachTableThatIsMissingCutOrFlipped) {
  TempDir dir;
  MakeTables(dir / "c");
  for (const std::uint64_t number : TablesIn(dir / "c")) {
    std::string name = std::to_string(number);
    name = std::string(6 - name.size(), '0') + name + ".sst";
    for (const int injury : {0, 1, 2}) {
      const Path copy = dir / "copy";
      std::filesystem::remove_all(copy);
      std::filesystem::copy(dir / "c", copy);
      const auto size = std::filesystem::file_size(copy / name);
      if (injury == 0) std::filesystem::remove(copy / name);
      if (injury == 1) std::filesystem::resize_file(copy / name, size - 1);
      if (injury == 2) {
        std::fstream file(copy / name, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(size - 60));
        file.put('\x7f');
      }
      const auto catalog = Catalog::Open(FileSystem::Posix(), copy, Mode::kRead, GoldenStoreId());
      ASSERT_FALSE(catalog.has_value()) << name << " injury " << injury;
      EXPECT_STATUS(catalog, kCorruption);
      EXPECT_NE(catalog.error().message().find(name), std::string::npos)
          << catalog.error().ToString();
    }
  }
}

TEST(CatalogManifestTest, ALongNameOfTheDatabaseIsDamage) {
  TempDir dir;
  MakeTables(dir / "c");
  std::filesystem::resize_file(dir / "c" / "IDENTITY", std::uintmax_t{100} << 20);
  for (const Mode mode : {Mode::kRead, Mode::kWrite})
    EXPECT_STATUS(Catalog::Open(FileSystem::Posix(), dir / "c", mode, GoldenStoreId()),
                  kCorruption);
}

// RocksDB asserts that IDENTITY is a file, or does not exist.
TEST(CatalogManifestTest, AFolderInThePlaceOfTheNameOfTheDatabaseIsAnError) {
  TempDir dir;
  MakeTables(dir / "c");
  std::filesystem::remove(dir / "c" / "IDENTITY");
  std::filesystem::create_directory(dir / "c" / "IDENTITY");
  const auto catalog = Catalog::Open(FileSystem::Posix(), dir / "c", Mode::kWrite, GoldenStoreId());
  ASSERT_FALSE(catalog.has_value());
  EXPECT_EQ(catalog.error().code(), StatusCode::kIoError) << catalog.error().ToString();
  EXPECT_NE(catalog.error().message().find("IDENTITY"), std::string::npos);
}

TEST(CatalogManifestTest, BytesThatAreNoManifestAreDamage) {
  const std::vector<std::byte> none;
  EXPECT_TRUE(LiveTables(none).has_value());
  TempDir dir;
  MakeTables(dir / "c");
  const std::vector<std::byte> manifest = ManifestIn(dir / "c");
  for (std::size_t at = 0; at < manifest.size(); ++at) {
    auto bytes = manifest;
    bytes[at] ^= std::byte{16};
    EXPECT_STATUS(LiveTables(bytes), kCorruption);
  }
}

}  // namespace
}  // namespace rhizome
