#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/index/ingest_options.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/manifest.h"

namespace RHIZOME_API rhizome {

/// An array of vertices from a file, for a store that is there.
struct AddArrayOptions {
  /// Row i belongs to vertex i of those that are not deleted (LiveVertices): the order of the nodes
  /// file, or of integer ids 0, 1, 2, ..., and the order in which `export` writes; vertices that
  /// updates added come last. There may be fewer rows than vertices (dense files): those of the
  /// others are as FillMissingRows has them (array_rules.h), and append supplies them. But where
  /// vertices were deleted, a shorter file may be as old as any of them and is refused: `ids` must
  /// say whose rows it has.
  ArrayFile file;

  /// The external id of each row, one a line (of a .csv, the first field), in place of that rule.
  /// Vertices that it does not name have what FillMissingRows says.
  std::optional<Path> ids = {};

  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};  ///< for layout kChunk
  std::uint64_t chunk_rows = 0;                           ///< 0: DefaultChunkRows
  std::uint64_t inner_rows = 0;  ///< shards (ArrayEntry::inner_rows), or kChosenInnerRows
  std::vector<std::pair<std::string, std::string>> attributes = {};

  bool new_version = false;  ///< where the name is taken, the next version of it
  std::uint64_t keep = 0;    ///< then drop versions but the newest so many and the aliased; 0: none
  bool live = false;         ///< let name@live stand for the version at once
  std::uint64_t memory_bytes = 0;  ///< beyond the bare process and the order of rows; 0: 1 GiB
  Path scratch = {};               ///< see StoreOptions; empty: below the store
};

struct AddArrayReport {
  ArrayEntry array;              ///< as it is stored
  std::uint64_t rows_given = 0;  ///< vertices that have a row of a file
  std::uint64_t rows_read = 0;   ///< of the file

  /// Vertices that came with updates and for which the file had no row: append or put theirs.
  std::uint64_t new_vertices = 0;
  std::vector<std::uint64_t> dropped_versions;
  double seconds = 0;
};

/// Adds an array to the store at `path`, its rows permuted into the store's order through spill
/// files: memory is bounded whatever the file holds. A job (DESIGN section 3): it reads the store
/// at a snapshot, writes below scratch/, and takes the writer's lock only to publish.
/// Errors: kInvalidArgument, as ReadArrayFile and Ingest have them, another number of rows than of
/// vertices (see AddArrayOptions::file) or of ids, or an id twice; kNotFound, an unknown id;
/// kAlreadyExists; kBusy; kOutOfSpace; kInterrupted.
Result<AddArrayReport> AddArray(FileSystem& fs, const Path& path, const AddArrayOptions& options,
                                const JobControl& control);

/// Supplies the next rows of an array that was added with fewer rows than there are vertices: those
/// of the vertices from rows_given on that are not deleted, in the order of their ids; where all of
/// the generation have theirs, of the first vertex that updates added and that no row was put of,
/// and those after it. Type, width and layout stay; what was put into rows since goes on to count,
/// whatever compactions come in between. The result takes the place of the array, its aliases too,
/// as its next version: whoever reads the old one goes on to. If there are ids, they must be of
/// just these vertices. `reference` is "emb", "emb@3" or "emb@live"; options.file.name is not used.
/// Errors: as above; kInvalidArgument, every vertex has its row already; kNotFound, the array was
/// dropped or replaced meanwhile.
Result<AddArrayReport> AppendRows(FileSystem& fs, const Path& path, const std::string& reference,
                                  const AddArrayOptions& options, const JobControl& control);

}  // namespace rhizome
