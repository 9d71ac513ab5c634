#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

// The torch-free entry point of link prediction in librhizome_gnn; see entry.h.

namespace RHIZOME_API rhizome {

/// How the rows a and b of a pair are turned into its score.
enum class LinkScorerKind : std::uint8_t {
  kDot,  ///< sum of a_i b_i

  /// sum of a_i r_i b_i, where r is the row of the pair's type in the decoder's tensor `relations`
  /// [types, dim]; if that has one row, all pairs use it. Source: Yang et al., "Embedding Entities
  /// and Relations for Learning and Inference in Knowledge Bases" (ICLR 2015).
  kDistMult,

  /// A multilayer perceptron: the decoder's tensors `layers.<k>.weight` [out, in] and
  /// `layers.<k>.bias` [out], k = 0, 1, ..., with ReLU between them and one output at the end,
  /// before any sigmoid. The first layer takes the products a_i b_i if it is as wide as a row, and
  /// the concatenation (a, b) if it is twice as wide: the predictors of OGB and of DGL.
  kMlp,
};

/// A pair of vertices. `type` matters for kDistMult only.
struct VertexPair {
  VertexId src = 0;
  VertexId dst = 0;
  TypeId type = 0;
  friend bool operator==(const VertexPair&, const VertexPair&) = default;
};

/// Writes the next pairs to the front of `out` and returns their number, which is less than
/// out.size() only at the end. Its errors end the run and are returned unchanged.
using PairSource = std::function<Result<std::size_t>(std::span<VertexPair> out)>;

/// Receives the scores of the next pairs, in the order of the source.
using ScoreSink =
    std::function<Status(std::span<const VertexPair> pairs, std::span<const float> scores)>;

struct LinkScoreOptions {
  /// Embeddings or features of the vertices, of any numeric type; scores are computed in float32.
  std::string array;
  LinkScorerKind scorer = LinkScorerKind::kDot;
  Path decoder = {};  ///< safetensors; kDot needs none

  /// Memory for pairs, rows and read buffers together, in bytes; at least 8 MiB and eight chunks.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  std::uint32_t threads = 1;
};

struct LinkScoreReport {
  std::uint64_t pairs = 0;
  std::uint64_t batches = 0;  ///< groups of pairs that were scheduled together
  std::uint64_t chunk_requests = 0;
  std::uint64_t chunk_reads = 0;
  std::uint64_t rows_read = 0;   ///< single rows, read where a batch needs few
  std::uint64_t bytes_read = 0;  ///< in chunks and single rows
  double read_seconds = 0;       ///< time spent waiting for rows
  double score_seconds = 0;
};

/// Scores pairs of vertices from the rows of an array. Memory depends neither on the number of
/// pairs nor on the number of rows. A batch of pairs, as many as fit into a quarter of the memory,
/// is sorted by the chunks of its rows: a group of source chunks stays in memory while each chunk
/// of targets is read once. If a batch needs few rows and the array supports reads of single rows
/// (layout row, or shards), it reads these rows instead, sorted and coalesced. Scores do not depend
/// on memory or threads, to the last bit. Rows are read as of the graph's commit, including rows
/// written since the generation.
class LinkScores {
 public:
  virtual ~LinkScores() = default;

  /// Scores all pairs of `source` and passes them to `sink` in batches, in order.
  /// Errors: kNotFound, no such array or decoder; kInvalidArgument, the array is not of vertices,
  /// or holds texts or times; the decoder does not fit it, or a pair's vertex or type is out of
  /// range; kOutOfMemory, memory_bytes is too small (the message says how much is needed);
  /// kCorruption; kIoError; kInterrupted; errors of `source` and `sink`.
  /// Threads: one call at a time in a process.
  /// Ownership: borrows all arguments during the call.
  virtual Result<LinkScoreReport> Score(const GraphSnapshot& graph, const LinkScoreOptions& options,
                                        const PairSource& source, const ScoreSink& sink,
                                        const JobControl& control) const = 0;
};

/// Name of the function below, for dlsym.
inline constexpr const char* kLinkScoresSymbol = "rhizome_gnn_scores_v1";

}  // namespace rhizome

/// Returns the link scorer. It is valid, or null, as rhizome_gnn_entry_v1 documents (entry.h).
extern "C" RHIZOME_API const rhizome::LinkScores* rhizome_gnn_scores_v1();
