#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "index/generation/edge_spool.h"
#include "index/generation/id_spool.h"
#include "index/generation/spill.h"
#include "index/ids/id_collector.h"
#include "index/ids/id_dictionary.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

class SpilledIdEncoder;

/// The external ids of an ingestion whose edges do not fit in memory: an IdTable that stores the
/// ends of edges in spill files.
///
/// Resolve numbers ids that are not dense by sorting. It sorts all keys with their positions
/// externally, and scatters the keys' ranks back to their positions through buckets that fit in
/// memory one at a time. In this order, a key that has no number yet gets the next one.
///
/// Memory: the dictionary of the nodes file (none while its ids are 0, 1, 2, ...) and blocks; in
/// Resolve, 4 bytes a vertex and a share of the budget.
/// Threads: one at a time.
class SpilledIds final : public IdCollector {
 public:
  SpilledIds(SpillSpace& space, IdType type, std::uint64_t memory_bytes);

  bool AddNode(std::string_view text) override;
  void AddEdge(std::string_view src, std::string_view dst) override;
  void AddEdge(std::int64_t src, std::int64_t dst) override;
  std::uint64_t node_count() const override { return nodes_; }
  std::uint64_t edge_count() const { return edges_; }
  std::uint64_t memory_bytes() const override;
  Status status() const override { return failed_; }

  /// The vertices that the ids resolve to.
  struct Vertices {
    ExternalIdKind kind = ExternalIdKind::kDense;
    std::uint64_t count = 0;
    SpilledDictionary dictionary;  ///< unless the ids are dense
    std::vector<VertexId> nodes;   ///< by accepted line of the nodes file
    EdgeSpool edges;               ///< ends of the edges, as vertex ids
  };

  /// See IdTable::Resolve.
  /// Errors: as IdTable::Resolve; kOutOfMemory, too many vertices for the memory.
  Result<Vertices> Resolve(std::uint64_t implied, std::string_view why_implied,
                           const JobControl& control) &&;

 private:
  void Note(Status status);
  void KeepDictionary();
  void SwitchToStrings();
  std::uint64_t DenseBound(std::uint64_t implied) const;
  Result<bool> Dense(std::uint64_t bound, std::uint64_t implied, const EdgeSpool& ends,
                     const JobControl& control) const;
  std::vector<VertexId> DenseNodes() const;
  /// Returns the id of the nodes file's i-th vertex, while ids are integers.
  std::int64_t NodeAt(std::uint64_t i) const {
    return counting_ ? static_cast<std::int64_t>(i) : integers_.keys().At(i);
  }
  Status AddNodes(SpilledIdEncoder& encoder) const;
  Status AddIntegerEnds(SpilledIdEncoder& encoder, const EdgeSpool& ends,
                        const JobControl& control) const;
  Status AddStringEnds(SpilledIdEncoder& encoder, const JobControl& control);
  Status ReportSorting(const SpilledIdEncoder& encoder, const JobControl& control) const;

  SpillSpace& space_;
  const std::uint64_t memory_bytes_;
  Status failed_;
  std::uint64_t nodes_ = 0;
  std::uint64_t edges_ = 0;
  bool counting_ = true;  // the nodes file's ids are 0..nodes_-1 so far, and integers_ is empty
  IdDictionary<IntegerKeys> integers_;  // the nodes file's ids, while ids are integers
  IdDictionary<StringKeys> strings_;    // the nodes file's ids, once they are strings
  std::int64_t least_ = 0;              // range of the edges' ids while they are integers
  std::int64_t most_ = -1;
  std::optional<EdgeSpoolWriter> integer_ends_;
  std::optional<SpillWriter> string_ends_;  // for each edge: two lengths, two texts
  std::vector<std::byte> record_;
};

}  // namespace internal
}  // namespace rhizome
