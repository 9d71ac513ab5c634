#include "cache/job/safetensors.h"

#include <cstdio>
#include <cstring>
#include <fstream>

#include "testing/testing.h"

// Tests of the safetensors reader and writer: round trips, truncated, damaged and hostile files,
// and a comparison with Python code that follows the format's rules.

namespace rhizome {
namespace {

TensorFile Example() {
  TensorFile file;
  file.metadata["rhizome"] = R"({"text":"with \"quotes\""})";
  file.tensors["a"] = {.shape = {2, 3}, .values = {1, 2, 3, -4, 5.5f, 1e-30f}};
  file.tensors["b"] = {.shape = {4}, .values = {0, 1, 2, 3}};
  file.tensors["scalar"] = {.shape = {}, .values = {7}};
  return file;
}

/// Returns a file with the given header and `data_bytes` bytes of data.
std::vector<std::byte> MakeFile(const std::string& header, std::size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

TEST(SafetensorsTest, DecodingGivesBackWhatWasEncoded) {
  const std::vector<std::byte> bytes = EncodeSafetensors(Example());
  const Result<TensorFile> file = DecodeSafetensors(bytes);
  ASSERT_OK(file);
  EXPECT_EQ(file->metadata, Example().metadata);
  ASSERT_EQ(file->tensors.size(), 3u);
  for (const auto& [name, tensor] : Example().tensors) {
    EXPECT_EQ(file->tensors.at(name).shape, tensor.shape);
    EXPECT_EQ(file->tensors.at(name).values, tensor.values);
  }
}

TEST(SafetensorsTest, DataIsAlignedToEightBytes) {
  const std::vector<std::byte> bytes = EncodeSafetensors(Example());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
}

TEST(SafetensorsTest, EveryTruncationIsCorruption) {
  const std::vector<std::byte> bytes = EncodeSafetensors(Example());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_STATUS(DecodeSafetensors(std::span(bytes).subspan(0, size)), kCorruption);
  }
}

TEST(SafetensorsTest, HostileHeadersAreRefused) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_OK(DecodeSafetensors(MakeFile(good, 8)));
  const struct {
    const char* header;
    std::size_t data_bytes;
  } cases[] = {
      {"", 0},
      {"[]", 0},
      {"{", 0},
      {R"({"a":3})", 0},
      {R"({"__metadata__":{"rhizome":3}})", 0},
      {R"({"__metadata__":[]})", 0},
      // more or less data than the tensors name
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 12},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4},
      // a gap, an overlap, a reversed and a huge extent
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}})", 8},
      // shapes that overflow, are negative, fractional, or too many
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}})",
       0},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", 8},
      // a field missing, superfluous, or twice
      {R"({"a":{"dtype":"F32","shape":[2]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       8},
  };
  for (const auto& hostile : cases) {
    SCOPED_TRACE(hostile.header);
    EXPECT_STATUS(DecodeSafetensors(MakeFile(hostile.header, hostile.data_bytes)), kCorruption);
  }
}

TEST(SafetensorsTest, AHeaderLengthBeyondTheLimitIsRefusedUnread) {
  std::vector<std::byte> bytes(16);
  for (const std::uint64_t length : {kMaxTensorHeaderBytes + 1, ~std::uint64_t{0}}) {
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_STATUS(DecodeSafetensors(bytes), kCorruption);
  }
}

TEST(SafetensorsTest, DeepNestingIsRefusedWithoutOverflowingTheStack) {
  EXPECT_STATUS(DecodeSafetensors(MakeFile(std::string(500000, '['), 0)), kCorruption);
}

TEST(SafetensorsTest, OtherDtypesAreUnsupported) {
  EXPECT_STATUS(
      DecodeSafetensors(MakeFile(R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})", 8)),
      kUnsupported);
}

TEST(SafetensorsTest, EveryFlippedBitIsRefusedOrStaysInItsTensor) {
  const std::vector<std::byte> bytes = EncodeSafetensors(Example());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<std::byte> damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const Result<TensorFile> file = DecodeSafetensors(damaged);
    if (!file) continue;
    std::size_t values = 0;
    for (const auto& [name, tensor] : file->tensors) values += tensor.values.size();
    EXPECT_EQ(values, 11u) << "bit " << bit;
  }
}

TEST(SafetensorsTest, AMissingFileIsNotFound) {
  const testing::TempDir folder;
  EXPECT_STATUS(LoadSafetensors(FileSystem::Posix(), folder / "none"), kNotFound);
}

// If Python is installed, it reads the written bytes by the rules of the format.
TEST(SafetensorsTest, PythonReadsTheFileByTheFormatsRules) {
  const testing::TempDir folder;
  const Path path = folder / "model.safetensors";
  ASSERT_OK(SaveSafetensors(path, Example()));
  std::ofstream(folder / "read.py") << R"(
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
text = header.pop("__metadata__")["rhizome"]
out = [text]
for name in sorted(header):
    t = header[name]
    assert t["dtype"] == "F32"
    begin, end = t["data_offsets"]
    values = struct.unpack("<%df" % ((end - begin) // 4), data[8 + n + begin:8 + n + end])
    out.append("%s %s %s" % (name, t["shape"], sum(values[:4])))
print("|".join(out), end="")
)";
  const std::string command =
      "python3 " + (folder / "read.py").string() + " " + path.string() + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  char buffer[512];
  while (const std::size_t count = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    text.append(buffer, count);
  }
  if (pclose(pipe) != 0 && text.find("not found") != std::string::npos) {
    GTEST_SKIP() << "python3 is not installed";
  }
  EXPECT_EQ(text, R"({"text":"with \"quotes\""}|a [2, 3] 2.0|b [4] 6.0|scalar [] 7.0)");
}

}  // namespace
}  // namespace rhizome
