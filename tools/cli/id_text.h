#pragma once

#include <string>

#include "index/input/table_writer.h"
#include "rhizome/graph_types.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Appends an external id to a line of a table (AppendField).
/// Errors: as AppendField.
Status AppendIdField(const ExternalId& id, TableForm form, std::string& line);

/// Returns the text of an id that is a field of an answer: a number or a string.
std::string IdText(const Json& id);

}  // namespace rhizome
