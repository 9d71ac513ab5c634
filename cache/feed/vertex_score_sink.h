#pragma once

#include <span>

#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Receives the scores of vertices while a model computes them.
class VertexScoreSink {
 public:
  virtual ~VertexScoreSink() = default;

  /// Receives the scores [rows.size(), outputs], row-major, of the vertices with these rows. Called
  /// once per row. Calls for different rows may come from several threads at once.
  virtual void Take(std::span<const Row> rows, std::span<const float> scores) = 0;
};

}  // namespace internal
}  // namespace rhizome
