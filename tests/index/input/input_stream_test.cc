#include "index/input/input_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "storage/io/files.h"
#include "testing/compressed.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using ::testing::AllOf;
using testing::Bzip2;
using testing::Gzip;
using ::testing::HasSubstr;
using testing::Xz;
using testing::Zstd;

void Write(const Path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Returns the whole content, read in pieces of `piece` bytes.
Result<std::string> ReadAll(const Path& path, std::size_t piece = 1000) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(FileSystem::Posix(), path));
  std::string all;
  std::string buffer(piece, '\0');
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes,
                             stream->Read(std::as_writable_bytes(std::span(buffer))));
    if (bytes == 0) return all;
    all.append(buffer, 0, bytes);
  }
}

std::string Text(std::uint64_t seed, std::size_t bytes) {
  std::mt19937_64 random(seed);
  std::string text;
  while (text.size() < bytes) text += std::to_string(random() % 100000) + "\n";
  text.resize(bytes);
  return text;
}

TEST(InputStreamTest, EveryFormatGivesTheSameBytesForAnyPiece) {
  testing::TempDir dir;
  const std::uint64_t seed = testing::TestSeed();
  for (const std::size_t bytes : {0U, 1U, 999U, 70000U, 1000000U}) {
    const std::string text = Text(seed, bytes);
    for (const char* name : {"a.tsv", "a.tsv.gz", "a.tsv.zst", "a.tsv.bz2", "a.tsv.xz"}) {
      testing::WriteInput(dir / name, text);
      for (const std::size_t piece : {std::size_t{7}, std::size_t{4096}, std::size_t{3000000}}) {
        if (piece == 7 && bytes > 100000) continue;
        const auto read = ReadAll(dir / name, piece);
        ASSERT_OK(read);
        EXPECT_TRUE(*read == text) << name << " " << bytes << " " << piece;
      }
    }
  }
}

// The bytes are the output of: printf 'hello hello hello hello\n' | gzip -n -9
TEST(InputStreamTest, ReadsWhatGzipWrites) {
  testing::TempDir dir;
  Write(dir / "h.gz",
        std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27"
                    "\xb9\x00\x00\x88\x59\x0b\x18\x00\x00\x00",
                    29));
  const auto read = ReadAll(dir / "h.gz");
  ASSERT_OK(read);
  EXPECT_EQ(*read, "hello hello hello hello\n");
}

// The bytes are the outputs of: printf 'hello hello hello hello\n' | bzip2 -9, | xz -9; and of both
// tools without input.
TEST(InputStreamTest, ReadsWhatBzip2AndXzWrite) {
  testing::TempDir dir;
  const std::string hello = "hello hello hello hello\n";
  const std::string bzip2(
      "\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x6f\x4f\x10\xf3\x00\x00\x05\xd1\x00\x00\x10\x40"
      "\x00\x02\x44\xa0\x00\x30\xc0\x02\xa8\x34\x71\x0d\xad\x87\x0f\x17\x72\x45\x38\x50\x90\x6f"
      "\x4f\x10\xf3",
      47);
  const std::string xz(
      "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x1c\x00\x00\x00\x10\xcf"
      "\x58\xcc\xe0\x00\x17\x00\x0c\x5d\x00\x34\x19\x49\xee\x8d\xe9\x56\x0a\xc1\x21\xb0\x00\x00"
      "\x6c\x14\xed\x1b\x3b\x68\xbb\x91\x00\x01\x28\x18\xd7\x83\xb7\x6e\x1f\xb6\xf3\x7d\x01\x00"
      "\x00\x00\x00\x04\x59\x5a",
      72);
  const std::string empty_bzip2("\x42\x5a\x68\x39\x17\x72\x45\x38\x50\x90\x00\x00\x00\x00", 14);
  const std::string empty_xz(
      "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x00\x00\x00\x00\x1c\xdf\x44\x21\x1f\xb6"
      "\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a",
      32);
  for (const auto& [bytes, text] :
       {std::pair(bzip2, hello), std::pair(xz, hello), std::pair(empty_bzip2, std::string()),
        std::pair(empty_xz, std::string()), std::pair(empty_bzip2 + bzip2, hello),
        std::pair(empty_xz + xz, hello)}) {
    Write(dir / "h", bytes);
    const auto read = ReadAll(dir / "h");
    ASSERT_OK(read);
    EXPECT_EQ(*read, text);
  }
}

