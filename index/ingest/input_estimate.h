#pragma once

#include <cstdint>

#include "rhizome/export.h"
#include "rhizome/ingest.h"

namespace RHIZOME_API rhizome {

/// An estimate of an input's content, from the lengths of its files, their headers, and a sample of
/// their lines.
struct InputEstimate {
  std::uint64_t edges = 0;  ///< lines, not doubled for an undirected graph
  bool edges_exact = true;  ///< all edges are in .npy files
  std::uint64_t vertices = 0;
  bool vertices_exact = false;
  bool string_ids = false;
  bool dense_ids = true;                ///< the ids may be 0..n-1
  double id_bytes = 0;                  ///< mean length of an id in text
  std::uint64_t node_lines = 0;         ///< lines of the nodes file
  std::uint64_t node_column_bytes = 0;  ///< memory of all columns of a vertex
  std::uint64_t array_bytes = 0;        ///< as stored, uncompressed
  std::uint64_t array_row_bytes = 0;    ///< row bytes of all arrays together
  std::uint64_t largest_chunk_bytes = 0;
  std::uint64_t text_bytes = 0;   ///< bytes to parse, after decompression
  std::uint64_t input_bytes = 0;  ///< size of all files on disk
};

/// Reads headers and at most a few MiB.
/// Errors: any error of opening and reading files, such as kNotFound and kInvalidArgument.
Result<InputEstimate> EstimateInput(FileSystem& fs, const InputPlan& plan);

}  // namespace rhizome
