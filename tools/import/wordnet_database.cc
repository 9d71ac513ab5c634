#include "tools/import/wordnet_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "index/input/table_reader.h"
#include "tools/import/wordnet_names.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kLinesPerReport = 4096;
constexpr std::uint8_t kLabels = 45;

/// Splits a line into its fields, which are separated by single spaces.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}

  /// Returns the next field, or an empty one at the end of the line.
  std::string_view Next() {
    const std::size_t space = rest_.find(' ');
    const std::string_view field = rest_.substr(0, space);
    rest_.remove_prefix(space == std::string_view::npos ? rest_.size() : space + 1);
    return field;
  }

  Result<std::uint32_t> Number(std::string_view what, int base = 10) {
    const std::string_view field = Next();
    std::uint32_t value = 0;
    const char* end = field.data() + field.size();
    const auto [stop, error] = std::from_chars(field.data(), end, value, base);
    if (field.empty() || error != std::errc() || stop != end)
      return Fail(Status::InvalidArgument(fmt::format("{} '{}' is not a number", what, field)));
    return value;
  }

 private:
  std::string_view rest_;
};

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string CleanWord(std::string_view word) {
  // Adjectives may carry a syntactic marker: "galore(ip)".
  std::string clean(word.substr(0, word.find('(')));
  std::transform(clean.begin(), clean.end(), clean.begin(), LowerAscii);
  return clean;
}

Result<WordNetLink> ParseLink(Fields& fields) {
  WordNetLink link;
  const std::string_view symbol = fields.Next();
  const auto type = WordNetPointerType(symbol);
  if (!type) return Fail(Status::InvalidArgument(fmt::format("unknown pointer '{}'", symbol)));
  link.type = *type;
  RHIZOME_ASSIGN_OR_RETURN(link.offset, fields.Number("the pointer's offset"));
  const std::string_view letter = fields.Next();
  const auto file = letter.size() == 1 ? WordNetFileOf(letter[0]) : std::nullopt;
  if (!file)
    return Fail(Status::InvalidArgument(fmt::format("'{}' is not a part of speech", letter)));
  link.file = static_cast<std::uint8_t>(*file);
  RHIZOME_RETURN_IF_ERROR(fields.Number("the pointer's words", 16));
  return link;
}

using OffsetMap = std::unordered_map<std::uint32_t, std::uint32_t>;  // offset -> synset

/// Returns the line that ReadLine found, or an error if it is malformed.
Result<std::string_view> WholeLine(TableReader& reader, TableReader::Next next) {
  if (next == TableReader::Next::kMalformed)
    return Fail(Status::InvalidArgument(fmt::format("{}: {}", reader.Place(), reader.reason())));
  const std::string_view line = reader.fields()[0];
  if (line.find('\t') != line.npos)
    return Fail(Status::InvalidArgument(fmt::format("{}: unexpected tab", reader.Place())));
  return line;
}

/// Calls `take(line)` for every line after the licence text at the beginning of the file.
template <typename Take>
Status ForEachLine(FileSystem& fs, const Path& path, const JobControl& control, Take take) {
  auto opened = InputStream::Open(fs, path);
  if (!opened && opened.error().code() == StatusCode::kNotFound)
    return opened.error().WithContext(
        "WordNet is not installed; install it (Debian: apt-get install wordnet-base), or name its "
        "folder with --from");
  if (!opened) return opened.error();
  // Whole lines: the blanks at the beginning of a line show that it is part of the licence.
  RHIZOME_ASSIGN_OR_RETURN(
      const auto table, TableReader::Open(std::move(*opened), TableForm::kLines, /*header=*/false));
  TableReader& reader = *table;
  for (std::uint64_t lines = 0;; ++lines) {
    RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, reader.ReadLine());
    if (next == TableReader::Next::kEnd) return Status::Ok();
    if (lines % kLinesPerReport == 0)
      RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "reading WordNet",
                                              .done = reader.stream().consumed_bytes(),
                                              .total = reader.stream().total_bytes(),
                                              .detail = {}}));
    RHIZOME_ASSIGN_OR_RETURN(const std::string_view line, WholeLine(reader, next));
    if (line.starts_with("  ")) continue;
    const Status taken = take(line, static_cast<std::uint32_t>(reader.line()));
    if (!taken.ok()) return taken.WithContext(reader.Place());
  }
}

