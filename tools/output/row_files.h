#pragma once

#include <cstdint>

#include "cli.h"
#include "rhizome/storage/file_system.h"

namespace rhizome {

/// A file of so many lines or rows, which is not there until it is committed.
struct WrittenFile {
  OutputFile file;
  std::uint64_t rows = 0;
};

/// Returns the file in which `export` writes the ids of `rows`, one a line: F.ids.tsv beside F.npy.
inline Path IdsBeside(Path rows) { return rows.replace_extension(".ids.tsv"); }

/// Writes the external ids of the vertices that are not deleted, one a line, in vertex-id order; as
/// CSV if the name says so. Errors: those of AppendIdField and OutputFile.
Result<WrittenFile> WriteIds(const GraphSnapshot& graph, const Path& path,
                             const JobControl& control);

/// Lets both appear, `rows` as `rows_path`. The ids of an earlier export are removed first: if this
/// one is cut off, rows may lack their ids but are never beside the wrong ones. Errors: those of
/// OutputFile::Commit.
Status CommitBoth(WrittenFile rows, const Path& rows_path, WrittenFile ids, const Path& ids_path);

}  // namespace rhizome
