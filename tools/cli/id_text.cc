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

}  // namespace

Status AppendIdField(const ExternalId& id, TableForm form, std::string& line) {
  return AppendTextField("external id", ToString(id), form, line);
}

Status AppendTextField(std::string_view what, std::string_view text, TableForm form,
                       std::string& line) {
  const bool marked = text.starts_with(kByteOrderMark);
  if (form == TableForm::kCsv) {
    if (marked || text.find_first_of(",\"\r\n") != text.npos) {
      AppendQuoted(text, line);
    } else {
      line += text;
    }
    return Status::Ok();
  }
  const bool tabs = form == TableForm::kTabs;
  if (marked || text.find_first_of(tabs ? "\t\r\n" : "\r\n") != text.npos)
    return Status::InvalidArgument(
        fmt::format("the {} {} contains {}a line break or a byte order mark, which only a quoted "
                    "file can represent; write a .csv file instead",
                    what, Json(text).dump(), tabs ? "a tab, " : ""));
  line += text;
  return Status::Ok();
}

std::string IdText(const Json& id) { return id.is_string() ? id.get<std::string>() : id.dump(); }

}  // namespace rhizome