TEST(InputStreamTest, MembersAndFramesThatFollowOneAnotherAreOneStream) {
  testing::TempDir dir;
  Write(dir / "a.gz", Gzip("one\n") + Gzip("") + Gzip("two\n"));
  Write(dir / "a.zst", Zstd("one\n") + Zstd("two\n"));
  Write(dir / "a.bz2", Bzip2("one\n") + Bzip2("") + Bzip2("two\n"));
  Write(dir / "a.xz", Xz("one\n") + Xz("") + Xz("two\n"));
  for (const char* name : {"a.gz", "a.zst", "a.bz2", "a.xz"}) {
    const auto read = ReadAll(dir / name);
    ASSERT_OK(read);
    EXPECT_EQ(*read, "one\ntwo\n");
  }
}

TEST(InputStreamTest, EveryTruncationIsToldWithTheFilesName) {
  testing::TempDir dir;
  const std::string text = Text(1, 60);
  const std::string gzip = Gzip("first") + Gzip(text);
  const std::string zstd = Zstd(text);
  const auto check = [&](const char* name, const std::string& whole, std::size_t length) {
    Write(dir / name, whole.substr(0, length));
    const auto read = ReadAll(dir / name);
    EXPECT_STATUS(read, kInvalidArgument);
    ASSERT_FALSE(read) << name << " " << length;
    EXPECT_THAT(read.error().message(),
                AllOf(HasSubstr(name), HasSubstr("truncated"), HasSubstr("download it again")));
  };
  const std::size_t first = Gzip("first").size();
  for (std::size_t length = 0; length < gzip.size(); ++length)
    if (length != first) check("t.gz", gzip, length);
  for (std::size_t length = 0; length < zstd.size(); ++length) check("t.zst", zstd, length);
  for (const char* name : {"t.bz2", "t.xz"}) {
    const auto pack = [&](std::string_view one) {
      return name == std::string_view("t.xz") ? Xz(one) : Bzip2(one);
    };
    const std::string two = pack("first") + pack(text);
    for (std::size_t length = 0; length < two.size(); ++length)
      if (length != pack("first").size()) check(name, two, length);
  }
}

TEST(InputStreamTest, AReadThatBringsNothingIsNotTheEnd) {
  testing::FakeFileSystem fs;
  const std::string text = "0\t1\n1\t2\n";
  for (const char* name : {"/a.tsv", "/empty.tsv"}) {
    const std::string_view bytes =
        std::string_view(name) == "/a.tsv" ? std::string_view(text) : std::string_view();
    ASSERT_OK(WriteWholeFile(fs, name, std::as_bytes(std::span(bytes))));
    const auto stream = InputStream::Open(fs, name);
    ASSERT_OK(stream);
    fs.FailAt(fs.operation_count(), testing::FakeFileSystem::kEmptyRead, /*sticky=*/true);
    std::vector<std::byte> out(100);
    const auto read = (*stream)->Read(out);
    fs.ClearFailures();
    if (!bytes.empty()) {
      EXPECT_STATUS(read, kInvalidArgument);
      EXPECT_EQ((*stream)->Read(out).value_or(0), text.size());
    }
    EXPECT_EQ((*stream)->Read(out).value_or(1), 0U) << name;
  }
}

// The last block is empty. zstd itself reports an error only if it decodes the frame in one call.
TEST(InputStreamTest, AZstdFrameThatIsShorterThanItSaysIsDamaged) {
  testing::TempDir dir;
  Write(dir / "f.zst", std::string("\x28\xB5\x2F\xFD\x20\xF5\x01\x00\x00", 9));
  for (const std::size_t piece : {10, 4096}) {
    const auto stream = InputStream::Open(FileSystem::Posix(), dir / "f.zst");
    ASSERT_OK(stream);
    std::vector<std::byte> out(piece);
    EXPECT_STATUS((*stream)->ReadFull(out), kInvalidArgument);
  }
}

TEST(InputStreamTest, DamageIsAnErrorAndNeverOtherText) {
  testing::TempDir dir;
  const std::string text = Text(2, 60);
  const std::string gzip = Gzip(text);
  // Byte 10 has unused bits.
  for (std::size_t i = 11; i < gzip.size(); ++i) {
    std::string bad = gzip;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    Write(dir / "d.gz", bad);
    EXPECT_STATUS(ReadAll(dir / "d.gz"), kInvalidArgument);
  }
  for (const std::string& whole : {Bzip2(text), Xz(text)}) {
    std::size_t harmless = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string bad = whole;
      bad[i] = static_cast<char>(bad[i] ^ 0x80);
      Write(dir / "d", bad);
      const auto read = ReadAll(dir / "d");
      if (read) {
        // Without its magic it is no compressed file. bzip2 has bits without a meaning.
        EXPECT_TRUE(*read == (i < 10 ? bad : text)) << i;
        ++harmless;
        continue;
      }
      EXPECT_STATUS(read, kInvalidArgument);
      EXPECT_THAT(read.error().message(), AllOf(HasSubstr("/d: "), HasSubstr("it again")));
    }
    EXPECT_LT(harmless, 15U);
    Write(dir / "d", whole + "garbage of some length");
    EXPECT_STATUS(ReadAll(dir / "d"), kInvalidArgument);
  }
  Write(dir / "tail.gz", gzip + "garbage");
  EXPECT_STATUS(ReadAll(dir / "tail.gz"), kInvalidArgument);
  Write(dir / "tail.zst", Zstd(text) + "garbage");
  EXPECT_STATUS(ReadAll(dir / "tail.zst"), kInvalidArgument);
}

