#pragma once

#include <span>

#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// Takes the scores of vertices while a network computes them.
class VertexScoreSink {
 public:
  virtual ~VertexScoreSink() = default;

  /// Takes the scores [rows.size(), outputs], row-major, of the vertices with these rows. Called
  /// for a row once; from several threads at once, for different rows.
  virtual void Take(std::span<const Row> rows, std::span<const float> scores) = 0;
};

}  // namespace rhizome::inline internal
