#pragma once

#include "cli.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {

/// Checks that an array has a row for each vertex. Errors: kInvalidArgument, it has not; the
/// message says what to do instead.
Status CheckVertexArray(const ArrayEntry& entry);

/// Returns a text on the rows that a repair could not save (--fill-holes); empty if there are none.
std::string LostRowsOf(const ArrayEntry& entry);

/// Returns what such a row holds since then, unless it was put again: zeros, or "none".
std::string_view ShownMissingRow(const ArrayEntry& entry);

/// Warns, on standard error and in `fields`, about an array: under "stale" that rows which infer
/// computed may be out of date, and under "lost_rows" that a repair could not save some. With
/// `row_of` it also says whether this vertex's row is known to be out of date.
/// Errors: those of reading what was written since the generation.
Status TellStale(const Session& session, const GraphSnapshot& graph, const ArrayEntry& entry,
                 Json& fields, std::optional<VertexId> row_of = {});

}  // namespace rhizome