// A frame of a few bytes can request a window of 2 GiB.
TEST(InputStreamTest, HugeZstdWindowIsRefused) {
  testing::TempDir dir;
  const std::string frame("\x28\xb5\x2f\xfd\x00\xa8\x09\x00\x00x", 10);
  Write(dir / "w.zst", frame);
  const auto wide = ReadAll(dir / "w.zst");
  EXPECT_STATUS(wide, kInvalidArgument);
  EXPECT_THAT(wide.error().message(), AllOf(HasSubstr("w.zst"), HasSubstr("above 128 MiB")));
  const std::string modest("\x28\xb5\x2f\xfd\x00\x50\x09\x00\x00x", 10);
  Write(dir / "m.zst", modest);
  const auto read = ReadAll(dir / "m.zst");
  ASSERT_OK(read);
  EXPECT_EQ(*read, "x");
}

TEST(InputStreamTest, AnXzDictionaryAbove128MiBIsRefused) {
  testing::TempDir dir;
  Write(dir / "m.xz", Xz("x", 128U << 20));
  const auto read = ReadAll(dir / "m.xz");
  ASSERT_OK(read);
  EXPECT_EQ(*read, "x");
  // The output of: printf 'hello hello hello hello\n' | xz --lzma2=dict=192MiB
  Write(dir / "w.xz",
        std::string("\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x1f\x00\x00"
                    "\x00\xfe\x60\xed\xde\xe0\x00\x17\x00\x0c\x5d\x00\x34\x19\x49\xee\x8d\xe9\x56"
                    "\x0a\xc1\x21\xb0\x00\x00\x6c\x14\xed\x1b\x3b\x68\xbb\x91\x00\x01\x28\x18\xd7"
                    "\x83\xb7\x6e\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a",
                    72));
  const auto wide = ReadAll(dir / "w.xz");
  EXPECT_STATUS(wide, kInvalidArgument);
  EXPECT_THAT(wide.error().message(),
              AllOf(HasSubstr("w.xz"), HasSubstr("above 128 MiB"), HasSubstr("xz -9")));
}

TEST(InputStreamTest, MissingFileFolderAndPermission) {
  testing::TempDir dir;
  const auto missing = InputStream::Open(FileSystem::Posix(), dir / "absent.tsv");
  EXPECT_STATUS(missing, kNotFound);
  EXPECT_NE(missing.error().message().find("absent.tsv"), std::string::npos);
  EXPECT_FALSE(InputStream::Open(FileSystem::Posix(), dir.path()));
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  Write(dir / "secret", "x");
  std::filesystem::permissions(dir / "secret", std::filesystem::perms::none);
  EXPECT_STATUS(InputStream::Open(FileSystem::Posix(), dir / "secret"), kPermissionDenied);
}

TEST(InputStreamTest, SymbolicLinksAreFollowed) {
  testing::TempDir dir;
  Write(dir / "real.tsv", "text");
  std::filesystem::create_symlink("real.tsv", dir / "link.tsv");
  const auto read = ReadAll(dir / "link.tsv");
  ASSERT_OK(read);
  EXPECT_EQ(*read, "text");
}

