#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Options of ExportFolder.
struct ExportFolderOptions {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  ///< for rows and edges in memory at once
};

/// The result of ExportFolder.
struct ExportFolderReport {
  /// A file of the folder: its path, and the shape of its content.
  struct File {
    Path path;
    std::uint64_t rows = 0;
    std::uint64_t dim = 0;  ///< columns
    std::string dtype;      ///< "text" for a table
  };
  std::vector<File> files;
  std::vector<std::string> notes;  ///< facts that the folder does not have, a sentence each
  double seconds = 0;
};

/// Writes a graph at its current commit as a new folder of common files (docs/DESIGN.md, section
/// 2): vertices.csv and edges.csv; a .npy file for each array, with its rows in the order of
/// vertices.csv; a .npy file for each edge attribute, in the order of edges.csv; and rhizome.json,
/// which describes them. Ingest with the options that ReadStoreFolder returns creates a store with
/// the same ids, types, edges, weights, arrays with their attributes and versions. The history of
/// the store is not exported: commits, generations, and facts that refer to them.
///
/// `folder` must not exist. It appears when it is complete.
/// Errors: kAlreadyExists; kInvalidArgument, `folder` is inside a store, or a partition is not
/// loaded; kOutOfSpace; kInterrupted; any error of reading.
Result<ExportFolderReport> ExportFolder(const Graph& graph, const Path& folder,
                                        const ExportFolderOptions& options,
                                        const JobControl& control);

/// Returns whether `folder` has a file rhizome.json, as ExportFolder writes it.
bool IsStoreFolder(FileSystem& fs, const Path& folder);

/// Returns options that ingest such a folder, with all defaults for the layout of the store.
/// Errors: kInvalidArgument, naming the field of rhizome.json that is missing or wrong; kNotFound;
/// kUnsupported, a newer version; kIoError.
Result<IngestOptions> ReadStoreFolder(FileSystem& fs, const Path& folder);

}  // namespace rhizome
