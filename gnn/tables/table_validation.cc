#include "gnn/tables/table_validation.h"

#include <algorithm>
#include <cstring>

#include "gnn/tables/sampled_ranks.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kBlockEdges = 1024;

std::size_t CandidatesOf(const TableJob& job) {
  std::size_t count = 0;
  for (const ValidCandidates& of_type : job.valid.candidates) count += of_type.vertices.size();
  return count;
}

}  // namespace

TableValidation::TableValidation(const TableJob& job) : job_(job) {
  const TableOrder& order = job.batches->table_order();
  const auto row_of = [&](VertexId vertex) { return order.RowOf(vertex); };
  for (const ValidCandidates& of_type : job.valid.candidates)
    std::ranges::transform(of_type.vertices, std::back_inserter(candidate_rows_), row_of);
  std::ranges::sort(candidate_rows_);
  for (const ValidCandidates& of_type : job.valid.candidates) {
    std::vector<std::uint32_t>& places = candidates_.emplace_back();
    for (const VertexId vertex : of_type.vertices) {
      const auto at = std::ranges::lower_bound(candidate_rows_, row_of(vertex));
      places.push_back(static_cast<std::uint32_t>(at - candidate_rows_.begin()));
    }
  }
}

std::uint64_t TableValidation::Bytes(const TableJob& job, std::size_t row_bytes,
                                     std::uint32_t threads) {
  if (job.valid.edges.empty()) return 0;
  const std::size_t candidates = CandidatesOf(job);
  const std::size_t block = 2 * std::min(kBlockEdges, job.valid.edges.size());
  const std::size_t read = std::max(candidates, block);  // rows that are read at once
  return (candidates + block) * job.dim() * sizeof(float) + candidates * 16 +
         read * (row_bytes + sizeof(RowTarget)) + block * sizeof(MinibatchPair) +
         SampledRanks::Bytes(candidates, job.dim(), threads);
}

// Measures: (1) reads the candidates; (2) reads the rows of one block after another, and ranks it.
Result<double> TableValidation::Measure(RowTable& table, std::span<const float> relations,
                                        TaskArena& arena, const JobControl& control) {
  const std::span<const VertexPair> edges = job_.valid.edges;
  const std::size_t candidates = candidate_rows_.size();
  values_.resize((candidates + 2 * std::min(kBlockEdges, edges.size())) * job_.dim());
  RHIZOME_RETURN_IF_ERROR(ReadValues(table, candidate_rows_, 0));
  double sum = 0;
  for (std::size_t first = 0; first < edges.size(); first += kBlockEdges) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "valid", .done = first, .total = edges.size()}));
    const auto block = edges.subspan(first, std::min(kBlockEdges, edges.size() - first));
    const std::vector<Row> rows = RowsOf(block);
    RHIZOME_RETURN_IF_ERROR(ReadValues(table, rows, candidates));
    arena.execute([&] { sum += RankBlock(block, rows, relations); });
  }
  return sum / (2 * static_cast<double>(edges.size()));
}

/// Returns the rows of the ends of edges, without candidates; ascending.
std::vector<Row> TableValidation::RowsOf(std::span<const VertexPair> edges) const {
  std::vector<Row> rows;
  for (const VertexPair& edge : edges) {
    for (const VertexId end : {edge.src, edge.dst}) {
      const Row row = job_.batches->table_order().RowOf(end);
      if (!std::ranges::binary_search(candidate_rows_, row)) rows.push_back(row);
    }
  }
  std::ranges::sort(rows);
  const auto repeated = std::ranges::unique(rows);
  rows.erase(repeated.begin(), repeated.end());
  return rows;
}

/// Reads rows of the table to values_, from `place`.
Status TableValidation::ReadValues(RowTable& table, std::span<const Row> rows, std::size_t place) {
  const std::size_t row_bytes = table.row_bytes();
  const std::size_t value_bytes = job_.dim() * sizeof(float);
  stored_.resize(rows.size() * row_bytes);
  std::vector<RowTarget> targets(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    targets[i] = {.row = rows[i], .out = stored_.data() + i * row_bytes};
  RHIZOME_RETURN_IF_ERROR(table.Read(targets));
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::memcpy(values_.data() + (place + i) * job_.dim(), stored_.data() + i * row_bytes,
                value_bytes);
  return Status::Ok();
}

/// Returns the place of a candidate, or of a row of a block, in values_.
std::uint32_t TableValidation::PlaceOf(VertexId vertex, std::span<const Row> rows) const {
  const Row row = job_.batches->table_order().RowOf(vertex);
  const auto candidate = std::ranges::lower_bound(candidate_rows_, row);
  if (candidate != candidate_rows_.end() && *candidate == row)
    return static_cast<std::uint32_t>(candidate - candidate_rows_.begin());
  const auto at = std::ranges::lower_bound(rows, row);
  return static_cast<std::uint32_t>(candidate_rows_.size() +
                                    static_cast<std::size_t>(at - rows.begin()));
}

/// Returns the sum of 1 / rank of both ends of a block of edges.
double TableValidation::RankBlock(std::span<const VertexPair> edges, std::span<const Row> rows,
                                  std::span<const float> relations) const {
  const SampledRanks ranks{.decoder = *job_.decoder,
                           .step = job_.step,
                           .dim = job_.dim(),
                           .rows = values_.data(),
                           .relations = relations.data()};
  double sum = 0;
  for (const EdgeEnd open : {EdgeEnd::kDst, EdgeEnd::kSrc}) {
    for (std::size_t set = 0; set < candidates_.size(); ++set) {
      std::vector<MinibatchPair> pairs;
      for (const VertexPair& edge : edges) {
        const VertexId truth = open == EdgeEnd::kDst ? edge.dst : edge.src;
        if (*job_.graph->TypeOf(truth) == job_.valid.candidates[set].type)
          pairs.push_back(
              {.src = PlaceOf(edge.src, rows), .dst = PlaceOf(edge.dst, rows), .type = edge.type});
      }
      sum += ranks.ReciprocalSum(pairs, open, candidates_[set]);
    }
  }
  return sum;
}

}  // namespace internal
}  // namespace rhizome
