#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

/// A vertex, and the cosine of its row and the one that was asked for.
struct ScoredVertex {
  VertexId vertex = 0;
  double score = 0;
  friend bool operator==(const ScoredVertex&, const ScoredVertex&) = default;
};

/// Returns the k vertices whose rows of `array` have the largest cosine with `query`, shape
/// [columns], the largest first and ties by vertex id; without rows that are all zeros or not
/// finite. It compares all rows, a chunk in memory at a time; sums are in double. `non_finite`, if
/// not null, is set to the number of rows that were left out for NaN or an infinite value.
/// Errors: kNotFound, no such array; kInvalidArgument, not an array of vertices, a query of another
/// width or without a direction (all zeros, or not finite), a value that float32 cannot hold;
/// kInterrupted; those of reading.
Result<std::vector<ScoredVertex>> NearestRows(const Graph& graph, std::string_view array,
                                              std::span<const float> query, std::uint64_t k,
                                              const JobControl& control,
                                              std::uint64_t* non_finite = nullptr);

/// Does the same with the row of a vertex, without the vertex itself. Errors: also an id out of
/// range.
Result<std::vector<ScoredVertex>> NearestVertices(const Graph& graph, std::string_view array,
                                                  VertexId vertex, std::uint64_t k,
                                                  const JobControl& control,
                                                  std::uint64_t* non_finite = nullptr);

}  // namespace rhizome
