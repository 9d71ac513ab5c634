#include "index/topology/vertex_ids.h"

#include <algorithm>
#include <random>
#include <set>

#include "index/base/memory_sink.h"
#include "index/topology/id_limit.h"
#include "index/topology/vertex_ids_format.h"
#include "storage/base/utf8.h"
#include "testing/section_edit.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::uint32_t Kind(IdsSection section) { return static_cast<std::uint32_t>(section); }

template <typename T>
std::vector<std::byte> WriteOfVertexIds(const std::vector<T>& ids) {
  MemorySink sink;
  EXPECT_OK(VertexIds::Write(sink, StoreId{}, std::span<const T>(ids)));
  return sink.Take();
}

Result<VertexIds> Parse(std::vector<std::byte> bytes, ExternalIdKind kind, std::uint64_t count) {
  auto file = SectionFile::Parse(std::move(bytes), "ids.dict", FileKind::kVertexIds, StoreId{});
  if (!file) return Fail(file.error());
  return VertexIds::Parse(*std::move(file), kind, count);
}

TEST(ExternalIdTest, OnlyCanonicalDecimalsAreIntegers) {
  EXPECT_EQ(ParseCanonicalInteger("0"), 0);
  EXPECT_EQ(ParseCanonicalInteger("-17"), -17);
  EXPECT_EQ(ParseCanonicalInteger("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(ParseCanonicalInteger("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"", "-", "-0", "+1", "01", "-01", " 1", "1 ", "1.0", "1e3", "0x1", "--1",
                           "9223372036854775808", "-9223372036854775809", "١"}) {
    EXPECT_EQ(ParseCanonicalInteger(text), std::nullopt) << text;
  }
  EXPECT_EQ(ToString(ExternalId(std::int64_t{-5})), "-5");
  EXPECT_EQ(ToString(ExternalId(std::string("dog.n.01"))), "dog.n.01");
}

TEST(Utf8Test, RefusesWhatTheStandardRefuses) {
  for (const char* good : {"", "dog", "höhle", "犬", "\xF0\x9F\x90\x95", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(IsUtf8(good)) << good;
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE7\x8A", "a\xFFz", "\xC3\x28"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(VertexIdsTest, DenseIdsAreTheVertices) {
  const VertexIds ids = VertexIds::Dense(5);
  EXPECT_EQ(ids.Find(std::int64_t{4}), 4);
  EXPECT_EQ(ids.Find("3"), 3);
  EXPECT_EQ(ids.Find(std::int64_t{5}), std::nullopt);
  EXPECT_EQ(ids.Find(std::int64_t{-1}), std::nullopt);
  EXPECT_EQ(ids.Find("03"), std::nullopt);
  EXPECT_EQ(ids.IdOf(2), ExternalId(std::int64_t{2}));
}

TEST(VertexIdsTest, FindsEveryIntegerAndNoOther) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const std::size_t n : {0, 1, 2, 300}) {
    std::set<std::int64_t> distinct{};
    while (distinct.size() < n) distinct.insert(static_cast<std::int64_t>(rng()) >> (rng() % 60));
    std::vector<std::int64_t> values(distinct.begin(), distinct.end());
    std::shuffle(values.begin(), values.end(), rng);
    const auto ids = Parse(WriteOfVertexIds(values), ExternalIdKind::kInteger, n);
    ASSERT_OK(ids);
    for (std::size_t v = 0; v < n; ++v) {
      const auto vertex = static_cast<VertexId>(v);
      EXPECT_EQ(ids->IdOf(vertex), ExternalId(values[v]));
      EXPECT_EQ(ids->Find(values[v]), vertex);
      EXPECT_EQ(ids->Find(std::to_string(values[v])), vertex);
    }
    for (int i = 0; i < 200; ++i) {
      const auto probe = static_cast<std::int64_t>(rng() % 2000) - 1000;
      EXPECT_EQ(ids->Find(probe).has_value(), distinct.contains(probe));
    }
    EXPECT_EQ(ids->Find("dog"), std::nullopt);
  }
}

