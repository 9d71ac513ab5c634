#include "index/input/table_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "testing/compressed.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Lines = std::vector<std::vector<std::string>>;

/// The content of a file: its valid lines, and the line numbers and reasons of the malformed ones.
struct Content {
  Lines lines;
  std::vector<std::uint64_t> numbers;
  std::vector<std::pair<std::uint64_t, std::string>> malformed;
};

Result<Content> Read(const Path& path, bool header = false) {
  RHIZOME_ASSIGN_OR_RETURN(auto reader, TableReader::Open(FileSystem::Posix(), path, header));
  Content content;
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto next, reader->ReadLine());
    if (next == TableReader::Next::kEnd) return content;
    if (next == TableReader::Next::kMalformed) {
      content.malformed.emplace_back(reader->line(), reader->reason());
      continue;
    }
    content.lines.emplace_back(reader->fields().begin(), reader->fields().end());
    content.numbers.push_back(reader->line());
  }
}

class TableReaderTest : public ::testing::Test {
 protected:
  Content Parse(const std::string& name, std::string_view text, bool header = false) {
    testing::WriteInput(dir_ / name, text);
    auto content = Read(dir_ / name, header);
    EXPECT_OK(content);
    return content ? *std::move(content) : Content();
  }
  testing::TempDir dir_;
};

TEST_F(TableReaderTest, TabsPartFieldsAndQuotesAreNotSpecial) {
  const Content content = Parse("a.tsv", "1\t2\n# \"x,\t\ty\r\n\nlast\tone");
  EXPECT_EQ(content.lines, (Lines{{"1", "2"}, {"# \"x,", "", "y"}, {"last", "one"}}));
  EXPECT_EQ(content.numbers, (std::vector<std::uint64_t>{1, 2, 4}));
  EXPECT_TRUE(Parse("e.tsv", "").lines.empty());
}

TEST_F(TableReaderTest, BlanksAroundFieldsAreNotPartOfThem) {
  EXPECT_EQ(Parse("a.tsv", " 1 \t 2\n3\t New  York \n").lines,
            (Lines{{"1", "2"}, {"3", "New  York"}}));
  EXPECT_EQ(Parse("a.csv", "1, 2\n\t3 ,4\t\n\" 5 \" , \"\" \n").lines,
            (Lines{{"1", "2"}, {"3", "4"}, {" 5 ", ""}}));
}

TEST_F(TableReaderTest, BlankLinesAndCarriageReturnsAreSkipped) {
  for (const char* name : {"a.tsv", "a.csv"}) {
    const Content content = Parse(name, "\n1\r\r\n \r\n\r\n2\r\n\n\n");
    EXPECT_EQ(content.lines, (Lines{{"1"}, {"2"}})) << name;
    EXPECT_EQ(content.numbers, (std::vector<std::uint64_t>{2, 5})) << name;
  }
}

TEST_F(TableReaderTest, EveryDelimiterSplits) {
  const auto split = [&](std::string_view text, const TextDialect& dialect) {
    auto reader = TableReader::Open(InputStream::OfText(std::string(text), "x"), dialect, false);
    EXPECT_OK(reader);
    Lines lines;
    while (*(*reader)->ReadLine() == TableReader::Next::kFields)
      lines.emplace_back((*reader)->fields().begin(), (*reader)->fields().end());
    return lines;
  };
  const Lines lines = {{"a", "b c", ""}, {"1", "2", "3"}};
  EXPECT_EQ(split("a;b c;\n1; 2 ;3", {.delimiter = Delimiter::kSemicolon}), lines);
  EXPECT_EQ(split("a|b c|\n1|2|3\n", {.delimiter = Delimiter::kPipe}), lines);
  EXPECT_EQ(split("a;\"b c\";\"\"\n1;2;3", {.delimiter = Delimiter::kSemicolon, .quotes = true}),
            lines);
  EXPECT_EQ(split("  a \t bc   d\n1 2\t3 \n", {.delimiter = Delimiter::kBlanks}),
            (Lines{{"a", "bc", "d"}, {"1", "2", "3"}}));
  EXPECT_EQ(split(" a b \n\n\tc", {.delimiter = Delimiter::kNone}),
            (Lines{{" a b "}, {""}, {"\tc"}}));
  EXPECT_EQ(split("# x\n%y\n1 2\n#3 4\n", {.delimiter = Delimiter::kBlanks, .comments = "#%"}),
            (Lines{{"1", "2"}}));
}

