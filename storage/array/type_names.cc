#include "storage/array/type_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "storage/base/escaped_text.h"
#include "storage/base/utf8.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

/// Returns whether a well-formed UTF-8 text has a control character (Unicode's category Cc).
bool HasControl(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = Utf8Length(text.substr(i));
    const std::uint32_t point = CodePointOf(text.substr(i, length));
    if (point < 0x20 || (point >= 0x7F && point < 0xA0)) return true;
    i += length;
  }
  return false;
}

}  // namespace

Status CheckTypeName(std::string_view what, std::string_view name) {
  if (!name.empty() && name.size() <= kMaxTypeNameBytes && IsUtf8(name) && !HasControl(name))
    return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}' is not a valid name for {}: use 1 to {} bytes of UTF-8 without control "
                  "characters, such as tabs and line breaks",
                  Excerpt(name), what, kMaxTypeNameBytes));
}

bool ArePlainTypes(std::span<const std::string> names) {
  return names.size() <= kMaxPlainTypes && std::ranges::all_of(names, [](const std::string& name) {
           return CheckName("type", name).ok();
         });
}

std::string ListOfNames(std::span<const std::string> names) {
  constexpr std::size_t kShown = 20;
  const auto shown = names.first(std::min(names.size(), kShown));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (shown.size() < names.size()) text += fmt::format(", ... ({} in all)", names.size());
  return text;
}

}  // namespace rhizome
