#pragma once

#include "cli.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {

/// Errors: kInvalidArgument, the array has no row for each vertex, and what to do instead.
Status CheckVertexArray(const ArrayEntry& entry);

/// Where `export` writes the ids of the rows in `rows`, one a line: F.ids.tsv beside F.npy.
inline Path IdsBeside(Path rows) { return rows.replace_extension(".ids.tsv"); }

/// Which rows a repair could not save (--fill-holes); empty: none.
std::string LostRowsOf(const ArrayEntry& entry);

/// Says on standard error, and in `fields` under "stale", that rows of an array which infer
/// computed may be others by now, and under "lost_rows" that a repair could not save some, where
/// that is so. `row_of`: also whether this vertex's row is
/// known to be. Errors: those of reading what was written since.
Status TellStale(const Session& session, const GraphSnapshot& graph, const ArrayEntry& entry,
                 Json& fields, std::optional<VertexId> row_of = {});

}  // namespace rhizome
