#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "index/input/table_reader.h"
#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Returns the separator of the fields of a line.
inline char SeparatorOf(TableForm form) { return form == TableForm::kCsv ? ',' : '\t'; }

/// Appends a text to a line of a table such that TableReader reads the same text back. CSV quotes
/// it where that is necessary, also where a blank at its ends or a # at its beginning could be
/// misread. With kLines a text may contain tabs.
/// Errors: kInvalidArgument, the text begins with a byte order mark, or contains a tab, a blank at
/// an end, or a line break that the form cannot represent.
Status AppendField(std::string_view text, TableForm form, std::string& line);

/// How the values of a column are written as text.
struct ValueForm {
  DataType dtype = DataType::kInvalid;
  std::optional<std::int64_t> null = {};  ///< the integer that means "no value"
  std::string type = {};                  ///< the attribute `type` of the array
};

/// Returns the form of the values of an array, from its dtype and attributes.
ValueForm ValueFormOf(const ArrayEntry& entry);

/// Appends a value, the bytes of one element, as text from which ingestion reads the same value:
/// integers in decimal, floats with the digits that identify them, `nan`, `inf` and `-inf`, `true`
/// and `false`, times in ISO 8601, and nothing for "no value".
void AppendValue(const ValueForm& form, std::span<const std::byte> value, std::string& line);

}  // namespace rhizome
