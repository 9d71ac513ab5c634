#include "index/input/text_sniffer.h"

#include <gtest/gtest.h>

#include <random>

#include "testing/compressed.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

Result<SniffedText> SniffOf(std::string text, const Path& path = "a.txt",
                            const SniffHints& hints = {}) {
  return SniffText({.bytes = std::move(text), .whole = true}, path, hints);
}

Delimiter DelimiterOf(std::string text, const Path& path = "a.txt", std::size_t fields = 0) {
  const auto sniffed = SniffOf(std::move(text), path, {.delimiter = {}, .fields = fields});
  EXPECT_OK(sniffed);
  return sniffed ? sniffed->dialect.delimiter : Delimiter::kNone;
}

TEST(TextSnifferTest, EveryDelimiterIsFound) {
  EXPECT_EQ(DelimiterOf("1\t2\n2\t3\n"), Delimiter::kTab);
  EXPECT_EQ(DelimiterOf("1,2\n2,3\n"), Delimiter::kComma);
  EXPECT_EQ(DelimiterOf("1, 2\n2, 3\n"), Delimiter::kComma);
  EXPECT_EQ(DelimiterOf("1;2;0,5\n2;3;1,25\n"), Delimiter::kSemicolon);
  EXPECT_EQ(DelimiterOf("1|a b|x,y\n2|c d|z,w\n"), Delimiter::kPipe);
  EXPECT_EQ(DelimiterOf(" 1   2\n10  3\n"), Delimiter::kBlanks);
  EXPECT_EQ(DelimiterOf("1\tDoe, Jane\n2\tRoe, Richard\n"), Delimiter::kTab);
  EXPECT_EQ(DelimiterOf("New York,Los Angeles\nSan Jose,El Paso\n"), Delimiter::kComma);
}

TEST(TextSnifferTest, TheNameDecidesBetweenEqualReadings) {
  EXPECT_EQ(DelimiterOf("a,b\tc\nd,e\tf\n", "a.tsv"), Delimiter::kTab);
  EXPECT_EQ(DelimiterOf("a,b\tc\nd,e\tf\n", "a.csv.gz"), Delimiter::kComma);
  EXPECT_EQ(DelimiterOf("1\t2\n2\t3\n", "a.csv"), Delimiter::kTab);
  EXPECT_EQ(DelimiterOf("1\n2\n", "a.csv"), Delimiter::kComma);
  EXPECT_EQ(DelimiterOf("1;0,5\n2;1,5\n", "a.csv"), Delimiter::kComma);
  EXPECT_EQ(DelimiterOf("1;2;0,5\n2;3;1,25\n", "a.csv"), Delimiter::kSemicolon);
  EXPECT_EQ(DelimiterOf("1,2,a;b\n2,3,c;d\n", "a.csv"), Delimiter::kComma);
}

TEST(TextSnifferTest, TheExpectedNumberOfFieldsDecides) {
  EXPECT_EQ(DelimiterOf("New York\nLos Angeles\n", "a.txt", 1), Delimiter::kTab);
  EXPECT_EQ(DelimiterOf("New York\nLos Angeles\n", "a.txt", 2), Delimiter::kBlanks);
  EXPECT_EQ(DelimiterOf("a b,c;d\ne f,g;h\n", "a.txt", 2), Delimiter::kComma);
}

TEST(TextSnifferTest, BlanksInTextsOfOneColumnDivideNothing) {
  const std::string names = "Rome\nNew York\nSan Jose\nEl Paso\nParis\n";
  const auto one = SniffOf(names, "a.tsv", {.delimiter = {}, .may_be_one_field = true});
  ASSERT_OK(one);
  EXPECT_EQ(one->dialect.delimiter, Delimiter::kTab);
  const auto edges = SniffOf(names, "a.tsv");
  ASSERT_OK(edges);
  EXPECT_EQ(edges->dialect.delimiter, Delimiter::kBlanks);
  const auto two = SniffOf("a 1\nb 2\n", "a.tsv", {.delimiter = {}, .may_be_one_field = true});
  ASSERT_OK(two);
  EXPECT_EQ(two->dialect.delimiter, Delimiter::kBlanks);
}

