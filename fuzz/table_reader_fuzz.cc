#include <optional>
#include <string>
#include <vector>

#include "index/input/table_reader.h"
#include "memory_files.h"
#include "seeds.h"
#include "storage/base/check.h"

namespace {

using namespace rhizome;

using Line = std::vector<std::string>;

struct Content {
  std::vector<Line> lines;
  std::uint64_t malformed = 0;
};

/// Reads a whole table; nullopt if it begins like a file of another format, such as UTF-16.
std::optional<Content> ReadAll(const std::string& text, TableForm form, bool header) {
  fuzzing::MemoryFiles files;
  const auto bytes = std::as_bytes(std::span(text));
  files.files["a"] = {bytes.begin(), bytes.end()};
  auto stream = InputStream::Open(files, "a");
  RHIZOME_CHECK(stream.has_value());
  const auto reader = TableReader::Open(*std::move(stream), form, header);
  RHIZOME_CHECK(reader.has_value() || reader.error().code() == StatusCode::kInvalidArgument);
  if (!reader) return std::nullopt;
  Content content;
  while (true) {
    const auto next = (*reader)->ReadLine();
    RHIZOME_CHECK(next.has_value());
    if (*next == TableReader::Next::kEnd) return content;
    if (*next == TableReader::Next::kMalformed) {
      RHIZOME_CHECK(!(*reader)->reason().empty() && (*reader)->fields().empty());
      ++content.malformed;
      continue;
    }
    const auto fields = (*reader)->fields();
    RHIZOME_CHECK(!fields.empty());
    content.lines.emplace_back(fields.begin(), fields.end());
  }
}

/// Writes lines as a table again. All fields are quoted if the form has quotes.
std::string Written(const std::vector<Line>& lines, TableForm form) {
  std::string text;
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) text += form == TableForm::kCsv ? ',' : '\t';
      if (form != TableForm::kCsv) {
        RHIZOME_CHECK(line[i].find('\n') == std::string::npos);
        text += line[i];
        continue;
      }
      text += '"';
      for (const char byte : line[i])
        text += byte == '"' ? std::string("\"\"") : std::string(1, byte);
      text += '"';
    }
    text += form == TableForm::kCsv ? "\n" : "\r\n";
  }
  return text;
}

}  // namespace

// Reads raw bytes as a table, repeated so that buffers end at any place. Well-formed lines that are
// written again must be read back unchanged.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto form = static_cast<TableForm>(data[0] % 3);
  std::string text(reinterpret_cast<const char*>(data + 2), size - 2);
  // A few inputs contain an overlong line, which must be skipped.
  if (data[1] == 255) text.insert(text.size() / 2, std::string(kMaxLineBytes + 1, 'x'));
  const auto content = ReadAll(text, form, data[0] / 3 % 2 == 1);
  if (!content) return 0;
  const std::string written = Written(content->lines, form);
  // A byte order mark at the start of a file is not part of the text.
  if (written.starts_with("\xEF\xBB\xBF")) return 0;
  const auto again = ReadAll(written, form, false);
  if (!again) return 0;
  RHIZOME_CHECK(again->malformed == 0 && again->lines == content->lines);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  const std::string text =
      "\xEF\xBB\xBFid,\"a "
      "\"\"b\"\"\",c\r\n1\t2\t3\n\"two\nlines\",x\nh\xC3\xB6hle\tb\xFF\n\"x\"y,z\n"
      "a\"b\n\n,\n\"never closed";
  for (const std::uint8_t kind : {0, 1, 2, 3, 4, 5}) {
    AddChanged(seeds, Joined({kind, 0}, text), 2, 200);
    for (std::size_t cut = 0; cut < text.size(); ++cut)
      seeds.push_back(Joined({kind, 0}, std::string_view(text).substr(cut)));
    seeds.push_back(Joined({kind, 255}, text));
    seeds.push_back(Joined({kind, 255}, "no end"));
  }
  return seeds;
}
