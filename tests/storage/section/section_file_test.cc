#include "storage/section/section_file.h"

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "storage/base/hash.h"
#include "storage/io/files.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Buffer = std::vector<std::byte>;

class MemorySinkOfSectionFile : public ByteSink {
 public:
  Status Append(std::span<const std::byte> bytes) override {
    if (bytes_.size() + bytes.size() > limit_) return Status::OutOfSpace("the sink is full");
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {};
  }
  Buffer& bytes() { return bytes_; }
  void set_limit(std::size_t limit) { limit_ = limit; }

 private:
  Buffer bytes_;
  std::size_t limit_ = SIZE_MAX;
};

const StoreId kId = *StoreId::Parse("00112233445566778899aabbccddeeff");
constexpr FileKind kSectionFileKind = FileKind::kOrder;

Result<SectionFile> Parse(Buffer bytes) {
  return SectionFile::Parse(std::move(bytes), "dir/file.ord", kSectionFileKind, kId);
}

template <typename T>
std::vector<T> Sequence(std::size_t count, T first) {
  std::vector<T> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// Returns a file of three sections, one of them empty, that takes about one and a half blocks.
Buffer SmallFile() {
  MemorySinkOfSectionFile sink;
  SectionFileWriter writer(sink, kSectionFileKind, kId);
  EXPECT_OK(writer.AddSection<std::uint32_t>(7, Sequence<std::uint32_t>(301, 5)));
  EXPECT_OK(writer.AddSection<std::uint64_t>(2, {}));
  EXPECT_OK(writer.AddSection<std::uint64_t>(9, Sequence<std::uint64_t>(613, 100)));
  EXPECT_OK(writer.AddSection<std::uint8_t>(1, Sequence<std::uint8_t>(3, 1)));
  EXPECT_OK(writer.Finish());
  return sink.bytes();
}

template <typename T>
void Put(Buffer& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}
template <typename T>
T Get(const Buffer& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

// Corrects all checksums from FORMAT.md alone, so that the checks behind them are tested.
void ResealOfSectionFile(Buffer& bytes) {
  const std::size_t footer = bytes.size() - 64;
  const auto crcs = static_cast<std::size_t>(Get<std::uint64_t>(bytes, footer + 8));
  for (std::size_t begin = 0, i = 0; begin < crcs; begin += 4096, ++i) {
    const auto block = std::span(bytes).subspan(begin, std::min<std::size_t>(4096, crcs - begin));
    Put(bytes, crcs + 4 * i, Crc32c(block));
  }
  Put(bytes, footer + 40, Crc32c(std::span(bytes).subspan(crcs, footer - crcs)));
  Put(bytes, footer + 52, Crc32c(std::span(bytes).subspan(footer, 52)));
}

TEST(SectionFileTest, GivesBackEverySection) {
  const Result<SectionFile> file = Parse(SmallFile());
  ASSERT_OK(file);
  const auto numbers = file->Section<std::uint32_t>(7, 301);
  ASSERT_OK(numbers);
  EXPECT_EQ(std::vector(numbers->begin(), numbers->end()), Sequence<std::uint32_t>(301, 5));
  const auto wide = file->Section<std::uint64_t>(9);
  ASSERT_OK(wide);
  EXPECT_EQ(std::vector(wide->begin(), wide->end()), Sequence<std::uint64_t>(613, 100));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide->data()) % 8, 0U);
  EXPECT_EQ(file->Section<std::uint64_t>(2)->size(), 0U);
  EXPECT_TRUE(file->Has(2));
  EXPECT_FALSE(file->Has(3));
  EXPECT_EQ(file->ElementBytes(1), 1U);
  EXPECT_EQ(file->ElementBytes(3), 0U);
  EXPECT_EQ(file->Count(1), 3U);
  EXPECT_EQ(file->Count(3), 0U);
  EXPECT_EQ(file->size_bytes(), SmallFile().size());
}

TEST(SectionFileTest, AskingForWhatIsNotThereIsCorruption) {
  const Result<SectionFile> file = Parse(SmallFile());
  ASSERT_OK(file);
  EXPECT_STATUS(file->Section<std::uint32_t>(3), kCorruption);
  EXPECT_STATUS(file->Section<std::uint32_t>(7, 300), kCorruption);
  EXPECT_STATUS(file->Section<std::uint64_t>(7, 301), kCorruption);
  EXPECT_STATUS(file->Section<std::uint64_t>(7), kCorruption);
}

