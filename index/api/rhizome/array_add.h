#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/ingest.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"

namespace RHIZOME_API rhizome {

/// A vertex array from a file, to be added to an existing store.
struct AddArrayOptions {
  /// The file of rows. Row i belongs to the i-th vertex, of the array's type if it is bound to one
  /// (ArrayFile::vertex_type), that is not deleted (LiveVertices): the
  /// order of the nodes file, or of integer ids 0, 1, 2, ..., and the order in which `export`
  /// writes; vertices that updates added come last. A dense file may have fewer rows than there are
  /// vertices: the others get the values of FillMissingRows (array_rules.h), and AppendRows can
  /// supply their rows later. However, if vertices were deleted, a shorter file may predate any of
  /// the deletions, so it is refused unless `ids` names its vertices.
  ArrayFile file;

  /// The external id of each row, one a line (in a .csv, the first field). If set, it replaces the
  /// rule above. Vertices that it does not name get the values of FillMissingRows.
  std::optional<Path> ids = {};

  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};  ///< for layout kChunk
  std::uint64_t chunk_rows = 0;  ///< 0: DefaultChunkRows; if bound, of RowsOfBoundChunk
  std::uint64_t inner_rows = 0;  ///< for shards (ArrayEntry::inner_rows); may be kChosenInnerRows
  std::vector<std::pair<std::string, std::string>> attributes = {};

  bool new_version = false;  ///< if the name exists, add its next version
  /// then drop all versions except this number of the newest and the aliased ones; 0: drop none
  std::uint64_t keep = 0;
  bool live = false;               ///< make name@live an alias of this version at once
  std::uint64_t memory_bytes = 0;  ///< beyond the bare process and the order of rows; 0: 1 GiB
  Path scratch = {};               ///< see StoreOptions; empty: below the store

  /// Time to wait for the writer's lock at the end. With 0, the call fails before its work if the
  /// store is open for writing.
  double wait_seconds = 0;
};

/// Returns a source without rows (ArrayFile::open), to add an array whose rows are put later.
std::function<Result<std::unique_ptr<RowSource>>(FileSystem& fs)> EmptyRows(DataType dtype,
                                                                            std::uint64_t dim);

/// The result of AddArray and AppendRows.
struct AddArrayReport {
  ArrayEntry array;              ///< as stored
  std::uint64_t rows_given = 0;  ///< vertices (of the array's type) that have a row from a file
  std::uint64_t vertices = 0;    ///< vertices (of the array's type) that are not deleted
  std::uint64_t rows_read = 0;   ///< rows of this file

  /// Vertices that updates added and that have no row in the file: append or put their rows.
  std::uint64_t new_vertices = 0;
  std::vector<std::uint64_t> dropped_versions;
  StoreId store = {};  ///< the id of the store
  double seconds = 0;
};

/// Adds an array to the store at `path`. Memory is bounded regardless of the file's size. It takes
/// the writer's lock only to publish (AddArrayOptions::wait_seconds). A file without rows adds an
/// array in which no vertex has a row yet (EmptyRows).
/// Errors: kInvalidArgument, an error of ReadArrayFile or Ingest, a number of rows that does not
/// fit the vertices (see AddArrayOptions::file) or the ids, a repeated id, an unknown vertex type,
/// or an id of a vertex of another type; kNotFound, an unknown id; kAlreadyExists; kBusy;
/// kOutOfSpace; kInterrupted.
Result<AddArrayReport> AddArray(FileSystem& fs, const Path& path, const AddArrayOptions& options,
                                const JobControl& control);

/// Appends rows to an array that was added with fewer rows than there are vertices: rows of the
/// vertices from rows_given on that are not deleted, in the order of their ids. If all vertices of
/// the generation have rows, it begins at the first vertex that updates added and that has no row.
/// Type, width and layout are unchanged. Rows that were put after the array was added keep
/// precedence, even if compactions happened in between. The result replaces the array, with its
/// aliases, as its next version; readers of the old version are not affected. If ids are given,
/// they must be the ids of exactly these vertices. If the call is interrupted, rows of vertices
/// that updates added may be there already, in the order of their ids. `reference` is "emb",
/// "emb@3" or "emb@live"; options.file.name is not used. Errors: as AddArray; kInvalidArgument,
/// every vertex already has a row, or the array holds homes; kNotFound, the array was dropped or
/// replaced during the call.
Result<AddArrayReport> AppendRows(FileSystem& fs, const Path& path, const std::string& reference,
                                  const AddArrayOptions& options, const JobControl& control);

}  // namespace rhizome
