#pragma once

#include <cstdint>

#include "rhizome/index/ingest_options.h"
#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// What an input holds, from the lengths of its files, headers and a sample of their lines.
struct InputEstimate {
  std::uint64_t edges = 0;  ///< lines, not yet doubled where the graph is undirected
  bool edges_exact = true;  ///< all of them are in .npy files
  std::uint64_t vertices = 0;
  bool vertices_exact = false;
  bool string_ids = false;
  bool dense_ids = true;                ///< they may be 0..n-1
  double id_bytes = 0;                  ///< mean length of an id in text
  std::uint64_t node_lines = 0;         ///< of the nodes file
  std::uint64_t node_column_bytes = 0;  ///< what a vertex's columns take in memory
  std::uint64_t array_bytes = 0;        ///< as they are stored, uncompressed
  std::uint64_t array_row_bytes = 0;    ///< of all arrays together
  std::uint64_t largest_chunk_bytes = 0;
  std::uint64_t text_bytes = 0;   ///< to be parsed, decompressed
  std::uint64_t input_bytes = 0;  ///< of all files as they lie on disk
};

/// Reads headers and at most a few MiB. Errors: kNotFound, kInvalidArgument and such, of files.
Result<InputEstimate> EstimateInput(FileSystem& fs, const IngestOptions& options);

}  // namespace rhizome
