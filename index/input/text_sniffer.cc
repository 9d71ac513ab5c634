// Finds the dialect of a text. SniffText first chooses the delimiter (FindDelimiter) from the lines
// that cannot be comments, then decides which lines are comments (FindComments), and reads the
// rows.

#include "index/input/text_sniffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "index/input/input_stream.h"
#include "index/input/table_reader.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kCommentCharacters = "#%";
constexpr std::size_t kProbedLines = 1000;
constexpr std::size_t kProbedBytes = std::size_t{256} << 10;

/// Share of the rows that must have the same number of fields.
constexpr double kMinShare = 0.9;

/// How the rows divide under a delimiter.
struct Division {
  Delimiter delimiter = Delimiter::kTab;
  std::size_t fields = 0;  // of most rows
  double share = 0;        // of the rows with `fields` fields
};

Result<std::unique_ptr<TableReader>> ReaderOf(std::string_view text, const Path& path,
                                              const TextDialect& dialect) {
  return TableReader::Open(InputStream::OfText(std::string(text), path), dialect,
                           /*header=*/false);
}

bool HasQuotes(Delimiter delimiter) {
  return delimiter == Delimiter::kComma || delimiter == Delimiter::kSemicolon;
}

/// Returns the first lines of `text`; if any does not begin with a comment character, only those.
std::string ProbeOf(std::string_view text) {
  std::string rows;
  std::string comments;
  std::size_t lines = 0;
  while (!text.empty() && lines < kProbedLines && rows.size() < kProbedBytes &&
         comments.size() < kProbedBytes) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    const bool comment = kCommentCharacters.find(line.front()) != std::string_view::npos;
    (comment ? comments : rows) += line;
    lines += comment ? 0 : 1;
  }
  return rows.find_first_not_of(" \t\r\n") == rows.npos ? comments : rows;
}

Result<Division> Divide(std::string_view probe, const Path& path, Delimiter delimiter,
                        std::size_t wanted) {
  RHIZOME_ASSIGN_OR_RETURN(
      const auto reader,
      ReaderOf(probe, path, {.delimiter = delimiter, .quotes = HasQuotes(delimiter)}));
  std::map<std::size_t, std::size_t> counts;
  std::size_t rows = 0;
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto next, reader->ReadLine());
    if (next == TableReader::Next::kEnd) break;
    ++rows;
    if (next == TableReader::Next::kFields) ++counts[reader->fields().size()];
  }
  Division division{.delimiter = delimiter};
  if (counts.empty()) return division;
  // If two numbers are equally frequent, the larger one.
  const auto usual =
      std::max_element(counts.rbegin(), counts.rend(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  division.fields = usual->first;
  division.share = static_cast<double>(usual->second) / static_cast<double>(rows);
  const auto as_wanted = counts.find(wanted);
  if (as_wanted == counts.end()) return division;
  return Division{.delimiter = delimiter,
                  .fields = wanted,
                  .share = static_cast<double>(as_wanted->second) / static_cast<double>(rows)};
}

Delimiter DelimiterOfName(const Path& path) {
  const std::string extension = ContentExtension(path);
  if (extension == ".csv") return Delimiter::kComma;
  return extension == ".psv" ? Delimiter::kPipe : Delimiter::kTab;
}

/// Returns whether `a` is the better choice for a file whose name calls for `named`.
bool IsBetter(const Division& a, const Division& b, const SniffHints& hints, Delimiter named) {
  const std::size_t wanted = hints.fields;
  const auto fits = [&](const Division& division) {
    return division.share >= kMinShare && division.fields > 1;
  };
  if (fits(a) != fits(b)) return fits(a);
  // Lines that blanks divide into different numbers of fields are texts, if one field will do.
  if (hints.may_be_one_field && wanted == 0 && !fits(a) && a.delimiter == Delimiter::kBlanks)
    return false;
  if (wanted > 0 && (a.fields == wanted) != (b.fields == wanted)) return a.fields == wanted;
  if ((a.fields > 1) != (b.fields > 1)) return a.fields > 1;
  if (a.fields <= 1) return a.delimiter == named;
  if (!fits(a)) return a.share > b.share;
  // Blanks are in texts, tabs mostly are not.
  if (a.delimiter == Delimiter::kBlanks || b.delimiter == Delimiter::kBlanks)
    return b.delimiter == Delimiter::kBlanks;
  const bool tabs = a.delimiter == Delimiter::kTab || b.delimiter == Delimiter::kTab;
  if (!tabs && a.fields != b.fields) return a.fields > b.fields;
  if (a.delimiter == named || b.delimiter == named) return a.delimiter == named;
  return a.delimiter == Delimiter::kTab;
}

Result<Division> FindDelimiter(std::string_view probe, const Path& path, const SniffHints& hints) {
  if (hints.delimiter) return Divide(probe, path, *hints.delimiter, hints.fields);
  const Delimiter named = DelimiterOfName(path);
  RHIZOME_ASSIGN_OR_RETURN(Division best, Divide(probe, path, named, hints.fields));
  if (hints.fields == 1) return best;  // any delimiter will do
  for (const Delimiter other : {Delimiter::kTab, Delimiter::kComma, Delimiter::kSemicolon,
                                Delimiter::kPipe, Delimiter::kBlanks}) {
    if (other == named) continue;
    RHIZOME_ASSIGN_OR_RETURN(const Division division, Divide(probe, path, other, hints.fields));
    if (IsBetter(division, best, hints, named)) best = division;
  }
  return best;
}

/// Returns the characters that begin comments in `text`.
Result<std::string> FindComments(std::string_view text, const Path& path,
                                 const Division& division) {
  std::array<bool, kCommentCharacters.size()> seen = {};
  std::array<bool, kCommentCharacters.size()> rows = {};  // a later line looks like a row
  bool any_row = false;
  std::size_t probed = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    const std::size_t character = kCommentCharacters.find(line.front());
    if (character == kCommentCharacters.npos) {
      any_row |= line.find_first_not_of(" \t\r\n") != line.npos;
      continue;
    }
    seen[character] = true;
    if (!any_row || rows[character] || ++probed > kProbedLines) continue;
    RHIZOME_ASSIGN_OR_RETURN(const Division of_line,
                             Divide(line, path, division.delimiter, division.fields));
    rows[character] = of_line.fields == division.fields;
  }
  std::string comments;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (any_row && seen[i] && !rows[i]) comments += kCommentCharacters[i];
  return comments;
}

