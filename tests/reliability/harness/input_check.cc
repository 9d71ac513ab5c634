#include "reliability/harness/input_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "index/input/npy.h"
#include "rhizome/graph.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "rhizome/ingest.h"
#include "testing/compressed.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

/// Returns the label of vertex 2, which only an edge mentions.
Result<std::int64_t> LabelOfTheUnlabelled(const TempDir& dir) {
  const std::int64_t labels[] = {1, 0};
  const std::uint64_t shape[] = {2};
  const auto header = EncodeNpyHeader(DataType::kInt64, shape);
  std::string npy(reinterpret_cast<const char*>(header.data()), header.size());
  npy.append(reinterpret_cast<const char*>(labels), sizeof(labels));
  WriteInput(dir / "labels.npy", npy);
  WriteInput(dir / "edges.tsv", "0\t1\n1\t2\n");
  WriteInput(dir / "nodes.tsv", "0\n1\n");
  IngestOptions options;
  options.edges = {{dir / "edges.tsv"}};
  options.nodes = dir / "nodes.tsv";
  options.arrays = {{.name = "label", .path = dir / "labels.npy"}};
  RHIZOME_RETURN_IF_ERROR(Ingest(FileSystem::Posix(), dir / "g.rz", options, JobControl()));
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), dir / "g.rz", Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  const VertexId vertex = 2;
  std::int64_t label = 0;
  RHIZOME_RETURN_IF_ERROR(graph->ReadRows("label", std::span(&vertex, 1),
                                          std::as_writable_bytes(std::span(&label, 1))));
  return label;
}

bool IsRefused(const TempDir& dir, std::string_view edges, const std::string& array) {
  WriteInput(dir / "amounts.tsv", edges);
  WriteInput(dir / "rows.tsv", "0\t0\t1\n");
  IngestOptions options;
  options.edges = {{dir / "amounts.tsv"}};
  options.columns = {"src", "dst", "amount"};
  options.arrays = {{.name = array, .path = dir / "rows.tsv", .dim = 1}};
  const auto report = Ingest(FileSystem::Posix(), dir / "refused.rz", options, JobControl());
  return !report && report.error().code() == StatusCode::kInvalidArgument;
}

/// Returns the attribute of two edges. float32 cannot hold one of the values.
Result<std::vector<double>> MixedAmounts(const TempDir& dir) {
  WriteInput(dir / "mixed.tsv", "0\t1\t16777217\n1\t2\t0.5\n");
  IngestOptions options;
  options.edges = {{dir / "mixed.tsv"}};
  options.columns = {"src", "dst", "amount"};
  RHIZOME_RETURN_IF_ERROR(Ingest(FileSystem::Posix(), dir / "mixed.rz", options, JobControl()));
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), dir / "mixed.rz", Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  RHIZOME_ASSIGN_OR_RETURN(const auto column, FindEdgeColumn(*graph, "amount"));
  if (column.dtype != DataType::kFloat64)
    return Fail(Status::Corruption("the amounts are not float64"));
  const auto snapshot = graph->Snapshot();
  RHIZOME_ASSIGN_OR_RETURN(auto scan, EdgeScan::Open(*snapshot));
  std::vector<double> amounts;
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto edge, scan.Next());
    if (!edge) break;
    RHIZOME_RETURN_IF_ERROR(
        ReadEdgeRows(*snapshot, "amount", std::span(&edge->number, 1),
                     std::as_writable_bytes(std::span(&amounts.emplace_back(), 1))));
  }
  std::sort(amounts.begin(), amounts.end());
  return amounts;
}

}  // namespace

std::optional<std::string> CheckInputs() {
  const TempDir dir;
  const auto label = LabelOfTheUnlabelled(dir);
  if (!label) return label.error().ToString();
  if (*label != -1) return "a vertex without a label has the label " + std::to_string(*label);
  const auto amounts = MixedAmounts(dir);
  if (!amounts) return amounts.error().ToString();
  if (*amounts != std::vector<double>{0.5, 16777217}) return "a number is rounded";
  // float64 cannot hold this integer either.
  if (!IsRefused(dir, "0\t1\t9007199254740993\n1\t2\t0.5\n", "x")) return "an integer is rounded";
  if (!IsRefused(dir, "0\t1\t1\n", "vertex_id")) return "an array has the name of a coordinate";
  return std::nullopt;
}

}  // namespace rhizome::testing