// A pipe can be read only once. Readers that need a second pass return an error that says so.
TEST(InputStreamTest, PipesAreReadOnce) {
  testing::TempDir dir;
  const std::string text = Text(testing::TestSeed(), 300'000);  // exceeds the capacity of a pipe
  struct Case {
    const char* name;
    std::string bytes;
  };
  for (const Case& one : {Case{"plain.tsv", text}, Case{"packed.tsv.gz", Gzip(text)},
                          Case{"packed.tsv.zst", Zstd(text)}, Case{"packed.tsv.bz2", Bzip2(text)},
                          Case{"packed.tsv.xz", Xz(text)}, Case{"empty", ""}}) {
    SCOPED_TRACE(one.name);
    const Path path = dir / one.name;
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const auto again = InputStream::Open(FileSystem::Posix(), path);
    EXPECT_STATUS(again, kInvalidArgument);
    EXPECT_NE(again.error().message().find("is a pipe"), std::string::npos);
    EXPECT_TRUE(InputStream::IsReadOnce(path));
    auto stream = InputStream::OpenOnce(FileSystem::Posix(), path);  // there is no writer yet
    ASSERT_OK(stream);
    EXPECT_EQ((*stream)->total_bytes(), 0U);
    std::thread writer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      Write(path, one.bytes);
    });
    std::string read(text.size() + 1, '\0');
    const auto bytes = (*stream)->ReadFull(std::as_writable_bytes(std::span(read)));
    writer.join();
    ASSERT_OK(bytes);
    read.resize(*bytes);
    EXPECT_EQ(read, one.bytes.empty() ? "" : text);
  }
  EXPECT_FALSE(InputStream::IsReadOnce(dir / "absent"));
  EXPECT_TRUE(InputStream::IsReadOnce("-"));
  EXPECT_STATUS(InputStream::Open(FileSystem::Posix(), "-"), kInvalidArgument);
  EXPECT_OK(InputStream::OpenOnce(FileSystem::Posix(), "/dev/null"));
}

// The content decides, not the name.
TEST(InputStreamTest, CompressionIsFoundInTheContent) {
  testing::TempDir dir;
  Write(dir / "plain.gz", "1\t2\n");
  Write(dir / "gzip.tsv", Gzip("1\t2\n"));
  Write(dir / "zstd.GZ", Zstd("1\t2\n"));
  Write(dir / "bzip2.xz", Bzip2("1\t2\n"));
  Write(dir / "xz", Xz("1\t2\n"));
  for (const char* name : {"plain.gz", "gzip.tsv", "zstd.GZ", "bzip2.xz", "xz"}) {
    const auto read = ReadAll(dir / name);
    ASSERT_OK(read);
    EXPECT_EQ(*read, "1\t2\n") << name;
  }
  const auto compression = [&](const char* name) {
    auto stream = InputStream::Open(FileSystem::Posix(), dir / name);
    std::vector<std::byte> out(9);
    EXPECT_OK((*stream)->ReadFull(out));
    return (*stream)->compression();
  };
  EXPECT_EQ(compression("plain.gz"), Compression::kNone);
  EXPECT_EQ(compression("gzip.tsv"), Compression::kGzip);
  EXPECT_EQ(compression("zstd.GZ"), Compression::kZstd);
  EXPECT_EQ(compression("bzip2.xz"), Compression::kBzip2);
  EXPECT_EQ(compression("xz"), Compression::kXz);
  for (const char* text : {"BZh9\tBZh8\n", "BZh", "BZh9", "BZh0", "BZh91\t2\n", "BZh91AX\n"}) {
    Write(dir / "words.tsv", text);  // begins like bzip2
    const auto read = ReadAll(dir / "words.tsv");
    ASSERT_OK(read);
    EXPECT_EQ(*read, text);
  }
}

// xz demands that padding has a multiple of four bytes.
TEST(InputStreamTest, ZerosAfterAMemberArePadding) {
  testing::TempDir dir;
  const std::string zeros(300'000, '\0');
  using Pack = std::string (*)(std::string_view);
  for (const Pack pack : {Pack(Bzip2), Pack([](std::string_view text) { return Xz(text); })}) {
    Write(dir / "p", pack("one\n") + zeros + pack("two\n") + zeros);
    const auto read = ReadAll(dir / "p");
    ASSERT_OK(read);
    EXPECT_EQ(*read, "one\ntwo\n");
    Write(dir / "p", pack("one\n") + zeros + "garbage of some length");
    EXPECT_STATUS(ReadAll(dir / "p"), kInvalidArgument);
  }
  Write(dir / "p.gz", Gzip("one\n") + zeros + Gzip("two\n") + zeros);
  const auto read = ReadAll(dir / "p.gz");
  ASSERT_OK(read);
  EXPECT_EQ(*read, "one\ntwo\n");
  Write(dir / "x.gz", Gzip("one\n") + zeros + "x");
  EXPECT_STATUS(ReadAll(dir / "x.gz"), kInvalidArgument);
}

TEST(InputStreamTest, ContentExtensionIgnoresCompression) {
  EXPECT_EQ(ContentExtension("A.CSV.GZ"), ".csv");
  EXPECT_EQ(ContentExtension("a/b.csv"), ".csv");
  EXPECT_EQ(ContentExtension("a/b.csv.gz"), ".csv");
  EXPECT_EQ(ContentExtension("x.npy.zst"), ".npy");
  EXPECT_EQ(ContentExtension("edges"), "");
  EXPECT_EQ(ContentExtension("edges.gz"), "");
}

}  // namespace
}  // namespace rhizome
