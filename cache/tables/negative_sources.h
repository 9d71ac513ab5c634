#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/tables/graph_edges.h"
#include "index/base/counter_random.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The vertices that negatives are drawn from.
enum class NegativeSource : std::uint8_t {
  kResident,  ///< the vertices of the batch's partition
  kUniform,   ///< all vertices
  kDegree,    ///< all vertices, in proportion to degree^alpha
  kInBatch,   ///< the ends of the batch's edges
};

/// One part of a mixture of negatives.
struct NegativeShare {
  NegativeSource source = NegativeSource::kUniform;
  double share = 1;   ///< of the negatives; the shares of a mixture add up to 1
  double alpha = .5;  ///< kDegree: exponent in [0, 1]
};

using NegativeMixture = std::vector<NegativeShare>;

/// Parses a mixture such as "resident:.5,uniform:.5", "degree^.75" or "in-batch". A source without
/// a number has an equal part of what the others leave. Errors: kInvalidArgument, an unknown
/// source, one that occurs twice, or shares that do not add up to 1.
Result<NegativeMixture> ParseNegativeMixture(std::string_view text);

/// Draws vertices of one type from the sources of a graph. Deleted vertices are never drawn.
/// Memory: 8 bytes for each partition and type, and 24 for each run of rows of one type.
/// Threads: one at a time.
class NegativeVertices {
 public:
  /// Errors: as GraphEdges::Of.
  static Result<NegativeVertices> Of(std::shared_ptr<const GraphSnapshot> graph);

  /// Returns the number of vertices of a type that are not deleted; 0 for a type that the graph
  /// does not have.
  std::uint64_t count(TypeId type) const { return type < live_.size() ? live_[type] : 0; }

  /// Appends `count` vertices of `type`, drawn independently from a source other than kInBatch.
  /// `group` is the partition for kResident; if it has no vertex of the type, or is the delta, and
  /// for a graph of one partition, kResident is kUniform. Errors: kInvalidArgument, the graph has
  /// no vertex of the type; for kDegree, it has no edge of such a vertex, or keeps one direction
  /// only; errors of lists that are on disk.
  Status Draw(const NegativeShare& share, std::uint32_t group, TypeId type, std::uint64_t count,
              CounterRandom& random, std::vector<VertexId>& out);

 private:
  struct Run {
    Row first_row = 0;
    std::uint64_t end = 0;  // vertices of the type up to the end of this run
    std::uint64_t begin = 0;
  };
  explicit NegativeVertices(GraphEdges edges) : edges_(std::move(edges)) {}
  Status Count();
  VertexId DrawUniform(TypeId type, CounterRandom& random) const;
  VertexId DrawResident(std::uint32_t group, TypeId type, CounterRandom& random) const;
  Status DrawByDegree(double alpha, TypeId type, std::uint64_t count, CounterRandom& random,
                      std::vector<VertexId>& out);
  Result<bool> IsAccepted(VertexId vertex, double alpha, TypeId type, CounterRandom& random) const;
  bool IsDrawable(VertexId vertex, TypeId type) const;
  const GraphSnapshot& graph() const { return edges_.graph(); }

  GraphEdges edges_;
  std::vector<std::uint64_t> live_;            // by type
  std::vector<std::vector<Run>> runs_;         // by type; empty: the order is not grouped
  std::vector<std::uint64_t> resident_;        // [partition, type]
  std::vector<std::uint64_t> first_position_;  // of the edges of each group, [groups + 1]
};

}  // namespace internal
}  // namespace rhizome