// Other kinds of files are named, not read as lines.
TEST_F(TableReaderTest, OtherKindsOfFilesAreNamed) {
  using namespace std::string_view_literals;
  const auto expect = [&](std::string_view bytes, const std::string& named) {
    testing::WriteInput(dir_ / "x.tsv", bytes);
    const auto content = Read(dir_ / "x.tsv");
    EXPECT_STATUS(content, kInvalidArgument);
    ASSERT_FALSE(content);
    EXPECT_NE(content.error().message().find(named), std::string::npos)
        << content.error().message();
  };
  expect("PAR1\x15\x04\x15\x10 PAR1"sv, "Parquet");
  expect("ARROW1\0\0\xff\xff"sv, "Arrow");
  expect("\xff\xfe\x31\0\t\0\x32\0\n\0"sv, "UTF-16");
  expect("1\0\t\0002\0\n\0"sv, "UTF-16");
  expect("\x93NUMPY\x01\0"sv, "NumPy");
  expect("PK\x03\x04rest of it"sv, "zip");
  expect("1\t2\0\n"sv, "zero bytes");
  // Names that begin like one of them are text.
  EXPECT_EQ(Parse("a.tsv", "PAR1\tTP53\nORC1\tPAR1\n").lines,
            (Lines{{"PAR1", "TP53"}, {"ORC1", "PAR1"}}));
}

TEST_F(TableReaderTest, CsvFollowsRfc4180) {
  const Content content =
      Parse("a.csv", "a,b\r\n\"x, \"\"y\"\"\",\"two\nlines\"\n,\n\"\",z\nlast,\"one\"");
  EXPECT_EQ(content.lines,
            (Lines{{"a", "b"}, {"x, \"y\"", "two\nlines"}, {"", ""}, {"", "z"}, {"last", "one"}}));
  EXPECT_EQ(content.numbers, (std::vector<std::uint64_t>{1, 2, 4, 5, 6}));
}

TEST_F(TableReaderTest, StrayQuotesAreMalformedAndReadingGoesOn) {
  const Content content = Parse("a.csv", "a\"b,c\n\"a\"b,c\ngood,line\n\"open,x\nmore");
  EXPECT_EQ(content.lines, (Lines{{"good", "line"}}));
  ASSERT_EQ(content.malformed.size(), 3U);
  EXPECT_EQ(content.malformed[0].first, 1U);
  EXPECT_EQ(content.malformed[1].first, 2U);
  EXPECT_EQ(content.malformed[2].first, 4U);
  EXPECT_NE(content.malformed[2].second.find("never closed"), std::string::npos);
}

TEST_F(TableReaderTest, HeaderAndByteOrderMarkAreSkipped) {
  for (const char* name : {"a.tsv", "a.tsv.gz", "a.tsv.zst", "a.tsv.xz"}) {
    const Content content = Parse(name, "\xEF\xBB\xBFsrc\tdst\n1\t2\n", true);
    EXPECT_EQ(content.lines, (Lines{{"1", "2"}}));
    EXPECT_EQ(content.numbers, (std::vector<std::uint64_t>{2}));
  }
  EXPECT_EQ(Parse("b.tsv", "\xEF\xBB\xBFx\n").lines, (Lines{{"x"}}));
  EXPECT_TRUE(Parse("e.tsv", "", true).lines.empty());
}

TEST_F(TableReaderTest, InvalidUtf8IsMalformed) {
  for (const char* name : {"a.tsv", "a.csv"}) {
    const Content content = Parse(name, "gr\xC3\xBC\xC3\x9F\nbad\xFF\n\xC0\xAF\n\xED\xA0\x80\nok");
    EXPECT_EQ(content.lines, (Lines{{"gr\xC3\xBC\xC3\x9F"}, {"ok"}})) << name;
    ASSERT_EQ(content.malformed.size(), 3U);
    EXPECT_EQ(content.malformed[0].first, 2U);
    EXPECT_NE(content.malformed[0].second.find("UTF-8"), std::string::npos);
  }
}

TEST_F(TableReaderTest, LongLinesAreMalformedAndReadingGoesOn) {
  const std::string longest(kMaxLineBytes, 'a');
  for (const char* name : {"a.tsv", "a.csv", "b.tsv.zst"}) {
    for (const std::size_t more : {std::size_t{1}, kMaxLineBytes, 3 * kMaxLineBytes}) {
      const std::string text = "x\n" + longest + std::string(more, 'b') + "\ny\n" + longest + "\n";
      const Content content = Parse(name, text);
      ASSERT_EQ(content.malformed.size(), 1U) << name << " " << more;
      EXPECT_EQ(content.malformed[0].first, 2U);
      ASSERT_EQ(content.lines.size(), 3U);
      EXPECT_EQ(content.lines[1][0], "y");
      EXPECT_EQ(content.numbers[1], 3U);
      EXPECT_TRUE(content.lines[2][0] == longest);
    }
  }
}

TEST_F(TableReaderTest, ALongLastLineIsFollowedByTheEnd) {
  for (const char* name : {"a.tsv", "a.csv"}) {
    const Content content = Parse(name, "x\n" + std::string(2 * kMaxLineBytes, 'a'));
    ASSERT_EQ(content.malformed.size(), 1U) << name;
    EXPECT_EQ(content.malformed[0].first, 2U);
    EXPECT_EQ(content.lines, (Lines{{"x"}}));
  }
}

