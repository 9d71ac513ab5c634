#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {

enum class GraphKind : std::uint8_t {
  kRmat,     ///< R-MAT: 2^scale vertices, skewed degrees (a .57, b .19, c .19, d .05, no noise)
  kPlanted,  ///< `classes` communities; labels, and features that weakly predict them
};

/// Options of `rhizome generate`. They determine the output: equal options yield the same bytes on
/// every machine.
struct GenerateOptions {
  GraphKind kind = GraphKind::kRmat;
  std::uint32_t scale = 16;        ///< 2^scale vertices; range [1, 32]
  std::uint32_t edge_factor = 16;  ///< edges per vertex; range [1, 4096]
  std::uint64_t seed = 1;

  /// Writes each pair once, smaller id first; ingest the file with --undirected.
  bool undirected = false;
  bool simple = false;   ///< drops self-loops and parallel edges, so that fewer edges remain
  bool permute = false;  ///< shuffle the ids, so that they do not reveal degree or class

  /// Number of columns of features.npy (float32); 0: no feature file.
  std::uint64_t dim = 0;

  /// kPlanted only: number of communities, range [2, 4096].
  std::uint32_t classes = 8;

  /// kPlanted: probability that an edge is drawn within the community of its source; the other
  /// edges end at a uniformly random vertex.
  double homophily = 0.7;

  /// kPlanted: distance of the mean of each class from the origin, spread over all columns. The
  /// noise of each column has standard deviation 1, so that a single row reveals its class only
  /// weakly.
  double feature_signal = 1.0;
};

/// Description of a written file. `dtype` is empty for text.
struct GeneratedFile {
  Path path;
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  std::string dtype;
};

/// Writes edges.npy (int64 [m, 2]), nodes.tsv (columns `id`; kPlanted: `id label split`, 60/20/20)
/// and, with dim > 0, features.npy into the folder `out`, which is created if necessary. Each file
/// is written atomically and replaces a file of the same name. All data is streamed, except that
/// `simple` holds 8 bytes per edge and `permute` 8 bytes per vertex. Noise is the sum of eight
/// uniform numbers, which is close to normal and, unlike a normal sample, the same on every
/// machine.
/// Errors: kInvalidArgument, an option out of range; kOutOfSpace; kPermissionDenied; kInterrupted.
Result<std::vector<GeneratedFile>> GenerateGraph(FileSystem& fs, const Path& out,
                                                 const GenerateOptions& options,
                                                 const JobControl& control);

/// Writes noise of standard deviation 1, float32 [rows, dim], as one .npy file: features for an
/// existing graph.
/// Errors: as GenerateGraph.
Result<GeneratedFile> GenerateFeatures(const Path& out, std::uint64_t rows, std::uint64_t dim,
                                       std::uint64_t seed, const JobControl& control);

}  // namespace rhizome
