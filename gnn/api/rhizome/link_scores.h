#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

// The torch-free entry point of link prediction in librhizome_gnn; see entry.h.

namespace RHIZOME_API rhizome {

/// An end of an edge.
enum class EdgeEnd : std::uint8_t { kSrc, kDst };

/// Receives the scores of the next pairs, in the order of the source.
using ScoreSink =
    std::function<Status(std::span<const VertexPair> pairs, std::span<const float> scores)>;

struct LinkScoreOptions {
  /// Embeddings or features of the vertices, of any numeric type; scores are computed in float32.
  std::string array;

  /// How the rows of a pair become its score: dot, distmult, complex, transe, rotate or mlp
  /// (docs/LINKS.md, "Decoders"). Empty: the decoder that the file names; without a file, dot.
  std::string scorer = {};
  Path decoder = {};  ///< weights of the decoder, safetensors; dot needs none

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

/// The vertices that are compared with the true end of an edge.
enum class LinkCandidates : std::uint8_t {
  kType,  ///< the vertices of the true end's type
  kAll,   ///< all vertices
};

struct LinkEvaluationOptions {
  // As in LinkScoreOptions.
  std::string array;
  std::string scorer = {};
  Path decoder = {};

  LinkCandidates candidates = LinkCandidates::kType;
  bool allow_leaked = false;  ///< accept test edges that the store has
  bool allow_stale = false;   ///< accept an array with rows that are missing or out of date

  /// Memory for test edges, known edges, queries and rows together, in bytes.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  std::uint32_t threads = 1;
};

/// The edges of an evaluation.
struct LinkEvaluationEdges {
  PairSource test;
  std::vector<PairSource> known = {};  ///< more known edges, such as the edges of a validation set
  PairSource negatives = {};           ///< edges that do not exist; null: none

  /// Given candidates replace LinkEvaluationOptions::candidates: `per_edge` destinations for each
  /// test edge, in order, and as many sources; null: that end is not ranked. They are not filtered.
  struct Given {
    std::uint64_t per_edge = 0;
    VertexSource dst = {};
    VertexSource src = {};
  } given = {};
};

/// Figures over ranks; zeros if there are none.
struct LinkFigures {
  double mrr = 0;  ///< mean of 1 / rank
  double mean_rank = 0;
  double hits_at_1 = 0;  ///< share of the ranks up to 1
  double hits_at_3 = 0;
  double hits_at_10 = 0;
};

/// The rank of a true end is 1 + better + equal / 2, where `better` and `equal` are the numbers of
/// other candidates with a better and with an equal score. It is 1 + better in `optimistic`, and
/// 1 + better + equal in `pessimistic`. Candidates that are ends of other known edges do not count.
struct LinkRanks {
  std::uint64_t ranks = 0;
  LinkFigures realistic;
  LinkFigures optimistic;
  LinkFigures pessimistic;
};

/// The scores of test edges compared with the scores of edges that do not exist.
struct NegativeFigures {
  std::uint64_t negatives = 0;
  double roc_auc = 0;  ///< equal scores count half
  double average_precision = 0;

  /// By K: the share of test edges with a better score than the K-th best negative; 1 if there are
  /// fewer negatives. Source: Hu et al., "Open Graph Benchmark" (NeurIPS 2020).
  std::vector<std::pair<std::uint64_t, double>> hits;
};

struct LinkEvaluation {
  std::uint64_t edges = 0;
  std::uint64_t unseen_ends = 0;   ///< test edges with an end that no edge of the store has
  std::uint64_t leaked_edges = 0;  ///< test edges that the store has
  LinkRanks all;
  LinkRanks without_unseen;
  LinkRanks dst;  ///< ranks of destinations
  LinkRanks src;
  std::vector<std::pair<TypeId, LinkRanks>> by_type;  ///< edge types with test edges, ascending
  std::vector<std::string> edge_types;                ///< names of the store's edge types
  std::optional<NegativeFigures> negatives;

