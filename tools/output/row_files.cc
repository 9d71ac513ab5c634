#include "tools/output/row_files.h"

#include <string>

#include "storage/base/check.h"
#include "storage/io/files.h"
#include "tools/cli/id_text.h"

namespace rhizome {

Result<WrittenFile> WriteIds(const GraphSnapshot& graph, const LiveVertices& live, const Path& path,
                             const JobControl& control) {
  constexpr std::size_t kPieceBytes = 1 << 20;
  const bool csv = TableFormOf(path) == TableForm::kCsv;
  const TableForm form = csv ? TableForm::kCsv : TableForm::kLines;
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(path));
  std::string piece;
  for (std::uint64_t i = 0; i < live.count(); ++i) {
    RHIZOME_RETURN_IF_ERROR(AppendIdField(*graph.ExternalIdOf(live.At(i)), form, piece));
    piece += '\n';
    if (piece.size() < kPieceBytes && i + 1 < live.count()) continue;
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "writing ids", .done = i, .total = live.count()}));
    RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(piece))));
    piece.clear();
  }
  return WrittenFile{std::move(out), live.count()};
}

Status CommitBoth(WrittenFile rows, const Path& rows_path, WrittenFile ids, const Path& ids_path) {
  RHIZOME_CHECK(ids.rows == rows.rows);
  const Status gone = FileSystem::Posix().RemoveFile(ids_path);
  if (!gone.ok() && gone.code() != StatusCode::kNotFound) return gone;
  const auto before = FileSystem::Posix().Stat(rows_path);
  Status committed = rows.file.Commit();
  if (committed.ok()) committed = ids.file.Commit();
  if (committed.ok()) return committed;
  // The second commit may fail because the disk is full: do not leave rows without ids.
  if (!before && before.error().code() == StatusCode::kNotFound)
    static_cast<void>(FileSystem::Posix().RemoveFile(rows_path));
  return committed;
}

}  // namespace rhizome
