#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gnn/models/conv.h"
#include "gnn/models/model_shape.h"
#include "gnn/models/weights.h"
#include "gnn/ops/dense.h"
#include "rhizome/types.h"

namespace rhizome {
struct Minibatch;
}  // namespace rhizome

namespace rhizome {
inline namespace internal {

/// Rows of the vertices of one type that are learned, for a minibatch.
struct LearnedTable {
  TypeId type = 0;                           ///< of the graph
  torch::Tensor rows = {};                   ///< [vertices, columns]
  std::vector<std::uint32_t> vertices = {};  ///< local numbers

  /// Receives the gradient of the loss by the rows, [vertices, columns], in the backward pass.
  torch::Tensor gradient = {};
};

/// The features of some vertices, by vertex type, and the rows of a matrix that they belong to.
struct RowsByType {
  struct OfType {
    torch::Tensor table = {};  ///< [any, columns]; undefined: the type has no features

    /// Position in `table` and row of the result of each vertex; `place` is empty without `table`.
    std::vector<std::uint32_t> place = {};
    std::vector<std::uint32_t> target = {};

    /// If set, receives the gradient of the loss by the rows of `table`, which `place` then lists
    /// in order.
    torch::Tensor* gradient = nullptr;
  };
  std::vector<OfType> types;  ///< [vertex types of the model]
  std::int64_t rows = 0;      ///< rows of the result; each belongs to one vertex
};

/// The input layer of a network with inputs by type:  activation(W x + b)  with the weights of the
/// vertex's type, or activation(b) for a type without features. The bits of a row depend only on
/// that row. Nothing larger than the result is allocated.
/// Threads: const functions may run concurrently, except Forward and Compute, which use the compute
/// threads.
class InputLayer {
 public:
  /// `shape` has inputs by type; `options` are its options.
  InputLayer(const ModelShape& shape, const ModelOptions& options);

  /// Calls visit for every weight: "inputs.<type>.weight" [hidden, columns] and
  /// "inputs.<type>.bias".
  void VisitWeights(const WeightVisitor& visit) const;

  /// Sets the vertex types of the graph whose vertices follow, in its order. By default
  /// the shape's types are used. Errors: kUnsupported, the model does not have one of them; the
  /// message names it.
  Status SetTypes(const std::vector<std::string>& vertex_types);

  /// Returns the number in the model of a vertex type of the graph.
  std::size_t NumberOf(TypeId type) const { return numbers_[type]; }
  std::size_t types() const { return inputs_.size(); }
  std::int64_t columns(std::size_t type) const { return inputs_[type].dim; }
  std::int64_t width() const { return width_; }

  /// Returns whether results are rectified, so that many numbers are zero.
  bool makes_zeros() const { return rectified_; }

  /// Returns the rows of a minibatch, which must outlive the result and has Minibatch::vertex_types
  /// if the graph has several types. `learned`: the rows of types whose rows are learned, which
  /// must also outlive the backward pass; null: no type has such rows.
  RowsByType RowsOf(const Minibatch& minibatch, std::vector<LearnedTable>* learned = nullptr) const;

  /// Computes rows with gradients of the weights, in training with dropout of the features: ->
  /// [rows, width]. The tables of `rows` must outlive the backward pass.
  torch::Tensor Forward(RowsByType rows, double dropout, const RunMode& mode) const;

  /// Packs the weights for Compute. Must not overlap other calls.
  void Freeze() const;

  /// Computes rows without gradients, with the same bits: -> out [rows, width]. Freeze must have
  /// been called.
  void Compute(RowsByType rows, float* out) const;

 private:
  struct Weights {
    std::vector<DenseWeights> of_types;
    std::vector<PackedWeight> packed;  // from Freeze
  };

  std::vector<std::string> names_;
  std::vector<TypedInput> inputs_;
  std::int64_t width_;
  bool rectified_;                      // otherwise tanh
  std::vector<std::uint32_t> numbers_;  // [vertex types of the graph]
  std::shared_ptr<Weights> weights_ = std::make_shared<Weights>();
};

}  // namespace internal
}  // namespace rhizome
