#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/result.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// A vertex, and the cosine between its row and the query.
struct ScoredVertex {
  VertexId vertex = 0;
  double score = 0;
  friend bool operator==(const ScoredVertex&, const ScoredVertex&) = default;
};

/// Returns the k vertices whose rows of `array` have the largest cosine with `query`, shape
/// [columns], the largest first and ties by vertex id. Rows that are all zeros or not finite are
/// omitted. It compares all rows, a chunk in memory at a time; sums are in double. `non_finite`, if
/// not null, is set to the number of rows omitted because of NaN or an infinite value.
/// Errors: kNotFound, no such array; kInvalidArgument, not a vertex array, a query of another width
/// or without a direction (all zeros, or not finite), a value that float32 cannot hold;
/// kInterrupted; any error of reading.
Result<std::vector<ScoredVertex>> NearestRows(const Graph& graph, std::string_view array,
                                              std::span<const float> query, std::uint64_t k,
                                              const JobControl& control,
                                              std::uint64_t* non_finite = nullptr);

/// As NearestRows, with the row of a vertex as the query; the vertex itself is omitted.
/// Errors: as NearestRows; kInvalidArgument, an id out of range.
Result<std::vector<ScoredVertex>> NearestVertices(const Graph& graph, std::string_view array,
                                                  VertexId vertex, std::uint64_t k,
                                                  const JobControl& control,
                                                  std::uint64_t* non_finite = nullptr);

}  // namespace rhizome
