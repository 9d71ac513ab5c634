#include "index/topology/blocked_offsets.h"

#include <algorithm>
#include <random>

#include "index/base/memory_sink.h"
#include "index/topology/patched_column.h"
#include "testing/section_edit.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::SectionEdit;

constexpr OffsetKinds kKinds{1, 2, 3};
constexpr PatchedKinds kPatched{4, 5, 6};

std::vector<std::uint64_t> DrawOffsets(std::mt19937_64& rng) {
  std::vector<std::uint64_t> offsets = {0};
  const std::uint64_t count = rng() % 400;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t hub = rng() % 60 == 0 ? std::uint64_t{1} << (rng() % 40) : 0;
    offsets.push_back(offsets.back() + rng() % 5 + hub);
  }
  return offsets;
}

template <typename Fill>
std::vector<std::byte> WriteFile(Fill fill) {
  MemorySink sink;
  SectionFileWriter writer(sink, FileKind::kPartition, StoreId{});
  EXPECT_OK(fill(writer));
  EXPECT_OK(writer.Finish());
  return sink.Take();
}

Result<SectionFile> ParseFile(std::vector<std::byte> bytes) {
  return SectionFile::Parse(std::move(bytes), "offsets", FileKind::kPartition, StoreId{});
}

TEST(BlockedOffsetsTest, EveryOffsetIsReadBackAndFound) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const std::vector<std::uint64_t> expected = DrawOffsets(rng);
    const auto file = ParseFile(WriteFile(
        [&](SectionFileWriter& writer) { return WriteOffsets(writer, kKinds, expected); }));
    ASSERT_OK(file);
    const auto offsets =
        BlockedOffsets::Read(*file, kKinds, expected.size(), expected.back(), "offsets");
    ASSERT_OK(offsets);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ((*offsets)[i], expected[i]);
    for (int probe = 0; probe < 20; ++probe) {
      const std::uint64_t value = rng() % (expected.back() + 2);
      EXPECT_EQ(offsets->UpperBound(value),
                static_cast<std::size_t>(std::upper_bound(expected.begin(), expected.end(), value) -
                                         expected.begin()));
    }
    EXPECT_STATUS(
        BlockedOffsets::Read(*file, kKinds, expected.size(), expected.back() + 1, "offsets"),
        kCorruption);
    EXPECT_STATUS(
        BlockedOffsets::Read(*file, kKinds, expected.size() + 1, expected.back(), "offsets"),
        kCorruption);
  }
}

// Random numbers in the three sections are rejected, or the offsets still ascend within bounds.
TEST(BlockedOffsetsTest, DamageIsRefusedOrHarmless) {
  std::mt19937_64 rng(testing::TestSeed());
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    const std::vector<std::uint64_t> written = DrawOffsets(rng);
    SectionEdit edit(
        WriteFile([&](SectionFileWriter& writer) { return WriteOffsets(writer, kKinds, written); }),
        FileKind::kPartition, StoreId{});
    auto& section = edit.sections()[rng() % 3];
    if (section.bytes.empty()) continue;
    section.bytes[rng() % section.bytes.size()] ^= static_cast<std::byte>(1U << (rng() % 8));
    const auto file = ParseFile(edit.Seal());
    const auto offsets =
        BlockedOffsets::Read(*file, kKinds, written.size(), written.back(), "offsets");
    if (!offsets) {
      EXPECT_STATUS(offsets, kCorruption);
      ++refused;
      continue;
    }
    for (std::size_t i = 1; i < written.size(); ++i) {
      EXPECT_LE((*offsets)[i - 1], (*offsets)[i]);
      EXPECT_LE((*offsets)[i], written.back());
    }
  }
  EXPECT_GT(refused, 50);
}

TEST(BlockedOffsetsTest, HubsCostTheirBlockAlone) {
  std::vector<std::uint64_t> offsets = {0};
  for (int i = 0; i < 6400; ++i) offsets.push_back(offsets.back() + (i == 3000 ? 1000000 : 2));
  const std::vector<std::byte> bytes =
      WriteFile([&](SectionFileWriter& writer) { return WriteOffsets(writer, kKinds, offsets); });
  // The offsets need a byte each, 4 for each block of 64, and one block in full. The rest is the
  // container.
  EXPECT_LT(bytes.size(), 6401U + 101 * 4 + 64 * 4 + 600);
}

TEST(PatchedColumnTest, EveryValueIsReadBack) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> values(rng() % 300);
    for (std::uint64_t& value : values)
      value = rng() % 10 == 0 ? rng() % (std::uint64_t{1} << (rng() % 40 + 1)) : rng() % 260;
    const auto file = ParseFile(WriteFile(
        [&](SectionFileWriter& writer) { return WritePatched(writer, kPatched, values); }));
    const auto column =
        PatchedColumn::Read(*file, kPatched, values.size(), std::uint64_t{1} << 40, "degrees");
    ASSERT_OK(column);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ((*column)[i], values[i]);
  }
}

TEST(PatchedColumnTest, PatchesThatFitNoMarkAreRefused) {
  std::vector<std::uint64_t> values(40, 1);  // enough values that one byte each is worthwhile
  values[1] = 300;
  values[3] = 255;
  const std::vector<std::byte> bytes =
      WriteFile([&](SectionFileWriter& writer) { return WritePatched(writer, kPatched, values); });
  const auto read = [&](std::uint32_t kind, std::size_t i, std::uint64_t value) {
    SectionEdit edit(bytes, FileKind::kPartition, StoreId{});
    edit.Set(kind, i, value);
    const auto file = ParseFile(edit.Seal());
    return testing::AsStatus(PatchedColumn::Read(*file, kPatched, 40, 1000, "degrees"));
  };
  EXPECT_OK(read(kPatched.patches, 0, 301));
  EXPECT_STATUS(read(kPatched.values, 0, 255), kCorruption);  // a mark without its patch
  EXPECT_STATUS(read(kPatched.values, 1, 7), kCorruption);    // a patch without its mark
  EXPECT_STATUS(read(kPatched.places, 0, 0), kCorruption);
  EXPECT_STATUS(read(kPatched.patches, 1, 254), kCorruption);   // would have fitted
  EXPECT_STATUS(read(kPatched.patches, 1, 1001), kCorruption);  // beyond the bound
}

}  // namespace
}  // namespace rhizome
