#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rhizome/index/graph_builder.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Where Debian's wordnet-base puts the database files.
inline constexpr const char* kWordNetFolder = "/usr/share/wordnet";

struct WordNetOptions {
  Path folder = kWordNetFolder;

  /// Columns of the array `feat`, at least 1.
  std::uint64_t feature_dim = 128;

  /// Layout of the arrays.
  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};  ///< for layout kChunk
  std::uint64_t chunk_rows = 0;
  std::uint64_t inner_rows = 0;
};

/// Reads the WordNet 3.0 database (data.* and index.*, format wndb(5WN)) as a graph: give the
/// result to IngestGraph.
///
/// Vertices: synsets, in the order of data.noun, data.verb, data.adj, data.adv. External ids are
/// those of NLTK: `dog.n.01` is the first word in lower case, the synset's letter (n, v, a, s, r)
/// and the place of the synset in the word's list in index.*. Vertex types: the five letters.
/// Edges: one for each (source, target, pointer kind); edge types are the 26 kinds by name, such as
/// "hypernym"; weight = number of pointers of that kind between the two synsets, be they semantic
/// or between words. Arrays: `feat` float32 [n, feature_dim], hashed words of the gloss, L2 norm 1;
/// `label` int64 [n, 1], the lexicographer file (see WordNetLabelNames); `split` uint8 [n, 1],
/// 0 train, 1 valid, 2 test, by a hash of the external id, 60/20/20. The label is read from a field
/// that neither features nor ids contain.
/// Errors: kNotFound, the folder or a file is missing (the message says which package has it);
/// kInvalidArgument naming file and line; kInterrupted.
Result<GraphInput> ReadWordNet(FileSystem& fs, const WordNetOptions& options,
                               const JobControl& control);

/// Names of the 45 classes by label, such as "noun.animal".
std::span<const std::string_view> WordNetLabelNames();

/// The pointer kinds in the order of their edge type, with the symbol that the files use.
struct WordNetPointer {
  std::string_view symbol;  ///< such as "@"
  std::string_view name;    ///< such as "hypernym"
};
std::span<const WordNetPointer> WordNetPointers();

}  // namespace rhizome
