#pragma once

#include <span>

#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// Receives the scores of vertices while a model computes them.
class VertexScoreSink {
 public:
  virtual ~VertexScoreSink() = default;

  /// Receives the scores [rows.size(), outputs], row-major, of the vertices with these rows. Called
  /// once per row. Calls for different rows may come from several threads at once.
  virtual void Take(std::span<const Row> rows, std::span<const float> scores) = 0;
};

}  // namespace rhizome::inline internal
