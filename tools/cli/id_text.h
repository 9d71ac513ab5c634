#pragma once

#include <string>

#include "cli.h"
#include "rhizome/index/external_id.h"
#include "rhizome/index/table_reader.h"

namespace rhizome {

inline char SeparatorOf(TableForm form) { return form == TableForm::kCsv ? ',' : '\t'; }

/// Appends an external id to a line of a table, so that TableReader reads the same id: quoted where
/// CSV needs it. In kLines an id may have tabs. Errors: kInvalidArgument, a byte order mark at its
/// begin, a tab or a line break in a form that cannot have it.
Status AppendIdField(const ExternalId& id, TableForm form, std::string& line);

/// An id as people see it: as JSON where it has control characters, which would garble a terminal.
std::string ShownId(const Json& id);

}  // namespace rhizome
