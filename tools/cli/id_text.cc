#include "tools/cli/id_text.h"

#include <fmt/format.h>

#include <string_view>

namespace rhizome {
namespace {

/// UTF-8 byte order mark. Readers skip it at the beginning of a file, so an id that begins with it
/// would lose it if it came first.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

void AppendQuoted(std::string_view text, std::string& line) {
  line += '"';
  for (const char byte : text) {
    if (byte == '"') line += '"';
    line += byte;
  }
  line += '"';
}

/// Returns whether a reader of the file would drop blanks around the text.
bool HasOuterBlanks(const std::string& text) {
  constexpr std::string_view kBlanks = " \t\r";
  return !text.empty() &&
         (kBlanks.find(text.front()) != kBlanks.npos || kBlanks.find(text.back()) != kBlanks.npos);
}

}  // namespace

Status AppendIdField(const ExternalId& id, TableForm form, std::string& line) {
  const std::string text = ToString(id);
  const bool marked = text.starts_with(kByteOrderMark);
  if (form == TableForm::kCsv) {
    // A line that begins with # or % may be read as a comment.
    if (marked || text.find_first_of(",\"\r\n") != text.npos || HasOuterBlanks(text) ||
        text.starts_with('#') || text.starts_with('%')) {
      AppendQuoted(text, line);
    } else {
      line += text;
    }
    return Status::Ok();
  }
  const bool tabs = form == TableForm::kTabs;
  if (marked || text.find_first_of(tabs ? "\t\r\n" : "\r\n") != text.npos ||
      (tabs && HasOuterBlanks(text)))
    return Status::InvalidArgument(
        fmt::format("the external id {} contains {}a line break or a byte order mark, which only a "
                    "quoted file can represent; write a .csv file instead",
                    Json(text).dump(), tabs ? "a tab, a blank at an end, " : ""));
  line += text;
  return Status::Ok();
}

std::string IdText(const Json& id) { return id.is_string() ? id.get<std::string>() : id.dump(); }

}  // namespace rhizome