// The offsets are from FORMAT.md. The test reads them without the code under test.
TEST(SectionFileTest, LiesOnDiskAsDescribed) {
  const Buffer bytes = SmallFile();
  EXPECT_EQ(std::memcmp(bytes.data(), "RZSECTIO", 8), 0);
  EXPECT_EQ(Get<std::uint32_t>(bytes, 8), 1U);
  EXPECT_EQ(Get<std::uint32_t>(bytes, 12), 2U);
  EXPECT_EQ(std::memcmp(bytes.data() + 16, kId.bytes.data(), 16), 0);
  const std::size_t footer = bytes.size() - 64;
  const auto table = static_cast<std::size_t>(Get<std::uint64_t>(bytes, footer));
  const auto crcs = static_cast<std::size_t>(Get<std::uint64_t>(bytes, footer + 8));
  // 64, then 1204 bytes -> 1280 (empty) -> 1280, 4904 bytes -> 6208, 3 bytes -> 6272.
  const std::uint64_t offsets[] = {64, 1280, 1280, 6208};
  const std::uint64_t counts[] = {301, 0, 613, 3};
  const std::uint32_t widths[] = {4, 8, 8, 1};
  const std::uint32_t kinds[] = {7, 2, 9, 1};
  EXPECT_EQ(table, 6272U);
  EXPECT_EQ(crcs, table + 4 * 32);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(Get<std::uint32_t>(bytes, table + 32 * i), kinds[i]);
    EXPECT_EQ(Get<std::uint32_t>(bytes, table + 32 * i + 4), widths[i]);
    EXPECT_EQ(Get<std::uint64_t>(bytes, table + 32 * i + 8), offsets[i]);
    EXPECT_EQ(Get<std::uint64_t>(bytes, table + 32 * i + 16), counts[i]);
  }
  EXPECT_EQ(Get<std::uint64_t>(bytes, footer + 16), bytes.size());
  EXPECT_EQ(Get<std::uint64_t>(bytes, footer + 24), 2U);
  EXPECT_EQ(footer, crcs + 2 * 4);
  EXPECT_EQ(std::memcmp(bytes.data() + bytes.size() - 8, "RZSECEND", 8), 0);
  Buffer resealed = bytes;
  ResealOfSectionFile(resealed);
  EXPECT_EQ(resealed, bytes);
}

TEST(SectionFileTest, EveryFlippedBitIsDetected) {
  const Buffer good = SmallFile();
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Buffer bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    const Result<SectionFile> file = Parse(std::move(bad));
    ASSERT_EQ(testing::AsStatus(file).code(), StatusCode::kCorruption) << "bit " << bit;
    ASSERT_NE(file.error().message().find("dir/file.ord"), std::string::npos);
  }
}

