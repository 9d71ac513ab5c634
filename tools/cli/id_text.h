#pragma once

#include <string>
#include <string_view>

#include "index/input/table_reader.h"
#include "rhizome/graph_types.h"
#include "tools/cli/cli.h"

namespace rhizome {

inline char SeparatorOf(TableForm form) { return form == TableForm::kCsv ? ',' : '\t'; }

/// Appends an external id to a line of a table such that TableReader reads the same id back; quotes
/// it where CSV requires that. With kLines an id may contain tabs.
/// Errors: kInvalidArgument, the id begins with a byte order mark, or contains a tab or a line
/// break that the form cannot represent.
Status AppendIdField(const ExternalId& id, TableForm form, std::string& line);

/// As AppendIdField, for any text; `what` names it in the message: "class".
Status AppendTextField(std::string_view what, std::string_view text, TableForm form,
                       std::string& line);

/// Returns the text of an id that is a field of an answer: a number or a string.
std::string IdText(const Json& id);

}  // namespace rhizome
