#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/cache/feature_cache.h"
#include "rhizome/cache/job_report.h"
#include "rhizome/index/graph_types.h"
#include "rhizome/storage/dtype.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

/// The feature rows of a minibatch, float32 or float16. Row i belongs to the vertex with local
/// number i. Rows are not copied for it: they lie in the memory of a cache, anywhere in its table,
/// and stay there and stay the same while this lives. (Or in memory of its own, see Own.)
/// Threads: const functions from many threads. Ownership: holds rows of the cache, which must
/// outlive it; to hold them for long takes room from the minibatches to come.
class FeatureRows {
 public:
  FeatureRows() = default;

  /// `held`: of a cache whose rows are kept as `type` and `dim` say.
  FeatureRows(HeldRows held, DataType type, std::size_t dim)
      : type_(type), dim_(dim), rows_(held.slots().size()), held_(std::move(held)) {}

  /// The same for vertices of which several have one row: vertex i has row row_of[i] of `held`.
  FeatureRows(HeldRows held, DataType type, std::size_t dim, std::vector<std::uint32_t> row_of);

  /// Rows of its own, unspecified at first. Errors: kOutOfMemory.
  static Result<FeatureRows> Own(DataType type, std::size_t rows, std::size_t dim);

  DataType type() const { return type_; }  ///< kFloat32 or kFloat16
  std::size_t rows() const { return rows_; }
  std::size_t dim() const { return dim_; }  ///< columns
  std::size_t row_bytes() const { return dim_ * DataTypeBytes(type_); }

  /// Row i as it lies there, row_bytes() bytes.
  std::span<const std::byte> row(std::size_t i) const {
    const std::size_t at = place().empty() ? i : place()[i];
    return table().subspan(at * row_bytes(), row_bytes());
  }

  /// Row i of float32 rows, dim() numbers. Rows of another type end the process.
  std::span<const float> floats(std::size_t i) const;

  /// Copies all rows to `out`, of shape [rows(), dim()], row-major; float16 is widened, exactly.
  /// Errors: kInvalidArgument, `out` is not of that size.
  Status CopyTo(std::span<float> out) const;

  /// For code that gathers by index itself: row i is row place()[i] of the table, or row i where
  /// place() is empty. No other row of the table may be read.
  std::span<const std::byte> table() const {
    return own_.size_bytes() > 0 ? std::span<const std::byte>(own_.bytes()) : held_.table();
  }
  std::span<const std::uint32_t> place() const {
    return place_.empty() ? held_.slots() : std::span<const std::uint32_t>(place_);
  }

  /// All rows of its own, float32.
  std::span<float> own_floats() const;

 private:
  DataType type_ = DataType::kFloat32;
  std::size_t dim_ = 0;
  std::size_t rows_ = 0;
  HeldRows held_;
  std::vector<std::uint32_t> place_;  // empty: as held
  AlignedBuffer own_;
};

/// A sampled subgraph with the features of its vertices: what one step of a training computes on.
/// Vertices have local numbers in the order of discovery: the seeds first, as they were given, then
/// hop by hop; numbers and lists are those of SampledSubgraph (index/sampler_options.h), in fewer
/// bytes.
///
/// Shapes: n = rows.size() vertices, m = neighbors.size() edges.
/// Threads: a value; it may move to another thread. Ownership: `features` hold the loader's memory;
/// all else is its own.
struct Minibatch {
  std::uint64_t epoch = 0;   ///< of a Loader: from 0
  std::uint64_t number = 0;  ///< of a Loader: within its epoch, from 0

  /// Set by a Loader: Sampler::Sample draws this subgraph for these seeds with it as `batch`.
  std::uint64_t tag = 0;
  std::uint64_t seed_count = 0;

  std::vector<Row> rows;                     ///< [n], where vertices stand in arrays; distinct,
                                             ///< or distinct within a seed's part if disjoint
  std::vector<VertexId> vertices;            ///< [n], of a Loader
  std::vector<std::uint64_t> hop_offsets;    ///< [hops + 2]; hop 0 holds the seeds
  std::vector<std::uint32_t> offsets = {0};  ///< [lists + 1]; list v: what was drawn for vertex v
                                             ///< (Frontier::kAgain: see hop_lists)
  std::vector<std::uint32_t> neighbors;      ///< [m], local numbers
  std::vector<TypeId> types;                 ///< [m], or empty: one edge type, or not asked for
  std::vector<float> weights;                ///< [m], or empty: likewise
  std::vector<EdgeId> edges;                 ///< [m], or empty: SamplerOptions::edge_ids
  std::vector<std::uint64_t> hop_lists;      ///< [hops + 1] with Frontier::kAgain: hop h drew lists
                                             ///< [hop_lists[h], hop_lists[h + 1]); else empty
  std::vector<std::uint32_t> seed_of;        ///< [n] if disjoint: whose part a vertex is in
  std::vector<std::uint32_t> degrees;        ///< [n], in the whole graph, if asked for
  std::vector<float> weighted_degrees;       ///< [n], sums of the weights of all edges that are
                                             ///< walked, in the whole graph, if asked for
  std::vector<std::int64_t> seed_times;      ///< [seed_count], of a Loader of temporal samples
  std::vector<std::int32_t> labels;          ///< [seed_count], if asked for
  FeatureRows features;                      ///< [n, feature columns]
  MinibatchCosts costs;

  /// The lists of the vertex with local number v, drawn once (Frontier::kOnce), v < lists.
  std::span<const std::uint32_t> NeighborsOf(std::size_t v) const {
    return std::span(neighbors).subspan(offsets[v], offsets[v + 1] - offsets[v]);
  }
};

}  // namespace rhizome
