#pragma once

#include "rhizome/chunk_array.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Checks that an array has one row per vertex. Errors: kInvalidArgument, it is an edge array; the
/// message says how to read it.
Status CheckVertexArray(const ArrayEntry& entry);

/// Returns a description of the rows that a repair could not restore (--fill-holes); empty if there
/// are none.
std::string LostRowsOf(const ArrayEntry& entry);

/// Returns, as text, the value of such a row unless it was put again: zeros, or "none".
std::string_view ShownMissingRow(const ArrayEntry& entry);

/// Prints warnings about an array on standard error and adds them to `fields`: under "stale", that
/// rows computed by `infer` may be out of date; under "lost_rows", that a repair could not restore
/// some rows. With `row_of`, also reports whether the row of this vertex is known to be out of
/// date.
/// Errors: as reading the changes since the generation.
Status WarnIfStale(const Session& session, const GraphSnapshot& graph, const ArrayEntry& entry,
                   Json& fields, std::optional<VertexId> row_of = {});

}  // namespace rhizome
