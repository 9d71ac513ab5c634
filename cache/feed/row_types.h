#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/loader.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

class Delta;
class VertexOrder;

/// The vertex types of rows: of the generation's rows from its order, of new vertices from the
/// delta.
/// Threads: const functions from any number of threads.
/// Ownership: `graph` must outlive it.
class RowTypes {
 public:
  explicit RowTypes(const GraphSnapshot& graph);

  std::size_t types() const { return types_; }  ///< number of vertex types

  /// Returns the type of a row in [0, GraphSnapshot::vertex_count()).
  TypeId Of(Row row) const;

  /// Returns the number of rows of each type, including deleted vertices. Visits each segment of
  /// the order, or each row if the order is not grouped.
  std::vector<std::uint64_t> Counts() const;

  /// Sets Minibatch::vertex_types, or leaves it empty if the graph has one type.
  void Fill(Minibatch& minibatch) const;

 private:
  const VertexOrder* order_;
  std::shared_ptr<const Delta> delta_;
  std::size_t types_;
  std::uint64_t rows_;
};

}  // namespace internal
}  // namespace rhizome
