#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cache/job/safetensors.h"
#include "gnn/links/combination.h"
#include "rhizome/link_scores.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The rows of a pair, and the row of its relation, or null if the decoder has none.
struct PairRows {
  const float* src = nullptr;  ///< [dim]
  const float* dst = nullptr;
  const float* relation = nullptr;
};

/// An edge with one end left open: the row of the other end, and the row of the relation.
struct QueryRows {
  const float* given = nullptr;     ///< [dim]
  const float* relation = nullptr;  ///< null if the decoder has none
  EdgeEnd open = EdgeEnd::kDst;     ///< the end that candidates take
};

/// Queries that are scored together.
/// Threads: const.
class QueryGroup {
 public:
  virtual ~QueryGroup() = default;

  /// Scores `count` rows as the open end of each query: out[row * stride + query]. The bits of a
  /// score depend only on its query and its row.
  virtual void Score(const ProductRows& rows, std::size_t count, float* out,
                     std::size_t stride) const = 0;
};

/// Computes scores from rows. A decoder is a file decoder_<name>.cc and a line in
/// decoder_registry.cc.
/// Threads: const functions from any number of threads.
class PairDecoder {
 public:
  virtual ~PairDecoder() = default;

  virtual void Score(std::span<const PairRows> pairs, std::span<float> scores) const = 0;

  /// Copies what it needs of `queries`.
  virtual std::unique_ptr<QueryGroup> Group(std::span<const QueryRows> queries) const = 0;
};

/// A decoder that turns the given end and the relation into a query, a row of the same width as the
/// candidates, and combines the query with each candidate. This is what makes shared negatives,
/// ranks and top-k a product of queries and rows.
class QueryDecoder : public PairDecoder {
 public:
  QueryDecoder(Combination combination, std::size_t dim) : combination_(combination), dim_(dim) {}

  Combination combination() const { return combination_; }
  std::size_t dim() const { return dim_; }

  /// Writes the query, [dim].
  virtual void Query(const QueryRows& rows, float* query) const = 0;

  /// Adds the gradient of a loss to the gradients of the given row, [dim], and of the relation's
  /// row; `query_gradient`, [dim], is the gradient of the loss by the query. A null pointer is not
  /// written. AddCombineGradient returns `query_gradient` and the gradient of the candidate.
  virtual void AddQueryGradient(const QueryRows& rows, const float* query_gradient,
                                float* given_gradient, float* relation_gradient) const = 0;

  void Score(std::span<const PairRows> pairs, std::span<float> scores) const override;
  std::unique_ptr<QueryGroup> Group(std::span<const QueryRows> queries) const override;

 private:
  const Combination combination_;
  const std::size_t dim_;
};

/// The input from which a decoder is created.
struct DecoderInput {
  std::size_t dim = 0;  ///< columns of a row
  const TensorFile& file;
};

/// A kind of decoder.
struct DecoderKind {
  std::string name;
  std::string title;
  std::string source;

  /// Returns the width of a relation's row, in the tensor `relations`; null: no relations.
  std::size_t (*relation_width)(std::size_t dim) = nullptr;

  bool complex_rows = false;  ///< rows hold complex numbers, so that `dim` must be even

  /// Errors: kInvalidArgument, naming the tensor or the field of the metadata.
  std::function<Result<std::unique_ptr<PairDecoder>>(const DecoderInput&)> make;
};

}  // namespace internal
}  // namespace rhizome
