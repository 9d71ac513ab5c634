#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/result.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Time stamps of edges, in any unit, for one snapshot of a graph.
/// Threads: const functions may be called from many threads.
class EdgeTimes {
 public:
  virtual ~EdgeTimes() = default;

  /// Returns the times of partition p's edges, by edge id (EdgeId::position).
  virtual std::span<const std::int64_t> OfPartition(std::uint32_t p) const = 0;

  /// Returns the times of the delta's edges, by their position in its lists of a direction, kIn or
  /// kOut (DeltaView); empty if there are none.
  virtual std::span<const std::int64_t> OfDelta(Direction) const { return {}; }

  /// Returns the times of the entries of partition p's lists of a direction, by position, if times
  /// are stored in this form. Empty: times are stored by edge id (OfPartition).
  virtual std::span<const std::int64_t> OfEntries(std::uint32_t, Direction) const { return {}; }
};

/// Time stamps in memory: one vector for each partition.
class EdgeTimesInMemory final : public EdgeTimes {
 public:
  /// `delta_out` and `delta_in` are the times of the delta's edges by direction; a symmetric graph
  /// has only `delta_out`.
  explicit EdgeTimesInMemory(std::vector<std::vector<std::int64_t>> times,
                             std::vector<std::int64_t> delta_out = {},
                             std::vector<std::int64_t> delta_in = {}, bool symmetric = false)
      : times_(std::move(times)),
        delta_out_(std::move(delta_out)),
        delta_in_(std::move(delta_in)),
        symmetric_(symmetric) {}
  std::span<const std::int64_t> OfDelta(Direction direction) const override {
    return direction == Direction::kOut || symmetric_ ? delta_out_ : delta_in_;
  }
  std::span<const std::int64_t> OfPartition(std::uint32_t p) const override {
    return p < times_.size() ? std::span<const std::int64_t>(times_[p])
                             : std::span<const std::int64_t>();
  }

 private:
  std::vector<std::vector<std::int64_t>> times_;
  std::vector<std::int64_t> delta_out_;
  std::vector<std::int64_t> delta_in_;
  bool symmetric_ = false;
};

/// Reads the times from an edge attribute of the store (int64; ingested as a column of the edge
/// files), including the times of the delta's edges. For a live graph, use one Snapshot for this
/// function and for the sampler.
/// Errors: kNotFound, no such attribute; kInvalidArgument, not int64; any error of reading.
Result<std::shared_ptr<const EdgeTimes>> LoadEdgeTimes(const GraphSnapshot& graph,
                                                       std::string_view attribute);

/// Returns times of the edges that a sampler of `direction` traverses, computed from an array of
/// the vertices' times, int64 or int32 with one column. An edge has the time of the neighbour that
/// it leads to, so that no neighbour later than the seed is drawn. Vertices without a row have the
/// time 0.
/// Memory: 8 bytes an edge and direction, and 8 a vertex during the call.
/// Errors: kNotFound, no such array; kInvalidArgument, another type, or a direction that the store
/// does not keep; any error of reading.
Result<std::shared_ptr<const EdgeTimes>> LoadVertexTimes(const GraphSnapshot& graph,
                                                         std::string_view array,
                                                         Direction direction);

}  // namespace rhizome