TEST(VertexIdsTest, FindsEveryStringAndNoOther) {
  const std::vector<std::string> values = {
      "dog.n.01", "", "a", "42", "höhle", "dog.n.02", "dog", std::string("nul\0byte", 8)};
  const auto ids = Parse(WriteOfVertexIds(values), ExternalIdKind::kString, values.size());
  ASSERT_OK(ids);
  for (std::size_t v = 0; v < values.size(); ++v) {
    EXPECT_EQ(ids->IdOf(static_cast<VertexId>(v)), ExternalId(values[v]));
    EXPECT_EQ(ids->Find(values[v]), static_cast<VertexId>(v));
  }
  EXPECT_EQ(ids->Find(std::int64_t{42}), 3);
  for (const char* absent : {"do", "dog.n", "dog.n.010", "b", "zebra", "nul"})
    EXPECT_EQ(ids->Find(absent), std::nullopt) << absent;
}

// Older versions could ingest ids that are longer than those that updates accept.
TEST(VertexIdsTest, LongIdsOfExistingStoresAreRead) {
  const std::vector<std::string> values = {std::string(kMaxIdBytes + 1, 'x'), "a"};
  const auto ids = Parse(WriteOfVertexIds(values), ExternalIdKind::kString, values.size());
  ASSERT_OK(ids);
  EXPECT_EQ(ids->Find(values[0]), 0);
  EXPECT_EQ(ids->IdOf(0), ExternalId(values[0]));
}

TEST(VertexIdsTest, RefusesToWriteRepeatedOrMalformedIds) {
  MemorySink sink;
  const std::vector<std::int64_t> integers = {3, 7, 3};
  const Status repeated =
      VertexIds::Write(sink, StoreId{}, std::span<const std::int64_t>(integers));
  EXPECT_STATUS(repeated, kInvalidArgument);
  EXPECT_NE(repeated.message().find("vertices 0 and 2"), std::string::npos) << repeated.message();
  for (const std::vector<std::string>& strings :
       {std::vector<std::string>{"a", "b", "a"}, std::vector<std::string>{"a", "\xFF"}}) {
    EXPECT_STATUS(VertexIds::Write(sink, StoreId{}, std::span<const std::string>(strings)),
                  kInvalidArgument);
  }
}

TEST(VertexIdsTest, DamageSealedWithRightChecksumsIsRefused) {
  const std::vector<std::string> values = {"m", "ä", "zz", "b"};
  const auto bytes = WriteOfVertexIds(values);
  const auto refused = [&](IdsSection section, std::size_t i, std::uint64_t value) {
    testing::SectionEdit edit(bytes, FileKind::kVertexIds, StoreId{});
    edit.Set(Kind(section), i, value);
    EXPECT_STATUS(Parse(edit.Seal(), ExternalIdKind::kString, values.size()), kCorruption);
  };
  refused(IdsSection::kHeader, 0, 5);    // vertices
  refused(IdsSection::kHeader, 8, 2);    // kind
  refused(IdsSection::kHeader, 12, 1);   // reserved
  refused(IdsSection::kOffsets, 0, 1);   // does not begin at 0
  refused(IdsSection::kOffsets, 1, 9);   // beyond the bytes
  refused(IdsSection::kOffsets, 2, 0);   // falls
  refused(IdsSection::kOffsets, 1, 2);   // cuts a character
  refused(IdsSection::kOffsets, 4, 5);   // ends before the bytes
  refused(IdsSection::kBytes, 1, 0xFF);  // not UTF-8
  refused(IdsSection::kBytes, 0, 'b');   // repeats another id
  refused(IdsSection::kSorted, 0, 4);    // beyond the vertices
  refused(IdsSection::kSorted, 1, 3);    // repeats an entry
  for (std::uint32_t section = 1; section <= 5; ++section) {
    testing::SectionEdit edit(bytes, FileKind::kVertexIds, StoreId{});
    if (!edit.Has(section)) continue;
    edit.Remove(section);
    EXPECT_STATUS(Parse(edit.Seal(), ExternalIdKind::kString, values.size()), kCorruption);
  }
  EXPECT_STATUS(Parse(bytes, ExternalIdKind::kInteger, values.size()), kCorruption);
}

TEST(VertexIdsTest, IntegersThatDoNotRiseAreRefused) {
  const std::vector<std::int64_t> values = {-4, 100, 9};
  testing::SectionEdit edit(WriteOfVertexIds(values), FileKind::kVertexIds, StoreId{});
  edit.Set(Kind(IdsSection::kIntegers), 0, 9);
  EXPECT_STATUS(Parse(edit.Seal(), ExternalIdKind::kInteger, values.size()), kCorruption);
}

}  // namespace
}  // namespace rhizome
