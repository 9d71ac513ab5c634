#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "index/ids/id_collector.h"
#include "index/ids/id_dictionary.h"

namespace rhizome {
inline namespace internal {

/// The external ids of one ingestion, from the first line to vertex ids.
///
/// While every id is a canonical decimal, ids are stored as numbers. The first id that is not a
/// canonical decimal converts all earlier ones to strings, numbered in the order in which they
/// occurred (IdType::kAuto). Resolve then decides: numbers that are exactly 0..n-1 are the vertex
/// ids themselves; others are numbered in order of first occurrence, nodes first, then edges, src
/// before dst.
///
/// Memory: 8 bytes for each end of an edge, and the dictionary.
/// Threads: one at a time.
class IdTable final : public IdCollector {
 public:
  explicit IdTable(IdType type) : IdCollector(type) {}

  bool AddNode(std::string_view text) override;
  void AddEdge(std::string_view src, std::string_view dst) override;
  void AddEdge(std::int64_t src, std::int64_t dst) override;
  void ReserveEdges(std::uint64_t edges) override;

  bool integers() const { return !texts(); }
  std::uint64_t node_count() const override { return nodes_; }
  std::uint64_t edge_count() const { return src_.size(); }
  std::uint64_t memory_bytes() const override;

  /// The vertices that the ids resolve to.
  struct Vertices {
    ExternalIdKind kind = ExternalIdKind::kDense;
    std::uint64_t count = 0;
    std::vector<std::int64_t> integer_ids;  ///< by vertex id, for kInteger
    std::vector<std::string> string_ids;    ///< by vertex id, for kString
    std::vector<VertexId> nodes;            ///< by accepted line of the nodes file
    std::vector<VertexId> src;              ///< by edge
    std::vector<VertexId> dst;
  };

  /// Assigns vertex ids. The ids 0..implied-1 exist as well (--vertices, rows of arrays);
  /// `why_implied` names their origin for messages. Consumes the table.
  /// Errors: kInvalidArgument, ids are implied, but the named ids are not 0..n-1.
  Result<Vertices> Resolve(std::uint64_t implied, std::string_view why_implied) &&;

 private:
  void SwitchToStrings();
  /// Returns one more than the largest id or implied id; kNotDense if the ids cannot be dense.
  std::uint64_t DenseBound(std::uint64_t implied) const;
  /// Returns the number of ids below `bound` that neither occur nor are implied.
  std::uint64_t CountMissing(std::uint64_t bound, std::uint64_t implied) const;
  void TakeStrings(Vertices& vertices);
  void NumberIntegers(Vertices& vertices);
  /// The same with a table by id. All ids are below `bound`, and `used` of these numbers are ids.
  void NumberByTable(std::uint64_t bound, std::uint64_t used, Vertices& vertices);

  std::uint64_t nodes_ = 0;
  IdDictionary<IntegerKeys> integers_;  // the ids of the nodes file, while ids are integers
  IdDictionary<StringKeys> strings_;
  std::vector<std::int64_t> src_;  // the ids while they are integers, else indices of
  std::vector<std::int64_t> dst_;  // strings_
};

}  // namespace internal
}  // namespace rhizome
