#include <algorithm>

#include "tools/bench/gnn/bench_kernels.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/verb_bench.h"

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

ordered_json ToJson(const AttentionFigure& figure) {
  return {{"op", figure.op},
          {"heads", figure.heads},
          {"width", figure.width},
          {"table_bytes", figure.table_bytes},
          {"edges", figure.edges},
          {"nanoseconds_per_edge", figure.nanoseconds_per_edge},
          {"ratio_to_weighted_sum", figure.ratio_to_weighted_sum},
          {"cpu_ratio_to_weighted_sum", figure.cpu_ratio_to_weighted_sum}};
}

ordered_json ToJson(const ProjectionFigure& figure) {
  return {{"op", figure.op},
          {"width", figure.width},
          {"outputs", figure.outputs},
          {"table_bytes", figure.table_bytes},
          {"rows", figure.rows},
          {"nanoseconds_per_row", figure.nanoseconds_per_row},
          {"ratio_to_libtorch", figure.ratio_to_libtorch},
          {"cpu_ratio_to_libtorch", figure.cpu_ratio_to_libtorch}};
}

Result<ordered_json> BenchAggregate(const AggregateBenchOptions& options,
                                    const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const AggregateBenchReport report, MeasureAggregation(options, control));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<AttentionFigure> attention,
                           MeasureAttention(options, control));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<ProjectionFigure> projection,
                           MeasureProjection(options, control));
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
  ordered_json attended = ordered_json::array();
  for (const AttentionFigure& figure : attention) attended.push_back(ToJson(figure));
  ordered_json projected = ordered_json::array();
  for (const ProjectionFigure& figure : projection) projected.push_back(ToJson(figure));
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
      {"attention", std::move(attended)},
      {"projection", std::move(projected)},
      {"machine", DescribeMachine(".")}};
}

struct AggregateFlags {
  AggregateBenchOptions options;
  std::vector<std::string> tables;
};

Result<Answer> RunAggregate(const AggregateFlags& flags, Session& session) {
  AggregateBenchOptions options = flags.options;
  if (!flags.tables.empty()) options.table_bytes.clear();
  for (const std::string& text : flags.tables) {
    const std::optional<std::uint64_t> bytes = ParseSize(text);
    if (!bytes) {
      return Fail(
          Status::InvalidArgument("--tables: " + text + " is not a size such as 64M or 1G"));
    }
    options.table_bytes.push_back(*bytes);
  }
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchAggregate(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddAggregateBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<AggregateFlags>();
  AggregateBenchOptions& options = flags->options;
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench aggregate --widths 32 --tables 256K --rounds 1",
               flags, RunAggregate);
  verb->add_option("--widths", options.widths, "Widths of the rows")
      ->delimiter(',')
      ->type_name("N,...")
      ->default_str("32,64,128,256,512");
  verb->add_option("--dtypes", options.dtypes, "Types of the rows: float32, float16, bfloat16")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("float32,float16");
  verb->add_option("--tables", flags->tables, "Sizes of the table of rows")
      ->delimiter(',')
      ->type_name("SIZE,...")
      ->default_str("256M,4M");
  verb->add_option("--degree", options.degree, "Neighbours per target")
      ->check(CLI::Range(1U, 1U << 20))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option(
          "--rounds", options.rounds,
          "Number of rounds, in which every competitor is measured; the median is reported")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seed", options.seed, "Random seed of the rows to read")
      ->type_name("N")
      ->capture_default_str();
  AddThreads(*verb, options.threads);
}

}  // namespace rhizome
