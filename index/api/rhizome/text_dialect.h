#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// The separator of the fields of a line of text.
enum class Delimiter : std::uint8_t {
  kTab,
  kComma,
  kSemicolon,
  kPipe,
  kBlanks,  ///< any number of blanks and tabs
  kNone,    ///< nothing: the line, unchanged, is its only field
};

/// Returns "tab", "comma", "semicolon", "pipe", "blanks" or "none".
std::string_view DelimiterName(Delimiter delimiter);

/// The inverse of DelimiterName, without "none".
std::optional<Delimiter> ParseDelimiter(std::string_view name);

/// The rules that divide a text file into lines and fields. Unless the delimiter is kNone, blank
/// lines are skipped, and blanks around a field are not part of it.
struct TextDialect {
  Delimiter delimiter = Delimiter::kTab;

  /// Fields may be quoted as in CSV (RFC 4180): "a ""b""". Blanks in quotes are part of the field.
  bool quotes = false;

  /// A line that begins with one of these characters is skipped.
  std::string comments = {};

  friend bool operator==(const TextDialect&, const TextDialect&) = default;
};

}  // namespace rhizome
