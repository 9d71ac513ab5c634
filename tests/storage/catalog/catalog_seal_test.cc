#include "storage/catalog/catalog_seal.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "storage/io/files.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::FakeFileSystem;

class CatalogSealTest : public ::testing::Test {
 protected:
  CatalogSealTest() {
    EXPECT_OK(fs_.CreateDirectory(kFolder));
    Put("CURRENT", "MANIFEST-000005\n");
    Put("MANIFEST-000005", "what RocksDB knows of its files");
    EXPECT_OK(SealCatalog(fs_, kFolder));
  }

  void Put(const std::string& name, std::string_view text) {
    EXPECT_OK(WriteWholeFile(fs_, kFolder / name, std::as_bytes(std::span(text))));
  }
  void Replace(const std::string& name, std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    EXPECT_OK(fs_.Overwrite(kFolder / name, {bytes.begin(), bytes.end()}));
  }
  std::vector<std::byte> BytesOf(const std::string& name) {
    return fs_.Files().at((kFolder / name).string());
  }
  StatusCode Check() { return CheckCatalogSeal(fs_, kFolder).code(); }

  static inline const Path kFolder = "/catalog";
  FakeFileSystem fs_;
};

TEST_F(CatalogSealTest, FitsWhatItSealed) { EXPECT_OK(CheckCatalogSeal(fs_, kFolder)); }

TEST_F(CatalogSealTest, EveryCutOfTheManifestIsDamage) {
  const auto whole = BytesOf("MANIFEST-000005");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_OK(fs_.Overwrite(kFolder / "MANIFEST-000005",
                            {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}));
    EXPECT_EQ(Check(), StatusCode::kCorruption) << size;
  }
}

TEST_F(CatalogSealTest, AnotherOrAMissingManifestIsDamage) {
  Put("MANIFEST-000004", "what it knew earlier");
  Replace("CURRENT", "MANIFEST-000004\n");
  EXPECT_EQ(Check(), StatusCode::kCorruption);
  for (const char* name : {"MANIFEST-000009\n", "MANIFEST-../../x\n", "", "x"}) {
    Replace("CURRENT", name);
    EXPECT_EQ(Check(), StatusCode::kCorruption) << name;
  }
}

// A crash can leave a torn seal. It counts as no seal until the next writer breaks it.
TEST_F(CatalogSealTest, ATornSealIsNone) {
  const auto whole = BytesOf("SEAL");
  Replace("MANIFEST-000005", "something else");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_OK(fs_.Overwrite(kFolder / "SEAL",
                            {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}));
    EXPECT_OK(CheckCatalogSeal(fs_, kFolder));
  }
}

TEST_F(CatalogSealTest, ABrokenSealStaysBroken) {
  EXPECT_OK(BreakCatalogSeal(fs_, kFolder));
  fs_.Crash(FakeFileSystem::CrashMode::kNamesUndone);
  EXPECT_FALSE(fs_.Files().contains((kFolder / "SEAL").string()));
  EXPECT_OK(BreakCatalogSeal(fs_, kFolder));
  Replace("MANIFEST-000005", "what RocksDB knows now");
  EXPECT_OK(CheckCatalogSeal(fs_, kFolder));
}

TEST_F(CatalogSealTest, ACatalogueThatCannotBeReadIsNotCalledDamaged) {
  fs_.FailWhen(
      [](auto operation, const Path& path) {
        return operation == FakeFileSystem::Operation::kRead &&
               path.filename() == "MANIFEST-000005";
      },
      EIO);
  EXPECT_EQ(Check(), StatusCode::kIoError);
}

}  // namespace
}  // namespace rhizome