std::uint64_t CountComments(std::string_view text, const std::string& comments) {
  std::uint64_t count = 0;
  while (!comments.empty() && !text.empty()) {
    count += comments.find(text.front()) != std::string::npos ? 1 : 0;
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return count;
}

Status CheckLineEnds(std::string_view text, const Path& path) {
  const std::size_t end = text.find('\r');
  if (text.find('\n') != text.npos || end == text.npos || end + 1 == text.size())
    return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{}: its lines end in CR alone; convert it: tr '\\r' '\\n'", path.string()));
}

}  // namespace

Result<FileHead> ReadHead(FileSystem& fs, const Path& path, std::size_t bytes) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  FileHead head;
  // The buffer grows with the file, so that many small files need little memory.
  constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
  while (!head.whole && head.bytes.size() < bytes) {
    const std::size_t held = head.bytes.size();
    head.bytes.resize(std::min(bytes, std::max(2 * held, kBlockBytes)));
    const auto room = std::as_writable_bytes(std::span(head.bytes)).subspan(held);
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t read, stream->ReadFull(room));
    head.whole = read < room.size();
    head.bytes.resize(held + read);
  }
  head.compression = stream->compression();
  return head;
}

Result<SniffedText> SniffText(const FileHead& head, const Path& path, const SniffHints& hints) {
  std::string_view text = head.bytes;
  RHIZOME_RETURN_IF_ERROR(CheckLineEnds(text, path));
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  // The last line may be incomplete.
  if (!head.whole) text = text.substr(0, text.rfind('\n') + 1);
  RHIZOME_ASSIGN_OR_RETURN(const Division division, FindDelimiter(ProbeOf(text), path, hints));
  SniffedText sniffed;
  sniffed.fields = division.fields;
  sniffed.dialect = {.delimiter = division.delimiter, .quotes = HasQuotes(division.delimiter)};
  RHIZOME_ASSIGN_OR_RETURN(sniffed.dialect.comments, FindComments(text, path, division));
  RHIZOME_ASSIGN_OR_RETURN(const auto reader, ReaderOf(text, path, sniffed.dialect));
  std::size_t rows = 0;
  while (rows < kSniffedLines) {
    RHIZOME_ASSIGN_OR_RETURN(const auto next, reader->ReadLine());
    if (next == TableReader::Next::kEnd) break;
    ++rows;
    if (next == TableReader::Next::kMalformed) {
      ++sniffed.bad_lines;
      continue;
    }
    sniffed.rows.push_back({reader->line(), {reader->fields().begin(), reader->fields().end()}});
  }
  sniffed.whole = head.whole && rows < kSniffedLines;
  sniffed.comment_lines = CountComments(text, sniffed.dialect.comments);
  return sniffed;
}

}  // namespace internal
}  // namespace rhizome
