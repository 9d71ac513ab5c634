#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/dtype.h"
#include "rhizome/export.h"
#include "rhizome/feature_cache.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_report.h"
#include "rhizome/result.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Feature rows of a minibatch, float32 or float16. Row i belongs to the vertex with local number
/// i. Rows are not copied: they are in the memory of a cache, at any positions of its table, and do
/// not move or change while this object exists. (Or the object has its own memory, see Own.)
/// Threads: const functions from any number of threads.
/// Ownership: holds rows of the cache, which must outlive this object. Holding them for long
/// reduces the space for later minibatches.
class FeatureRows {
 public:
  FeatureRows() = default;

  /// Uses rows of a cache. `type` and `dim` must describe how the cache stores its rows.
  FeatureRows(HeldRows held, DataType type, std::size_t dim)
      : type_(type), dim_(dim), rows_(held.slots().size()), held_(std::move(held)) {}

  /// As above, for vertices that share rows: vertex i has row row_of[i] of `held`.
  FeatureRows(HeldRows held, DataType type, std::size_t dim, std::vector<std::uint32_t> row_of);

  /// Allocates own memory for the rows, with unspecified contents. Errors: kOutOfMemory.
  static Result<FeatureRows> Own(DataType type, std::size_t rows, std::size_t dim);

  DataType type() const { return type_; }  ///< kFloat32 or kFloat16
  std::size_t rows() const { return rows_; }
  std::size_t dim() const { return dim_; }  ///< columns
  std::size_t row_bytes() const { return dim_ * DataTypeBytes(type_); }

  /// Returns row i in its stored form, row_bytes() bytes.
  std::span<const std::byte> row(std::size_t i) const {
    const std::size_t at = place().empty() ? i : place()[i];
    return table().subspan(at * row_bytes(), row_bytes());
  }

  /// Returns row i of float32 rows, dim() numbers. Aborts the process if the rows have another
  /// type.
  std::span<const float> floats(std::size_t i) const;

  /// Copies all rows to `out`, of shape [rows(), dim()], row-major; float16 is converted to
  /// float32, exactly. Errors: kInvalidArgument, `out` has a different size.
  Status CopyTo(std::span<float> out) const;

  /// Direct access for code that reads rows by index: row i is row place()[i] of the table, or row
  /// i if place() is empty. No other row of the table may be read.
  std::span<const std::byte> table() const {
    return own_.empty() ? held_.table() : std::span<const std::byte>(own_);
  }
  std::span<const std::uint32_t> place() const {
    return place_.empty() ? held_.slots() : std::span<const std::uint32_t>(place_);
  }

  /// Returns all rows of an object created by Own, as float32.
  std::span<float> own_floats() const;

 private:
  DataType type_ = DataType::kFloat32;
  std::size_t dim_ = 0;
  std::size_t rows_ = 0;
  HeldRows held_;
  std::vector<std::uint32_t> place_;  // empty: the slots of held_
  std::span<std::byte> own_;          // rows of an object created by Own
  std::shared_ptr<void> own_memory_;
};

/// A sampled subgraph with the features of its vertices: the input of one training step. Vertices
/// have local numbers in order of discovery: the seeds first, in the given order, then hop by hop.
/// Numbers and lists correspond to SampledSubgraph (rhizome/sampler_options.h), in fewer bytes.
///
/// Shapes: n = rows.size() vertices, m = neighbors.size() edges.
/// Threads: a value type; it may be moved to another thread.
/// Ownership: `features` hold the loader's memory; everything else is owned.
struct Minibatch {
  std::uint64_t epoch = 0;   ///< set by a Loader: epoch, from 0
  std::uint64_t number = 0;  ///< set by a Loader: index within the epoch, from 0

  /// Set by a Loader: Sampler::Sample draws this subgraph for these seeds if `batch` is this tag.
  std::uint64_t tag = 0;
  std::uint64_t seed_count = 0;

  std::vector<Row> rows;                     ///< [n], positions of the vertices in arrays;
                                             ///< distinct, or distinct within one seed's subgraph
                                             ///< if disjoint
  std::vector<VertexId> vertices;            ///< [n], set by a Loader
  std::vector<std::uint64_t> hop_offsets;    ///< [hops + 2]; hop 0 holds the seeds
  std::vector<std::uint32_t> offsets = {0};  ///< [lists + 1]; list v holds the edges drawn for
                                             ///< vertex v (Frontier::kAgain: see hop_lists)
  std::vector<std::uint32_t> neighbors;      ///< [m], local numbers
  std::vector<TypeId> types;                 ///< [m]; empty: one edge type, or not requested
  std::vector<float> weights;                ///< [m]; empty: as `types`
  std::vector<EdgeId> edges;                 ///< [m]; empty unless SamplerOptions::edge_ids
  std::vector<std::uint64_t> hop_lists;      ///< [hops + 1] with Frontier::kAgain, else empty: hop
                                             ///< h drew lists [hop_lists[h], hop_lists[h + 1])
  std::vector<std::uint32_t> seed_of;        ///< [n] if disjoint: index of the seed
  std::vector<std::uint32_t> degrees;        ///< [n], degrees in the whole graph, if requested
  std::vector<float> weighted_degrees;       ///< [n], weight sums of all edges in the whole graph
                                             ///< that are walked, if requested
  std::vector<std::int64_t> seed_times;      ///< [seed_count], set by a Loader of temporal samples
  std::vector<std::int32_t> labels;          ///< [seed_count], if requested
  FeatureRows features;                      ///< [n, feature columns]
  MinibatchCosts costs;

  /// Returns the list of the vertex with local number v < lists. Only for Frontier::kOnce, where
  /// each vertex is expanded once.
  std::span<const std::uint32_t> NeighborsOf(std::size_t v) const {
    return std::span(neighbors).subspan(offsets[v], offsets[v + 1] - offsets[v]);
  }
};

}  // namespace rhizome
