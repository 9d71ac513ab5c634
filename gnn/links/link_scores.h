#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

// The torch-free door to link prediction in librhizome_gnn; see entry.h.

namespace RHIZOME_API rhizome {

/// How the rows a and b of a pair become its score.
enum class LinkScorerKind : std::uint8_t {
  kDot,  ///< sum of a_i b_i

  /// sum of a_i r_i b_i, r being the row of the pair's type in the decoder's tensor `relations`
  /// [types, dim]; of one row, all pairs take it. Source: Yang et al., "Embedding Entities and
  /// Relations for Learning and Inference in Knowledge Bases" (ICLR 2015).
  kDistMult,

  /// The decoder's tensors `layers.<k>.weight` [out, in] and `layers.<k>.bias` [out], k = 0, 1,
  /// ..., with ReLU between them and one output at the end, before any sigmoid. The first layer
  /// takes the products a_i b_i if its width is that of a row, and (a, b) one behind the other if
  /// it is twice as wide: the predictors of OGB and of DGL.
  kMlp,
};

/// `type` counts for kDistMult only.
struct VertexPair {
  VertexId src = 0;
  VertexId dst = 0;
  TypeId type = 0;
  friend bool operator==(const VertexPair&, const VertexPair&) = default;
};

/// Gives the next pairs to the front of `out`; returns how many, fewer than out.size() only at the
/// end. Its errors end the run as they are.
using PairSource = std::function<Result<std::size_t>(std::span<VertexPair> out)>;

/// Takes the scores of the next pairs, in the order in which they were given.
using ScoreSink =
    std::function<Status(std::span<const VertexPair> pairs, std::span<const float> scores)>;

struct LinkScoreOptions {
  std::string array;  ///< embeddings or features of the vertices, float32 or float16
  LinkScorerKind scorer = LinkScorerKind::kDot;
  Path decoder = {};  ///< safetensors; kDot needs none

  /// For pairs, rows and read buffers together, in bytes; at least 8 MiB and eight chunks.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  std::uint32_t threads = 1;
};

struct LinkScoreReport {
  std::uint64_t pairs = 0;
  std::uint64_t batches = 0;  ///< pairs that were scheduled together
  std::uint64_t chunk_requests = 0;
  std::uint64_t chunk_reads = 0;
  std::uint64_t rows_read = 0;   ///< one by one, where a batch needs few
  std::uint64_t bytes_read = 0;  ///< of both
  double read_seconds = 0;       ///< waited for rows
  double score_seconds = 0;
};

/// Scores pairs of vertices from the rows of an array, in memory that does not grow with either.
/// A batch of pairs, as many as a quarter of the memory holds, is sorted by the chunks that its
/// rows lie in: a group of source chunks stays in memory while the chunks of the targets pass by
/// once. Where a batch asks for few rows and the array gives single ones (layout row, or shards),
/// those are read instead, sorted and coalesced. Scores of kDot and kDistMult do not depend on
/// memory or threads, bit by bit; those of kMlp may in the last bits. Rows are those of the graph's
/// commit: with what was put since the generation.
class LinkScores {
 public:
  virtual ~LinkScores() = default;

  /// Errors: kNotFound, no such array or decoder; kInvalidArgument, an array that is not of
  /// vertices or not of floats, a decoder that does not fit it, a pair's vertex or type out of
  /// range; kOutOfMemory, memory_bytes is too little, saying how much is needed; kCorruption;
  /// kIoError; kInterrupted. Threads: one call at a time in a process. Ownership: borrows all.
  virtual Result<LinkScoreReport> Score(const GraphSnapshot& graph, const LinkScoreOptions& options,
                                        const PairSource& source, const ScoreSink& sink,
                                        const JobControl& control) const = 0;
};

/// What to ask dlsym for: the function below.
inline constexpr const char* kLinkScoresSymbol = "rhizome_gnn_scores_v1";

}  // namespace rhizome

/// As rhizome_gnn_entry_v1 (entry.h).
extern "C" const rhizome::LinkScores* rhizome_gnn_scores_v1();
