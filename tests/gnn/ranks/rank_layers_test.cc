#include "gnn/ranks/rank_layers.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "rhizome/transport.h"
#include "storage/base/hash.h"
#include "storage/io/files.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using ::testing::HasSubstr;

/// Ways in which rank 0 may send a chunk other than the one that it has finished.
enum class Deed { kNothing, kOtherBytes, kOtherNumber, kPathOutside };

std::vector<std::byte> BytesOfChunk(std::uint64_t chunk) {
  return std::vector<std::byte>(1000 + chunk, static_cast<std::byte>(chunk + 1));
}

/// Result of an exchange of one chunk each between two ranks: the status of rank 1 and the chunks
/// that it adopted.
struct Exchanged {
  Status status;
  std::map<std::uint64_t, std::vector<std::byte>> adopted;
};

Exchanged ExchangeChunks(Deed deed) {
  const testing::TempDir folder;
  Exchanged exchanged;
  const auto ranks = LocalRanks::Create(2, {});
  EXPECT_OK(ranks);
  static_cast<void>((*ranks)->Run([&](Transport& transport) -> Status {
    FileSystem& fs = FileSystem::Posix();
    const std::uint64_t chunk = transport.rank();
    const bool guilty = chunk == 0 && deed != Deed::kNothing;
    const Path root = folder / std::to_string(chunk);
    std::filesystem::create_directories(root);
    const std::vector<std::byte> bytes = BytesOfChunk(chunk);
    FinishedChunk finished{.file = {.path = "c" + std::to_string(chunk),
                                    .size_bytes = bytes.size(),
                                    .xxh3 = Xxh3(bytes)},
                           .accuracy = {}};
    if (guilty && deed == Deed::kPathOutside) finished.file.path = "../c0";
    RHIZOME_RETURN_IF_ERROR(WriteWholeFile(
        fs, root / finished.file.path,
        guilty && deed == Deed::kOtherBytes ? std::vector<std::byte>(bytes.size()) : bytes));
    const std::uint64_t number = guilty && deed == Deed::kOtherNumber ? 1 : chunk;
    RankLayers layers(transport);
    const Status status = layers.Exchange(
        fs, root, 2, {{number, finished}}, [&](std::uint64_t other, const FinishedChunk& came) {
          if (transport.rank() == 1) {
            const auto file = ReadWholeFile(fs, root / came.file.path, came.file.size_bytes);
            EXPECT_OK(file);
            exchanged.adopted[other] = *file;
          }
          return Status::Ok();
        });
    if (transport.rank() == 1) exchanged.status = status;
    return status;
  }));
  return exchanged;
}

TEST(RankLayersTest, AChunkIsAdoptedWithItsFile) {
  const Exchanged exchanged = ExchangeChunks(Deed::kNothing);
  EXPECT_OK(exchanged.status);
  ASSERT_EQ(exchanged.adopted.size(), 1u);
  EXPECT_EQ(exchanged.adopted.at(0), BytesOfChunk(0));
}

void ExpectRefused(Deed deed, const std::string& what) {
  const Exchanged exchanged = ExchangeChunks(deed);
  EXPECT_STATUS(exchanged.status, kCorruption);
  EXPECT_THAT(exchanged.status.message(), HasSubstr("rank 0"));
  EXPECT_THAT(exchanged.status.message(), HasSubstr(what));
  EXPECT_TRUE(exchanged.adopted.empty());
}

/// The file does not have the described bytes, as on a disk that has lost it since.
TEST(RankLayersTest, AFileThatIsNotTheDescribedOneIsRefused) {
  ExpectRefused(Deed::kOtherBytes, "a file that does not match its description");
}

TEST(RankLayersTest, AnotherChunkIsRefused) {
  ExpectRefused(Deed::kOtherNumber, "another description");
}

TEST(RankLayersTest, APathThatLeadsOutIsRefused) {
  ExpectRefused(Deed::kPathOutside, "a file outside its folder");
}

}  // namespace
}  // namespace rhizome