  std::uint64_t passes = 0;  ///< over the array
  std::uint64_t bytes_read = 0;
  double read_seconds = 0;  ///< time spent waiting for rows
  double seconds = 0;       ///< of the call
};

struct TopLinksOptions {
  // As in LinkScoreOptions.
  std::string array;
  std::string scorer = {};
  Path decoder = {};

  std::uint64_t count = 10;  ///< links of a vertex

  /// The edge type of the links. Required if the decoder has several relations.
  std::optional<TypeId> type = {};
  bool drop_known = false;  ///< leave out the destinations of edges that the store has

  /// Memory for queries, their links and rows together, in bytes.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  std::uint32_t threads = 1;
};

struct TopLinksReport {
  std::uint64_t vertices = 0;
  std::uint64_t links = 0;
  std::uint64_t passes = 0;  ///< over the array
  std::uint64_t bytes_read = 0;
  double read_seconds = 0;  ///< time spent waiting for rows
};

/// Scores links of vertices from the rows of an array. Rows are read as of the graph's commit,
/// including rows written since the generation. No result depends on memory or threads, to the last
/// bit.
class LinkScores {
 public:
  virtual ~LinkScores() = default;

  /// Scores all pairs of `source` and passes them to `sink` in batches, in order. Memory depends
  /// neither on the number of pairs nor on the number of rows. A batch of pairs, as many as fit
  /// into a quarter of the memory, is sorted by the chunks of its rows: a group of source chunks
  /// stays in memory while each chunk of targets is read once. If a batch needs few rows and the
  /// array supports reads of single rows (layout row, or shards), it reads these rows instead,
  /// sorted and coalesced. Errors: kNotFound, no such array or decoder; kInvalidArgument, the array
  /// is not of vertices, or holds texts or times; the decoder does not fit it, or a pair's vertex
  /// or type is out of range; kOutOfMemory, memory_bytes is too small (the message says how much is
  /// needed); kCorruption; kIoError; kInterrupted; errors of `source` and `sink`. Threads: one call
  /// at a time in a process. Ownership: borrows all arguments during the call.
  virtual Result<LinkScoreReport> Score(const GraphSnapshot& graph, const LinkScoreOptions& options,
                                        const PairSource& source, const ScoreSink& sink,
                                        const JobControl& control) const = 0;

  /// Ranks the true ends of test edges among candidates: the destination and the source of each.
  /// Candidates are filtered: ends of other edges of the store, of `test` and of `known` do not
  /// count. A block of test edges, as many as fit into the memory, is ranked in one pass over the
  /// array.
  /// Errors: as Score; also kInvalidArgument, the store does not keep the lists in both directions,
  /// has a test edge, or the array has rows that are missing or out of date (see the options); a
  /// score is not a number, naming the vertices.
  /// Threads: one call at a time in a process.
  /// Ownership: borrows all arguments during the call.
  virtual Result<LinkEvaluation> Evaluate(const GraphSnapshot& graph,
                                          const LinkEvaluationOptions& options,
                                          const LinkEvaluationEdges& edges,
                                          const JobControl& control) const = 0;

  /// Finds, for each vertex of `source`, the destinations with the best scores, best first; of
  /// equal scores, the smaller vertex id. They have the type that destinations of such edges have
  /// in the store, and the vertex itself is not one of them. Passes them to `sink` as pairs, in the
  /// order of the source.
  /// Errors: as Score; also kInvalidArgument, a score is not a number, naming the vertices.
  /// Threads: one call at a time in a process.
  /// Ownership: borrows all arguments during the call.
  virtual Result<TopLinksReport> Top(const GraphSnapshot& graph, const TopLinksOptions& options,
                                     const VertexSource& source, const ScoreSink& sink,
                                     const JobControl& control) const = 0;
};

/// Name of the function below, for dlsym.
inline constexpr const char* kLinkScoresSymbol = "rhizome_gnn_scores_v1";

}  // namespace rhizome

/// Returns the link scorer. It is valid, or null, as rhizome_gnn_entry_v1 documents (entry.h).
extern "C" RHIZOME_API const rhizome::LinkScores* rhizome_gnn_scores_v1();