/// A file that is a single line without an end.
class EndlessLine final : public ReadableFile {
 public:
  Result<std::size_t> ReadAt(std::uint64_t, std::span<std::byte> out) override {
    std::fill(out.begin(), out.end(), std::byte{'x'});
    return out.size();
  }
  std::uint64_t size_bytes() const override { return 0; }
  const Path& path() const override { return path_; }

 private:
  const Path path_ = "endless";
};

// A reader that stops at a malformed line, like the reader of `put`, does not wait for the end of
// the line.
TEST_F(TableReaderTest, ALineWithoutAnEndIsMalformedAtOnce) {
  for (const TableForm form : {TableForm::kTabs, TableForm::kCsv, TableForm::kLines}) {
    const auto reader = TableReader::Open(InputStream::OfFile(std::make_unique<EndlessLine>()),
                                          form, /*header=*/false);
    ASSERT_OK(reader);
    const auto next = (*reader)->ReadLine();
    ASSERT_OK(next);
    EXPECT_EQ(*next, TableReader::Next::kMalformed);
    EXPECT_EQ((*reader)->line(), 1U);
  }
}

// A record of separators only has no text, but as many fields as separators, plus one.
TEST_F(TableReaderTest, RecordsOfManyFieldsAreLongToo) {
  const std::string commas(3 * kMaxLineBytes, ',');
  const Content content = Parse("a.csv", "x\n" + commas + "\ny\n" + commas.substr(0, 1000) + "\n");
  ASSERT_EQ(content.malformed.size(), 1U);
  EXPECT_EQ(content.malformed[0].first, 2U);
  ASSERT_EQ(content.lines.size(), 3U);
  EXPECT_EQ(content.lines[2].size(), 1001U);
}

TEST_F(TableReaderTest, PlaceNamesFileAndLine) {
  testing::WriteInput(dir_ / "a.tsv", "x\ny\n");
  auto reader = TableReader::Open(FileSystem::Posix(), dir_ / "a.tsv", false);
  ASSERT_OK(reader);
  ASSERT_OK((*reader)->ReadLine());
  ASSERT_OK((*reader)->ReadLine());
  EXPECT_EQ((*reader)->Place(), (dir_ / "a.tsv").string() + ":2");
}

TEST_F(TableReaderTest, MissingAndTruncatedFilesAreErrors) {
  EXPECT_STATUS(Read(dir_ / "absent.tsv"), kNotFound);
  const std::string gzip = testing::Gzip("1\t2\n3\t4\n");
  testing::WriteInput(dir_ / "t.tsv", gzip.substr(0, gzip.size() - 9));
  std::filesystem::rename(dir_ / "t.tsv", dir_ / "t.tsv.gz");
  EXPECT_STATUS(Read(dir_ / "t.tsv.gz"), kInvalidArgument);
}

// Random tables, with quotes where they are needed and sometimes where they are not.
TEST_F(TableReaderTest, RandomTablesAreReadAsTheyWere) {
  std::mt19937_64 random(testing::TestSeed());
  const auto pick = [&](std::uint64_t bound) { return random() % bound; };
  static constexpr std::string_view kPieces[] = {"a", "\"", ",", "\n", "\xC3\xA9", " ", "\r", "17"};
  const auto is_blank = [](char byte) { return byte == ' ' || byte == '\r'; };
  for (int round = 0; round < 200; ++round) {
    const bool csv = round % 2 == 0;
    Lines lines(1 + pick(20));
    std::string text;
    for (auto& fields : lines) {
      fields.resize(1 + pick(4));
      for (std::string& field : fields) {
        for (std::uint64_t i = pick(5); i > 0; --i) {
          const std::string_view piece = kPieces[pick(std::size(kPieces))];
          if (csv || (piece != "\n" && piece != "\r")) field += piece;
        }
        if (&field != &fields.front()) text += csv ? "," : "\t";
        // Without quotes, blanks around the field are not part of it, and a blank line is no line.
        if (!csv) {
          while (!field.empty() && is_blank(field.front())) field.erase(0, 1);
          while (!field.empty() && is_blank(field.back())) field.pop_back();
          if (fields.size() == 1 && field.empty()) field = "x";
        }
        const bool quote =
            csv && (field.find_first_of("\",\n\r ") != field.npos || field.empty() || pick(3) == 0);
        if (!quote) text += field;
        if (!quote) continue;
        text += '"';
        for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
        text += '"';
      }
      text += pick(2) == 0 ? "\n" : "\r\n";
    }
    const Content content = Parse(csv ? "r.csv" : "r.tsv", text);
    EXPECT_TRUE(content.malformed.empty());
    ASSERT_EQ(content.lines, lines) << text;
  }
}

}  // namespace
}  // namespace rhizome
