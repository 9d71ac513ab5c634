#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "index/generation/graph_builder.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {

/// Folder in which Debian's wordnet-base installs the database files.
inline constexpr const char* kWordNetFolder = "/usr/share/wordnet";

struct WordNetOptions {
  Path folder = kWordNetFolder;

  /// Number of columns of the array `feat`, at least 1.
  std::uint64_t feature_dim = 128;

  /// Layout of the arrays.
  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};  ///< for layout kChunk
  std::uint64_t chunk_rows = 0;
  std::uint64_t inner_rows = 0;
};

/// Reads the WordNet 3.0 database (data.* and index.*, format wndb(5WN)) as a graph for
/// IngestGraph.
///
/// - Vertices are synsets, in the order of data.noun, data.verb, data.adj, data.adv. External ids
///   are the same as in NLTK: `dog.n.01` is the first word in lower case, the letter of the synset
///   (n, v, a, s, r) and the position of the synset in the word's list in index.*. Vertex types are
///   the five letters.
/// - There is one edge for each (source, target, pointer kind). Edge types are the names of the 26
///   kinds, such as "hypernym". The weight is the number of pointers of that kind between the two
///   synsets, both semantic ones and ones between words.
/// - Arrays: `feat` float32 [n, feature_dim], hashed words of the gloss, L2 norm 1; `label` int64
///   [n, 1], the lexicographer file (see WordNetLabelNames); `split` uint8 [n, 1], 0 train, 1
///   valid, 2 test, by a hash of the external id, 60/20/20. The label is taken from a field that
///   neither features nor ids contain.
///
/// Errors: kNotFound, the folder or a file is missing (the message names the package);
/// kInvalidArgument, naming file and line; kInterrupted.
Result<GraphInput> ReadWordNet(FileSystem& fs, const WordNetOptions& options,
                               const JobControl& control);

/// Returns the names of the 45 classes, such as "noun.animal", indexed by label.
std::span<const std::string_view> WordNetLabelNames();

/// A pointer kind: its symbol in the files and its name. The index of a kind is its edge type.
struct WordNetPointer {
  std::string_view symbol;  ///< such as "@"
  std::string_view name;    ///< such as "hypernym"
};
std::span<const WordNetPointer> WordNetPointers();

}  // namespace rhizome
