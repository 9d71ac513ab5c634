#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "index/input/convert.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "storage/array/array_versions.h"
#include "storage/base/exceptions.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kRowsAtOnce = 4096;

/// Orders the best first and breaks ties by vertex id, so that the result does not depend on the
/// order of rows.
bool IsBetter(const ScoredVertex& a, const ScoredVertex& b) {
  return a.score != b.score ? a.score > b.score : a.vertex < b.vertex;
}

/// Keeps the k best candidates in a heap whose front is the worst of them.
class TopK {
 public:
  explicit TopK(std::uint64_t k) : k_(k) {}
  void Offer(const ScoredVertex& candidate) {
    if (k_ == 0 || (best_.size() == k_ && !IsBetter(candidate, best_.front()))) return;
    best_.push_back(candidate);
    std::push_heap(best_.begin(), best_.end(), IsBetter);
    if (best_.size() <= k_) return;
    std::pop_heap(best_.begin(), best_.end(), IsBetter);
    best_.pop_back();
  }
  std::vector<ScoredVertex> Sorted() && {
    std::sort_heap(best_.begin(), best_.end(), IsBetter);
    return std::move(best_);
  }

 private:
  std::uint64_t k_;
  std::vector<ScoredVertex> best_;
};

double NormOf(std::span<const float> row) {
  double squares = 0;
  for (const float x : row) squares += double{x} * double{x};
  return std::sqrt(squares);
}

double Dot(std::span<const float> a, std::span<const float> b) {
  double dot = 0;
  for (std::size_t i = 0; i < a.size(); ++i) dot += double{a[i]} * double{b[i]};
  return dot;
}

Status ToFloat32(const ArrayEntry& entry, std::span<const std::byte> rows,
                 std::vector<float>& out) {
  out.resize(rows.size() / DataTypeBytes(entry.dtype));
  if (!ConvertElements(entry.dtype, rows, DataType::kFloat32,
                       std::as_writable_bytes(std::span(out))))
    return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}' has a value that exceeds float32", ShownName(entry.name)));
}

Result<std::vector<ScoredVertex>> Nearest(ArrayScan& scan, std::span<const float> query,
                                          std::optional<VertexId> except, std::uint64_t k,
                                          const JobControl& control, std::uint64_t* non_finite) {
  const double norm = NormOf(query);
  std::uint64_t left_out = 0;
  TopK best(k);
  ArrayScan::Block block;
  std::vector<float> rows;
  const std::size_t dim = query.size();
  while (true) {
    RHIZOME_RETURN_IF_ERROR(control.Report(
        {.phase = "comparing", .done = scan.rows_done(), .total = scan.graph().vertex_count()}));
    RHIZOME_ASSIGN_OR_RETURN(const bool more, scan.Next(kRowsAtOnce, block));
    if (!more) break;
    RHIZOME_RETURN_IF_ERROR(ToFloat32(scan.entry(), block.rows, rows));
    for (std::size_t i = 0; i < block.vertices.size(); ++i) {
      const auto row = std::span<const float>(rows).subspan(i * dim, dim);
      const double norm_of_row = NormOf(row);
      left_out += std::isfinite(norm_of_row) ? 0 : 1;
      const double score = Dot(query, row) / (norm * norm_of_row);
      if (block.vertices[i] != except && !std::isnan(score)) best.Offer({block.vertices[i], score});
    }
  }
  if (non_finite != nullptr) *non_finite = left_out;
  return std::move(best).Sorted();
}

bool HasDirection(std::span<const float> query) {
  const double norm = NormOf(query);
  return norm > 0 && std::isfinite(norm);
}

}  // namespace

Result<std::vector<ScoredVertex>> NearestRows(const Graph& graph, std::string_view array,
                                              std::span<const float> query, std::uint64_t k,
                                              const JobControl& control,
                                              std::uint64_t* non_finite) try {
  RHIZOME_ASSIGN_OR_RETURN(auto scan, ArrayScan::Open(graph, array));
  if (query.size() != scan.entry().dim)
    return Fail(Status::InvalidArgument(fmt::format("the query has {} columns, but '{}' has {}",
                                                    query.size(), ShownName(scan.entry().name),
                                                    scan.entry().dim)));
  if (!HasDirection(query))
    return Fail(Status::InvalidArgument(
        "the query is all zeros or not finite: it has no direction to compare"));
  return Nearest(scan, query, std::nullopt, k, control, non_finite);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<ScoredVertex>> NearestVertices(const Graph& graph, std::string_view array,
                                                  VertexId vertex, std::uint64_t k,
                                                  const JobControl& control,
                                                  std::uint64_t* non_finite) try {
  RHIZOME_ASSIGN_OR_RETURN(auto scan, ArrayScan::Open(graph, array));
  std::vector<std::byte> row(scan.entry().row_bytes());
  RHIZOME_RETURN_IF_ERROR(scan.graph().ReadRows(scan.entry().name, std::span(&vertex, 1), row));
  std::vector<float> query;
  RHIZOME_RETURN_IF_ERROR(ToFloat32(scan.entry(), row, query));
  if (!HasDirection(query)) {
    RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, scan.graph().ExternalIdOf(vertex));
    return Fail(Status::InvalidArgument(fmt::format(
        "the row of {} in '{}' is all zeros or not finite: it has no direction to compare",
        ToString(id), ShownName(scan.entry().name))));
  }
  return Nearest(scan, query, vertex, k, control, non_finite);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