TEST(SectionFileTest, EveryTruncationAndAppendedGarbageAreDetected) {
  const Buffer good = SmallFile();
  for (std::size_t size = 0; size < good.size(); ++size) {
    Buffer bad(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_EQ(testing::AsStatus(Parse(std::move(bad))).code(), StatusCode::kCorruption) << size;
  }
  for (const std::size_t extra : {1, 8, 64, 4096}) {
    Buffer longer(good.size() + extra);
    std::copy(good.begin(), good.end(), longer.begin());
    EXPECT_STATUS(Parse(longer), kCorruption);
    std::copy(good.end() - 8, good.end(), longer.end() - static_cast<std::ptrdiff_t>(8));
    EXPECT_STATUS(Parse(longer), kCorruption);
  }
  Buffer doubled = good;
  doubled.insert(doubled.end(), good.begin(), good.end());
  EXPECT_STATUS(Parse(doubled), kCorruption);
}

TEST(SectionFileTest, AnotherStoresFileNamesBothIds) {
  const StoreId other = *StoreId::Parse("ffffffffffffffffffffffffffffffff");
  const Result<SectionFile> file = SectionFile::Parse(SmallFile(), "f", kSectionFileKind, other);
  EXPECT_STATUS(file, kCorruption);
  EXPECT_NE(file.error().message().find(kId.ToString()), std::string::npos);
  EXPECT_NE(file.error().message().find(other.ToString()), std::string::npos);
}

TEST(SectionFileTest, AnotherKindOfFileIsCorruption) {
  EXPECT_STATUS(SectionFile::Parse(SmallFile(), "f", FileKind::kPartition, kId), kCorruption);
}

TEST(SectionFileTest, ANewerVersionIsUnsupportedAndOneVersionAloneIsDamage) {
  Buffer newer = SmallFile();
  const std::size_t in_footer = newer.size() - 20;
  Put<std::uint32_t>(newer, 8, 2);
  ResealOfSectionFile(newer);
  EXPECT_STATUS(Parse(newer), kCorruption);
  Put<std::uint32_t>(newer, in_footer, 2);
  EXPECT_STATUS(Parse(newer), kUnsupported);  // a newer footer may have a different seal
  Buffer zero = SmallFile();
  Put<std::uint32_t>(zero, 8, 0);
  Put<std::uint32_t>(zero, in_footer, 0);
  ResealOfSectionFile(zero);
  EXPECT_STATUS(Parse(zero), kCorruption);
}

// These files have correct checksums but violate the format, like files of a forger or of a faulty
// later writer.
TEST(SectionFileTest, ForgedFieldsAreCorruption) {
  const Buffer good = SmallFile();
  const std::size_t footer = good.size() - 64;
  const std::size_t table = 6272;
  const auto refused = [&](std::size_t at, auto value, const char* what) {
    Buffer bad = good;
    Put(bad, at, value);
    ResealOfSectionFile(bad);
    EXPECT_EQ(testing::AsStatus(Parse(std::move(bad))).code(), StatusCode::kCorruption) << what;
  };
  refused(32, std::uint8_t{1}, "reserved byte of the preamble");
  refused(63, std::uint8_t{1}, "reserved byte of the preamble");
  refused(64 + 1204, std::uint8_t{1}, "padding between sections");
  refused(6211, std::uint8_t{1}, "padding before the table");
  refused(table, std::uint32_t{0}, "kind 0");
  refused(table, std::uint32_t{9}, "a kind twice");
  for (const std::uint32_t width : {0U, 3U, 16U, 0x80000000U})
    refused(table + 4, width, "width of elements");
  refused(table + 4, std::uint32_t{8}, "a section that grows into the next");
  refused(table + 8, std::uint64_t{128}, "offset");
  refused(table + 8, std::uint64_t{0}, "offset");
  refused(table + 16, std::uint64_t{300}, "count too small: the padding is not zero");
  refused(table + 16, std::uint64_t{1} << 62, "count whose bytes overflow");
  refused(table + 16, UINT64_MAX, "count whose bytes overflow");
  refused(table + 24, std::uint64_t{1}, "reserved field of an entry");
  refused(table + 3 * 32 + 16, std::uint64_t{65}, "last section reaches into the table");
  refused(footer, std::uint64_t{6208}, "table offset");
  refused(footer, UINT64_MAX, "table offset");
  refused(footer + 16, std::uint64_t{1}, "file length");
  refused(footer + 24, std::uint64_t{3}, "block count");
  refused(footer + 32, std::uint32_t{3}, "section count");
  refused(footer + 32, std::uint32_t{257}, "section count");
  refused(footer + 32, UINT32_MAX, "section count");
  refused(footer + 36, std::uint32_t{512}, "block size");
  refused(footer + 48, std::uint32_t{1}, "reserved field of the footer");
}

// The offset of the checksum table cannot be forged with ResealOfSectionFile, which follows it.
TEST(SectionFileTest, AForgedChecksumTableOffsetIsCorruption) {
  for (const std::uint64_t value : {UINT64_MAX, std::uint64_t{0}, std::uint64_t{6272}}) {
    Buffer bad = SmallFile();
    const std::size_t footer = bad.size() - 64;
    Put(bad, footer + 8, value);
    Put(bad, footer + 52, Crc32c(std::span(bad).subspan(footer, 52)));
    EXPECT_STATUS(Parse(std::move(bad)), kCorruption);
  }
}

TEST(SectionFileTest, RandomBytesWithValidMagicsNeverParse) {
  std::mt19937_64 random(testing::TestSeed());
  const Buffer good = SmallFile();
  for (int i = 0; i < 2000; ++i) {
    Buffer bad(128 + random() % 1000);
    for (std::byte& b : bad) b = static_cast<std::byte>(random());
    std::copy(good.begin(), good.begin() + 32, bad.begin());
    std::copy(good.end() - 20, good.end(), bad.end() - 20);
    EXPECT_STATUS(Parse(std::move(bad)), kCorruption);
  }
}

// A section written in pieces of any size yields the same file as one written at once, over many
// blocks.
TEST(SectionFileWriterTest, PiecesGiveTheSameFileAsTheWhole) {
  std::mt19937_64 random(testing::TestSeed());
  const auto values = Sequence<std::uint32_t>(200'000, 1);
  MemorySinkOfSectionFile whole;
  SectionFileWriter first(whole, kSectionFileKind, kId);
  ASSERT_OK(first.AddSection<std::uint32_t>(1, values));
  ASSERT_OK(first.AddSection<std::uint32_t>(2, values));
  ASSERT_OK(first.Finish());

  MemorySinkOfSectionFile pieces;
  SectionFileWriter second(pieces, kSectionFileKind, kId);
  for (const std::uint32_t kind : {1U, 2U}) {
    ASSERT_OK(second.BeginSection(kind, 4));
    for (auto rest = std::as_bytes(std::span(values)); !rest.empty();) {
      const std::size_t piece = std::min<std::size_t>(random() % 100'000, rest.size());
      ASSERT_OK(second.Append(rest.first(piece)));
      rest = rest.subspan(piece);
    }
  }
  ASSERT_OK(second.Finish());
  EXPECT_EQ(whole.bytes(), pieces.bytes());
  const Result<SectionFile> file = Parse(pieces.bytes());
  ASSERT_OK(file);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), file->Section<std::uint32_t>(2)->begin()));
}