TEST(TextSnifferTest, ADelimiterThatIsGivenIsTaken) {
  const auto sniffed = SniffOf("1,2\t3\n", "a.csv", {.delimiter = Delimiter::kTab, .fields = 0});
  ASSERT_OK(sniffed);
  EXPECT_EQ(sniffed->dialect.delimiter, Delimiter::kTab);
  EXPECT_EQ(sniffed->rows[0].fields, (std::vector<std::string>{"1,2", "3"}));
}

TEST(TextSnifferTest, CommentsAreFoundAndCounted) {
  const auto snap = SniffOf("# Nodes: 3\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n");
  ASSERT_OK(snap);
  EXPECT_EQ(snap->dialect.comments, "#");
  EXPECT_EQ(snap->comment_lines, 2U);
  ASSERT_EQ(snap->rows.size(), 2U);
  EXPECT_EQ(snap->rows[0].line, 3U);
  const auto later = SniffOf("0\t1\n% the rest was added later\n1\t2\n");
  ASSERT_OK(later);
  EXPECT_EQ(later->dialect.comments, "%");
  EXPECT_EQ(later->rows.size(), 2U);
}

// Hashtags are ids.
TEST(TextSnifferTest, RowsThatBeginLikeCommentsAreRows) {
  const auto mixed = SniffOf("cat\t#pets\n#pets\tdog\n#dogs\tcat\n");
  ASSERT_OK(mixed);
  EXPECT_EQ(mixed->dialect.comments, "");
  EXPECT_EQ(mixed->rows.size(), 3U);
  const auto all = SniffOf("#a\t#b\n#b\t#c\n");
  ASSERT_OK(all);
  EXPECT_EQ(all->rows.size(), 2U);
}

TEST(TextSnifferTest, OldLineEndsAreNamed) {
  const auto sniffed = SniffOf("1\t2\r2\t3\r");
  EXPECT_STATUS(sniffed, kInvalidArgument);
  EXPECT_NE(sniffed.error().message().find("CR alone"), std::string::npos);
}

TEST(TextSnifferTest, TheSampleIsBounded) {
  testing::TempDir dir;
  std::string text;
  for (int i = 0; text.size() < 3 * kSniffedBytes; ++i) text += std::to_string(i) + "\t0\n";
  testing::WriteInput(dir / "big.tsv.gz", text);
  const auto head = ReadHead(FileSystem::Posix(), dir / "big.tsv.gz");
  ASSERT_OK(head);
  EXPECT_EQ(head->bytes.size(), kSniffedBytes);
  EXPECT_FALSE(head->whole);
  EXPECT_EQ(head->compression, Compression::kGzip);
  const auto sniffed = SniffText(*head, dir / "big.tsv.gz", {});
  ASSERT_OK(sniffed);
  EXPECT_EQ(sniffed->rows.size(), kSniffedLines);
  EXPECT_EQ(sniffed->rows.back().fields, (std::vector<std::string>{"9999", "0"}));
  EXPECT_FALSE(sniffed->whole);
}

// Random tables of integers and words without delimiters in them: the delimiter that they were
// written with is found.
TEST(TextSnifferTest, RandomTablesGiveTheirDelimiter) {
  std::mt19937_64 random(testing::TestSeed());
  const auto pick = [&](std::uint64_t bound) { return random() % bound; };
  constexpr std::string_view kDelimiters = "\t,;| ";
  constexpr Delimiter kKinds[] = {Delimiter::kTab, Delimiter::kComma, Delimiter::kSemicolon,
                                  Delimiter::kPipe, Delimiter::kBlanks};
  for (int round = 0; round < 100; ++round) {
    const std::size_t kind = pick(kDelimiters.size());
    const std::uint64_t fields = 2 + pick(4);
    std::string text;
    for (std::uint64_t row = 1 + pick(30); row > 0; --row) {
      for (std::uint64_t i = 0; i < fields; ++i) {
        text += pick(2) == 0 ? std::to_string(pick(1000)) : "w" + std::to_string(pick(9));
        text += i + 1 < fields ? kDelimiters[kind] : '\n';
      }
      if (pick(5) == 0) text += "\n";
    }
    const auto sniffed = SniffOf(text, pick(2) == 0 ? "a.csv" : "a.tsv");
    ASSERT_OK(sniffed);
    EXPECT_EQ(sniffed->dialect.delimiter, kKinds[kind]) << text;
    EXPECT_EQ(sniffed->fields, fields) << text;
  }
}

}  // namespace
}  // namespace rhizome
