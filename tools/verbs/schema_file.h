#pragma once

#include <string>

#include "rhizome/graph_types.h"

namespace rhizome {

/// Reads the schema that --schema names: JSON if it begins with "{", otherwise a file; "-" is
/// standard input. An empty text is the default schema.
/// Errors: as InputStream::Open and ParseSchema, naming the file.
Result<GraphSchema> ReadSchema(const std::string& given);

/// The help of --schema.
extern const char* const kSchemaHelp;

}  // namespace rhizome