// In some of these files the sections end exactly at the end of a block.
TEST(SectionFileWriterTest, FilesOfAnyLengthParse) {
  for (std::size_t count = 3800; count < 4300; ++count) {
    MemorySinkOfSectionFile sink;
    SectionFileWriter writer(sink, kSectionFileKind, kId);
    ASSERT_OK(writer.AddSection<std::uint8_t>(1, std::vector<std::uint8_t>(count, 7)));
    ASSERT_OK(writer.Finish());
    ASSERT_OK(Parse(sink.bytes()));
  }
  MemorySinkOfSectionFile sink;
  SectionFileWriter empty(sink, kSectionFileKind, kId);
  ASSERT_OK(empty.Finish());
  EXPECT_OK(Parse(sink.bytes()));
}

TEST(SectionFileWriterTest, WrongUseIsRefusedAndStaysRefused) {
  const auto fails = [](auto&& misuse) {
    MemorySinkOfSectionFile sink;
    SectionFileWriter writer(sink, kSectionFileKind, kId);
    EXPECT_STATUS(misuse(writer), kInvalidArgument);
    EXPECT_STATUS(writer.BeginSection(100, 4), kInvalidArgument);
    EXPECT_STATUS(writer.Finish(), kInvalidArgument);
  };
  const Buffer three(3);
  fails([](SectionFileWriter& w) { return w.BeginSection(0, 4); });
  fails([](SectionFileWriter& w) { return w.BeginSection(1, 3); });
  fails([](SectionFileWriter& w) { return w.BeginSection(1, 0); });
  fails([](SectionFileWriter& w) { return w.BeginSection(1, 16); });
  fails([&](SectionFileWriter& w) { return w.Append(three); });
  fails([](SectionFileWriter& w) {
    EXPECT_OK(w.BeginSection(1, 4));
    return w.BeginSection(1, 4);
  });
  fails([&](SectionFileWriter& w) {
    EXPECT_OK(w.BeginSection(1, 4));
    EXPECT_OK(w.Append(three));
    return w.BeginSection(2, 4);
  });
  fails([](SectionFileWriter& w) {
    EXPECT_OK(w.Finish());
    return w.Finish();
  });
  fails([](SectionFileWriter& w) {
    for (std::uint32_t kind = 1; kind <= 256; ++kind) EXPECT_OK(w.BeginSection(kind, 1));
    return w.BeginSection(257, 1);
  });
}

TEST(SectionFileWriterTest, AnErrorOfTheSinkIsKept) {
  for (const std::size_t limit : {0, 64, 100'000, 100'200}) {
    MemorySinkOfSectionFile sink;
    sink.set_limit(limit);
    SectionFileWriter writer(sink, kSectionFileKind, kId);
    Status status = writer.AddSection<std::uint8_t>(1, std::vector<std::uint8_t>(100'000));
    if (status.ok()) status = writer.Finish();
    EXPECT_STATUS(status, kOutOfSpace);
    EXPECT_STATUS(writer.Finish(), kOutOfSpace);
  }
}

TEST(SectionFileTest, LoadsFromDiskAndNamesThePath) {
  const testing::TempDir dir;
  FileSystem& fs = FileSystem::Posix();
  ASSERT_OK(WriteWholeFile(fs, dir / "good", SmallFile()));
  EXPECT_OK(SectionFile::Load(fs, dir / "good", kSectionFileKind, kId));
  EXPECT_STATUS(SectionFile::Load(fs, dir / "absent", kSectionFileKind, kId), kNotFound);
  Buffer bad = SmallFile();
  bad[5000] ^= std::byte{1};
  ASSERT_OK(WriteWholeFile(fs, dir / "bad", bad));
  const Result<SectionFile> file = SectionFile::Load(fs, dir / "bad", kSectionFileKind, kId);
  EXPECT_STATUS(file, kCorruption);
  EXPECT_NE(file.error().message().find((dir / "bad").string()), std::string::npos);
  EXPECT_NE(file.error().message().find("offset 4096"), std::string::npos);
}

}  // namespace
}  // namespace rhizome
