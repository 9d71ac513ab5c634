#pragma once

#include <cstdint>

#include "index/graph/live_vertices.h"
#include "rhizome/file_system.h"
#include "storage/io/files.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// A file with a number of lines or rows. It appears at its path only when committed.
struct WrittenFile {
  OutputFile file;
  std::uint64_t rows = 0;
};

/// Returns the path of the file of ids that `export` writes for `rows`: F.ids.tsv for F.npy.
inline Path IdsBeside(Path rows) { return rows.replace_extension(".ids.tsv"); }

/// Writes the external ids of the vertices in `live`, one per line, in vertex-id order; as CSV if
/// the file name ends accordingly. Errors: as AppendIdField and OutputFile.
Result<WrittenFile> WriteIds(const GraphSnapshot& graph, const LiveVertices& live, const Path& path,
                             const JobControl& control);

/// Commits both files, `rows` as `rows_path`. The ids of an earlier export are removed first: if
/// this function is interrupted, the rows may lack their ids but are never next to wrong ones.
/// Errors: as OutputFile::Commit.
Status CommitBoth(WrittenFile rows, const Path& rows_path, WrittenFile ids, const Path& ids_path);

}  // namespace rhizome
