#include <algorithm>

#include "bench_common.h"
#include "bench_kernels.h"
#include "bench_library.h"

namespace rhizome {
namespace {

using nlohmann::ordered_json;

ordered_json ToJson(const AggregateFigure& figure) {
  ordered_json json = {{"op", figure.op},
                       {"dtype", figure.dtype},
                       {"width", figure.width},
                       {"table_bytes", figure.table_bytes},
                       {"edges", figure.edges},
                       {"gb_per_second", figure.gb_per_second},
                       {"sequential_gb_per_second", figure.sequential_gb_per_second},
                       {"random_gb_per_second", figure.random_gb_per_second},
                       {"share_of_sequential", figure.share_of_sequential},
                       {"share_of_random", figure.share_of_random},
                       {"ratio_to_scatter", figure.ratio_to_scatter},
                       {"ratio_to_sparse", figure.ratio_to_sparse},
                       {"cpu_ratio_to_scatter", figure.cpu_ratio_to_scatter},
                       {"cpu_ratio_to_sparse", figure.cpu_ratio_to_sparse}};
  for (const char* const name :
       {"ratio_to_scatter", "ratio_to_sparse", "cpu_ratio_to_scatter", "cpu_ratio_to_sparse"}) {
    if (json[name] == 0.0) json[name] = nullptr;  // libtorch has no such operation
  }
  return json;
}

}  // namespace

Result<ordered_json> BenchAggregate(const AggregateBenchOptions& options,
                                    const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const GnnBench* bench, LoadGnnBench());
  RHIZOME_ASSIGN_OR_RETURN(const AggregateBenchReport report, bench->Aggregate(options, control));
  const std::uint64_t largest =
      *std::max_element(options.table_bytes.begin(), options.table_bytes.end());
  double share = 0;
  double ratio = 0;
  ordered_json results = ordered_json::array();
  for (const AggregateFigure& figure : report.figures) {
    results.push_back(ToJson(figure));
    if (figure.op != "sum" || figure.table_bytes != largest || figure.dtype != "float32") continue;
    share = share == 0 ? figure.share_of_sequential : std::min(share, figure.share_of_sequential);
    const double least = figure.ratio_to_sparse == 0
                             ? figure.ratio_to_scatter
                             : std::min(figure.ratio_to_scatter, figure.ratio_to_sparse);
    ratio = ratio == 0 ? least : std::min(ratio, least);
  }
  return ordered_json{
      {"workload", "aggregate"},
      {"figure", share},
      {"figure_is", "least share of the sequential bandwidth, float32 sums, largest table"},
      {"ratio", ratio},
      {"ratio_is", "least ratio to libtorch's sparse product and index_add, the same"},
      {"simd", report.simd},
      {"threads", options.threads},
      {"degree", options.degree},
      {"rounds", options.rounds},
      {"results", std::move(results)},
      {"machine", DescribeMachine(".")}};
}

}  // namespace rhizome
