#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The set to which an edge of the input belongs.
enum class EdgeSplit : std::uint8_t {
  kTrain,  ///< the store
  kValid,
  kTest,
};

/// An edge of the input. Ids are those that the store will have.
struct ExternalEdge {
  std::string_view src;
  std::string_view dst;
  std::string_view type;
  std::int64_t time = 0;  ///< 0 if the input has no column `time`
};

/// Decides for the edges of an input, in order, which ones are not part of the graph (HoldOut), and
/// receives those.
/// Threads: one at a time.
class EdgeSplitter {
 public:
  virtual ~EdgeSplitter() = default;

  /// Begins the next line or element of the edge files, whether or not it is accepted as an edge.
  virtual void Begin() = 0;

  /// Returns the set of the edge that was begun. Called only for accepted edges.
  virtual Result<EdgeSplit> SplitOf(const ExternalEdge& edge) = 0;

  /// Adds the edge, which is not part of the graph. `values` are its columns that follow src, dst
  /// and type, as text.
  virtual Status HoldOut(EdgeSplit split, const ExternalEdge& edge,
                         std::span<const std::string> values) = 0;

  /// Notes that the edge is part of the graph.
  virtual void Keep() = 0;

  virtual std::uint64_t memory_bytes() const = 0;
};

}  // namespace internal
}  // namespace rhizome
