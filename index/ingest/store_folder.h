#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/ingest.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// The file that describes the others in a folder that ExportFolder wrote.
inline constexpr std::string_view kStoreFolderFile = "rhizome.json";

/// The description of such a folder. Paths of files are relative to it.
struct StoreFolder {
  /// A CSV file with a header. The names of its columns are roles of IngestOptions::columns or
  /// node_columns.
  struct Table {
    std::string file;
    std::uint64_t rows = 0;
    std::vector<std::string> columns;
    std::vector<std::string> types;  ///< names of all types, in the order of their numbers
  };

  /// A .npy file of shape [rows, dim], with a row for each line of a table.
  struct Array {
    std::string name;
    std::string file;
    DataType dtype = DataType::kInvalid;
    std::uint64_t dim = 0;
    std::vector<std::pair<std::string, std::string>> attributes;

    /// The file with the texts of its codes, each as a JSON string in a line; empty: it has
    /// numbers.
    std::string texts = {};
  };

  bool text_ids = false;
  bool undirected = false;  ///< the table has each pair once
  Direction directions = Direction::kBoth;
  Table vertices;
  Table edges;
  std::vector<Array> arrays;           ///< of vertices
  std::vector<Array> edge_attributes;  ///< of edges
  std::vector<ArraySeries> series;
};

/// Returns the content of rhizome.json.
std::string EncodeStoreFolder(const StoreFolder& folder);

/// Returns `options`, or, if an exported folder is one of its inputs, the options that ingest that
/// folder, with the layout and the resources of `options`.
/// Errors: as ReadStoreFolder; kInvalidArgument, there are other inputs, or options that say how
/// files are read.
Result<IngestOptions> WithStoreFolder(FileSystem& fs, const IngestOptions& options);

/// Parses the content of rhizome.json. `where` is its path, for messages.
/// Errors: kInvalidArgument, naming the field; kUnsupported, a newer version.
Result<StoreFolder> DecodeStoreFolder(std::string_view text, const Path& where);

}  // namespace internal
}  // namespace rhizome
