#include "storage/section/block_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <random>
#include <span>
#include <vector>

#include "storage/base/hash.h"
#include "storage/io/files.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

constexpr FileKind kKind = FileKind::kPartition;

class MemorySink : public ByteSink {
 public:
  Status Append(std::span<const std::byte> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {};
  }
  std::vector<std::byte> bytes_;
};

/// A section file of random bytes on disk. It is so long that Load reads several pieces of 1 MiB.
class BlockFileTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::mt19937_64 rng(testing::TestSeed());
    std::vector<std::uint64_t> numbers(330000 + rng() % 5000);
    for (std::uint64_t& number : numbers) number = rng();
    MemorySink sink;
    SectionFileWriter writer(sink, kKind, StoreId{});
    ASSERT_OK(writer.AddSection<std::uint64_t>(1, numbers));
    ASSERT_OK(writer.Finish());
    bytes_ = std::move(sink.bytes_);
    ASSERT_OK(WriteWholeFile(FileSystem::Posix(), path_, bytes_));
    auto opened = BlockFile::Open(FileSystem::Posix(), path_, kKind, StoreId{}, GetParam());
    ASSERT_OK(opened);
    file_ = *std::move(opened);
    covered_ = file_->footer().crc_table_offset;
  }

  /// Loads [begin, end) with `options` and compares the result with the bytes of the file.
  Status Load(std::uint64_t begin, std::uint64_t end, const IoQueueOptions& options) {
    auto memory = AlignedBuffer::Allocate(end - begin + kSectionBlockBytes);
    RHIZOME_RETURN_IF_ERROR(testing::AsStatus(memory));
    RHIZOME_RETURN_IF_ERROR(file_->Load(begin, end, memory->bytes(), options));
    EXPECT_TRUE(std::ranges::equal(memory->bytes().first(end - begin),
                                   std::span(bytes_).subspan(begin, end - begin)));
    return Status::Ok();
  }

  const TempDir folder_;
  const Path path_ = folder_.path() / "part-0000.adj";
  std::vector<std::byte> bytes_;
  std::unique_ptr<BlockFile> file_;
  std::uint64_t covered_ = 0;
};

TEST_P(BlockFileTest, AnyRangeIsLoaded) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const IoMaker maker : {IoMaker::kAuto, IoMaker::kPread}) {
    EXPECT_OK(Load(0, covered_, {.maker = maker, .depth = 4}));
    for (int round = 0; round < 8; ++round) {
      const std::uint64_t begin = rng() % covered_ / kSectionBlockBytes * kSectionBlockBytes;
      const std::uint64_t end = begin + 1 + rng() % (covered_ - begin);
      EXPECT_OK(Load(begin, end, {.maker = maker, .depth = 1 + static_cast<unsigned>(rng() % 4)}));
    }
  }
}

TEST_P(BlockFileTest, SingleReadsAgreeWithTheFile) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 30; ++round) {
    const std::uint64_t offset = rng() % covered_;
    const std::uint64_t size = rng() % std::min<std::uint64_t>(20000, covered_ - offset);
    const auto read = file_->Read(offset, size);
    ASSERT_OK(read);
    ASSERT_EQ(read->size(), size);
    EXPECT_TRUE(std::ranges::equal(*read, std::span(bytes_).subspan(offset, size)));
  }
  EXPECT_STATUS(file_->Read(covered_, 1), kCorruption);
  EXPECT_STATUS(file_->Read(covered_ + 1, 0), kCorruption);
  EXPECT_STATUS(file_->Read(1, UINT64_MAX), kCorruption);
}

TEST_P(BlockFileTest, TheSumOfTheFileFollowsFromItsEnds) {
  EXPECT_EQ(file_->crc32c(), Crc32c(bytes_));
}

// In successive runs each read fails, is short, is interrupted or returns changed bytes. An error
// names the file. After a short or interrupted read the bytes are correct. The next Load succeeds.
TEST_P(BlockFileTest, EveryFailedReadOfALoadIsNoticed) {
  enum class Fault { kEio, kShort, kEintr, kFlip };
  std::mt19937_64 rng(testing::TestSeed());
  for (const IoMaker maker : {IoMaker::kAuto, IoMaker::kPread}) {
    for (const Fault fault : {Fault::kEio, Fault::kShort, Fault::kEintr, Fault::kFlip}) {
      for (int nth = 0; nth < 3; ++nth) {
        std::atomic<int> calls{0};
        const std::uint64_t place = rng() % 4096;  // may be in the last piece, too
        IoQueueOptions options{.maker = maker, .depth = 2};
        options.fault_hook = [&](const ReadRequest& request, std::int64_t outcome) {
          if (calls++ != nth || outcome < 0) return outcome;
          if (fault == Fault::kEio) return std::int64_t{-EIO};
          if (fault == Fault::kEintr) return std::int64_t{-EINTR};
          if (fault == Fault::kShort) return std::min<std::int64_t>(outcome, 4096);
          request.buffer[place] ^= std::byte{16};
          return outcome;
        };
        const Status status = Load(0, covered_, options);
        ASSERT_GT(calls, nth);
        if (fault == Fault::kEio) {
          EXPECT_STATUS(status, kIoError);
        } else if (fault == Fault::kFlip) {
          EXPECT_STATUS(status, kCorruption);
          EXPECT_THAT(status.message(), HasSubstr("offset"));
        } else {
          EXPECT_OK(status);
        }
        if (!status.ok()) {
          EXPECT_THAT(status.message(), HasSubstr("part-0000.adj"));
        }
        EXPECT_OK(Load(0, covered_, {.maker = maker}));
      }
    }
  }
}

// The file is truncated while it is open: at its end, within a piece, and to zero bytes.
TEST_P(BlockFileTest, AFileThatWasCutIsCorrupt) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const std::uint64_t left :
       {covered_ - 1 - rng() % 4000, rng() % covered_, std::uint64_t{0}}) {
    std::filesystem::resize_file(path_, left);
    for (const IoMaker maker : {IoMaker::kAuto, IoMaker::kPread}) {
      const Status status = Load(0, covered_, {.maker = maker});
      EXPECT_STATUS(status, kCorruption);
      EXPECT_THAT(status.message(), HasSubstr("part-0000.adj"));
    }
    EXPECT_STATUS(file_->Read(covered_ - 8, 8), kCorruption);
    EXPECT_STATUS(BlockFile::Open(FileSystem::Posix(), path_, kKind, StoreId{}, GetParam()),
                  kCorruption);
  }
}

INSTANTIATE_TEST_SUITE_P(DirectOrNot, BlockFileTest, ::testing::Bool());

}  // namespace
}  // namespace rhizome