Status ReadData(FileSystem& fs, const Path& folder, std::uint8_t file, const JobControl& control,
                std::vector<Synset>& synsets, OffsetMap& by_offset) {
  const auto take = [&](std::string_view line, std::uint32_t number) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(Synset synset, ParseSynset(line, file));
    synset.line = number;
    if (!by_offset.emplace(synset.offset, synsets.size()).second)
      return Status::InvalidArgument(fmt::format("the offset {} appears twice", synset.offset));
    synsets.push_back(std::move(synset));
    return Status::Ok();
  };
  return ForEachLine(fs, folder / fmt::format("data.{}", kWordNetFiles[file]), control, take);
}

/// Parses a line of index.*: `lemma pos synset_cnt p_cnt [symbol ...] sense_cnt tagsense_cnt offset
/// ...`. Sets the sense of the synsets whose first word is the lemma.
Status TakeIndexLine(std::string_view line, const OffsetMap& by_offset,
                     std::vector<Synset>& synsets) {
  Fields fields(line);
  const std::string_view lemma = fields.Next();
  fields.Next();
  RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t senses, fields.Number("the number of senses"));
  RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t symbols, fields.Number("the number of pointers"));
  for (std::uint32_t i = 0; i < symbols; ++i)
    if (fields.Next().empty())
      return Status::InvalidArgument("the line ends before its last pointer");
  fields.Next();
  fields.Next();
  for (std::uint32_t sense = 1; sense <= senses; ++sense) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t offset, fields.Number("the synset's offset"));
    const auto found = by_offset.find(offset);
    if (found == by_offset.end())
      return Status::InvalidArgument(fmt::format("no synset has the offset {}", offset));
    Synset& synset = synsets[found->second];
    if (synset.word == lemma) synset.sense = sense;
  }
  return Status::Ok();
}

}  // namespace

std::string Synset::Id() const { return fmt::format("{}.{}.{:02}", word, letter, sense); }

Result<Synset> ParseSynset(std::string_view line, std::uint8_t file) {
  const std::size_t bar = line.find(" | ");
  if (bar == std::string_view::npos)
    return Fail(Status::InvalidArgument("there is no gloss after '|'"));
  Fields fields(line.substr(0, bar));
  Synset synset;
  synset.file = file;
  synset.gloss = line.substr(bar + 3);
  RHIZOME_ASSIGN_OR_RETURN(synset.offset, fields.Number("the offset"));
  RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t label, fields.Number("the lexicographer file"));
  if (label >= kLabels)
    return Fail(Status::InvalidArgument(fmt::format("unknown lexicographer file {}", label)));
  synset.label = static_cast<std::uint8_t>(label);
  const std::string_view letter = fields.Next();
  if (letter.size() != 1 || WordNetFileOf(letter[0]) != std::optional<std::size_t>(file))
    return Fail(
        Status::InvalidArgument(fmt::format("type '{}' does not belong in this file", letter)));
  synset.letter = letter[0];
  RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t words, fields.Number("the number of words", 16));
  for (std::uint32_t i = 0; i < words; ++i) {
    const std::string_view word = fields.Next();
    if (i == 0) synset.word = CleanWord(word);
    RHIZOME_RETURN_IF_ERROR(fields.Number("a word's lexical id", 16));
  }
  if (synset.word.empty()) return Fail(Status::InvalidArgument("the synset has no word"));
  RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t links, fields.Number("the number of pointers"));
  for (std::uint32_t i = 0; i < links; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const WordNetLink link, ParseLink(fields));
    synset.links.push_back(link);
  }
  return synset;
}

// Reads each data file, then its index, which determines the senses. Every synset must be in the
// index.
Result<std::vector<Synset>> ReadSynsets(FileSystem& fs, const Path& folder,
                                        const JobControl& control) {
  std::vector<Synset> synsets;
  for (std::uint8_t file = 0; file < std::size(kWordNetFiles); ++file) {
    const std::size_t first = synsets.size();
    OffsetMap by_offset;
    RHIZOME_RETURN_IF_ERROR(ReadData(fs, folder, file, control, synsets, by_offset));
    const Path index = folder / fmt::format("index.{}", kWordNetFiles[file]);
    RHIZOME_RETURN_IF_ERROR(
        ForEachLine(fs, index, control, [&](std::string_view line, std::uint32_t) {
          return TakeIndexLine(line, by_offset, synsets);
        }));
    for (std::size_t i = first; i < synsets.size(); ++i) {
      if (synsets[i].sense != 0) continue;
      return Fail(Status::InvalidArgument(fmt::format("{}: '{}' of data.{}:{} is missing",
                                                      index.string(), synsets[i].word,
                                                      kWordNetFiles[file], synsets[i].line)));
    }
  }
  return synsets;
}

}  // namespace rhizome
