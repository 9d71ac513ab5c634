#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"

namespace RHIZOME_API rhizome {

/// The ModelSpec::kind of a table.
inline constexpr std::string_view kTableModel = "table";

/// Loss of a true edge and its negatives.
enum class LinkLoss : std::uint8_t {
  kSoftmax,          ///< cross entropy of the truth among its negatives
  kSelfAdversarial,  ///< log-sigmoid with a margin; hard negatives weigh more (RotatE)
  kMargin,           ///< max(0, margin - truth + negative), mean
  kBce,              ///< cross entropy of each score
};

/// Training on links (Task::kLink): the store's edges are the training set. A model of kind "table"
/// is a row of numbers for each vertex, a knowledge graph embedding: an encoder without layers. Any
/// other kind is an encoder, whose outputs are the rows.
struct LinkTrainOptions {
  std::uint64_t dim = 128;  ///< numbers of a row; even for complex decoders

  /// See docs/LINKS.md, "Decoders"; a table needs one other than mlp. Empty: complex for a table;
  /// distmult for an encoder, or dot if the store has one edge type.
  std::string decoder = {};

  /// Whether each relation has a second row, for edges in the opposite direction (Lacroix et al.,
  /// ICML 2018).
  bool reciprocal = false;
  LinkLoss loss = LinkLoss::kSoftmax;
  double margin = 9;  ///< kSelfAdversarial and kMargin

  /// Negatives for each side of the edges: of a batch, which all of its edges share; with mlp, of
  /// each edge. 0: 512, or 1 with mlp.
  std::uint64_t negatives = 0;

  /// Sources of negatives, with their shares. `resident`: vertices of the batch's
  /// partition; `uniform`; `degree^A`: in proportion to degree^A; `in-batch`: other ends of the
  /// batch. All have the vertex type of the end that they replace.
  std::string negative_sources = "resident:.5,uniform:.5";

  /// Whether negatives that are known edges do not count: edges of the store, and of `valid`. The
  /// end of the edge itself never counts.
  bool filter_negatives = false;

  /// Weight of the sum of cubes of the moduli of the rows of an edge (Lacroix et al., ICML 2018).
  double n3 = 0;

  /// For encoders: whether message passing sees the edges of the minibatch itself. Their scores are
  /// then easy to learn and say little about other edges. For comparison.
  bool keep_seed_edges = false;

  /// File of edges, as `evaluate` reads them, that are ranked after each evaluated epoch
  /// (LearningOptions::eval_every) against a fixed set of vertices. An encoder keeps its best
  /// epoch, a table its last one. Empty: none.
  Path valid = {};

  /// File of edges that are ranked after the training as `evaluate` does, with the edges of `valid`
  /// as known edges (TrainReport::link_test). It needs JobOptions::out, and for a table
  /// `out_array`. Empty: none.
  Path test_edges = {};
  bool allow_leaked = false;  ///< accept edges of `test_edges` that the store has

  /// Name of the new array that receives the rows of all vertices at the end; empty: none.
  std::string out_array = {};
};

/// An epoch: all edges of the store.
struct TableModelEpoch {
  double loss = 0;  ///< mean over the edges and both sides
  double seconds = 0;
  std::uint64_t edges = 0;
  std::uint64_t rows_requested = 0;
  std::uint64_t rows_read = 0;  ///< from disk
  std::uint64_t rows_written = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;

  /// Mean of 1 / rank of the validation edges, if they were ranked after the epoch. The reads of
  /// their rows are not counted above, and neither is the time.
  std::optional<double> mrr_sampled = {};
};

struct TableModelReport {
  std::vector<TableModelEpoch> epochs;  ///< of this run
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  std::uint64_t relations = 0;
  std::uint64_t batches = 0;          ///< of an epoch
  std::uint64_t resumed_batches = 0;  ///< completed before this run
  std::uint64_t table_bytes = 0;      ///< values and state of the optimiser
  std::uint64_t disk_bytes = 0;       ///< of the table's file, with both slots of each block
  std::uint64_t cache_bytes = 0;
  std::uint64_t cached_rows = 0;
  std::uint64_t base_memory_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::string decoder_file;  ///< path of the written decoder, or empty
  std::string array;         ///< name of the published array, or empty
};

/// Rows that an epoch moves. A training writes more rows: at checkpoints, and others of the blocks
/// that it writes.
struct TableEpochPlan {
  std::uint64_t rows_requested = 0;
  std::uint64_t rows_read = 0;     ///< as TableModelEpoch::rows_read
  std::uint64_t rows_written = 0;  ///< changed rows that leave memory
};

/// Needs of a training of a table (GnnEntry::PlanTable).
struct TablePlan {
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  std::uint64_t relations = 0;
  std::uint64_t partitions = 0;  ///< of the store
  std::uint64_t batches = 0;     ///< of an epoch
  std::uint64_t row_bytes = 0;   ///< value and state of the optimiser
  std::uint64_t table_bytes = 0;
  std::uint64_t disk_bytes = 0;  ///< of the table's file, with both slots of each block
  std::uint64_t free_bytes = 0;  ///< of the disk with the job's folder

  std::uint64_t memory_bytes = 0;        ///< ResourceOptions::memory_bytes; 0: no limit
  std::uint64_t least_memory_bytes = 0;  ///< the smallest limit that suffices
  std::uint64_t all_memory_bytes = 0;    ///< a limit under which all rows remain in memory

  // The division of memory.
  std::uint64_t held_bytes = 0;   ///< the graph
  std::uint64_t fixed_bytes = 0;  ///< a step, and the bookkeeping of the table
  std::uint64_t lookahead = 0;    ///< batches whose rows the cache knows in advance
  std::uint64_t lookahead_bytes = 0;
  std::uint64_t cache_bytes = 0;
  std::uint64_t cached_rows = 0;

  std::vector<TableEpochPlan> epochs;  ///< the first epoch, and if there are more, the second
  std::vector<std::string> notes;      ///< advice: a sentence each
  std::vector<std::string> warnings;   ///< of options that are probably wrong
};

}  // namespace rhizome
