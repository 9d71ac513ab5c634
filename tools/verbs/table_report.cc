#include "tools/verbs/table_report.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tools/cli/text.h"
#include "tools/verbs/evaluation_report.h"

namespace rhizome {

Json TableReportJson(const TableModelReport& report) {
  Json epochs = Json::array();
  for (const TableModelEpoch& epoch : report.epochs) {
    epochs.push_back(
        {{"loss", epoch.loss},
         {"seconds", epoch.seconds},
         {"edges", epoch.edges},
         {"rows_requested", epoch.rows_requested},
         {"rows_read", epoch.rows_read},
         {"rows_written", epoch.rows_written},
         {"over_entities", static_cast<double>(epoch.rows_read) / static_cast<double>(report.rows)},
         {"bytes_read", epoch.bytes_read},
         {"bytes_written", epoch.bytes_written},
         {"mrr_sampled", epoch.mrr_sampled ? Json(*epoch.mrr_sampled) : Json()}});
  }
  return {{"epochs", std::move(epochs)},
          {"rows", report.rows},
          {"dim", report.dim},
          {"relations", report.relations},
          {"batches", report.batches},
          {"resumed_batches", report.resumed_batches},
          {"table_bytes", report.table_bytes},
          {"disk_bytes", report.disk_bytes},
          {"cache_bytes", report.cache_bytes},
          {"cached_rows", report.cached_rows},
          {"base_memory_bytes", report.base_memory_bytes},
          {"peak_memory_bytes", report.peak_memory_bytes},
          {"decoder", report.decoder_file},
          {"array", report.array}};
}

std::string DescribeTableTraining(const Json& f) {
  bool measured = false;
  for (const Json& e : f["epochs"]) measured = measured || !e["mrr_sampled"].is_null();
  TextTable table({0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<std::string> head = {"epoch",     "loss",         "seconds",     "edges",
                                   "rows read", "rows written", "reads / rows"};
  if (measured) head.emplace_back("valid mrr_sampled");
  table.Add(head);
  std::size_t number = 0;
  for (const Json& e : f["epochs"]) {
    std::vector<std::string> row = {std::to_string(++number),
                                    fmt::format("{:.4f}", e["loss"].get<double>()),
                                    fmt::format("{:.2f}", e["seconds"].get<double>()),
                                    WithCommas(e["edges"]),
                                    WithCommas(e["rows_read"]),
                                    WithCommas(e["rows_written"]),
                                    fmt::format("{:.2f}", e["over_entities"].get<double>())};
    if (measured) {
      const Json& mrr = e["mrr_sampled"];
      row.push_back(mrr.is_null() ? "" : fmt::format("{:.4f}", mrr.get<double>()));
    }
    table.Add(row);
  }
  std::string text = table.ToString();
  if (measured) text += "the last epoch was kept: a table does not return to an earlier one\n";
  text +=
      fmt::format("{} rows of {} numbers, {} in the cache; table {}, on disk {}; peak memory {}\n",
                  WithCommas(f["rows"]), f["dim"].get<std::uint64_t>(),
                  WithCommas(f["cached_rows"]), HumanBytes(f["table_bytes"]),
                  HumanBytes(f["disk_bytes"]), HumanBytes(f["peak_memory_bytes"]));
  const std::string decoder = f["decoder"];
  const std::string array = f["array"];
  if (!decoder.empty()) text += fmt::format("wrote {}\n", decoder);
  if (!array.empty()) text += fmt::format("wrote array '{}'\n", array);
  if (f.contains("test")) return text + "test edges:\n" + RanksTable(f["test"]);
  if (!decoder.empty() && !array.empty())
    text += fmt::format("next: rhizome evaluate {} --array {} --decoder {} --test F\n",
                        f["store"].get<std::string>(), array, decoder);
  return text;
}

Json TablePlanJson(const TablePlan& plan) {
  Json epochs = Json::array();
  for (const TableEpochPlan& epoch : plan.epochs)
    epochs.push_back(
        {{"rows_requested", epoch.rows_requested},
         {"rows_read", epoch.rows_read},
         {"rows_written", epoch.rows_written},
         {"over_entities", static_cast<double>(epoch.rows_read) / static_cast<double>(plan.rows)},
         {"bytes_read", epoch.rows_read * plan.row_bytes},
         {"bytes_written", epoch.rows_written * plan.row_bytes}});
  return {{"rows", plan.rows},
          {"dim", plan.dim},
          {"relations", plan.relations},
          {"partitions", plan.partitions},
          {"batches", plan.batches},
          {"row_bytes", plan.row_bytes},
          {"table_bytes", plan.table_bytes},
          {"disk_bytes", plan.disk_bytes},
          {"free_bytes", plan.free_bytes},
          {"memory_bytes", plan.memory_bytes},
          {"least_memory_bytes", plan.least_memory_bytes},
          {"all_memory_bytes", plan.all_memory_bytes},
          {"held_bytes", plan.held_bytes},
          {"fixed_bytes", plan.fixed_bytes},
          {"lookahead", plan.lookahead},
          {"lookahead_bytes", plan.lookahead_bytes},
          {"cache_bytes", plan.cache_bytes},
          {"cached_rows", plan.cached_rows},
          {"epochs", std::move(epochs)},
          {"notes", plan.notes},
          {"warnings", plan.warnings}};
}

std::string DescribeTablePlan(const Json& f) {
  std::string text = fmt::format(
      "{} rows of {} numbers, {} a row: table {}, on disk {} of {} free\n", WithCommas(f["rows"]),
      f["dim"].get<std::uint64_t>(), HumanBytes(f["row_bytes"]), HumanBytes(f["table_bytes"]),
      HumanBytes(f["disk_bytes"]), HumanBytes(f["free_bytes"]));
  const std::string limit = f["memory_bytes"] == 0 ? "no limit" : HumanBytes(f["memory_bytes"]);
  text += fmt::format(
      "memory: {}; at least {}, all rows fit in {}\n"
      "  graph {}, a step {}, {} batches in advance {}, cache {}: {} rows ({:.1f} %)\n",
      limit, HumanBytes(f["least_memory_bytes"]), HumanBytes(f["all_memory_bytes"]),
      HumanBytes(f["held_bytes"]), HumanBytes(f["fixed_bytes"]), WithCommas(f["lookahead"]),
      HumanBytes(f["lookahead_bytes"]), HumanBytes(f["cache_bytes"]), WithCommas(f["cached_rows"]),
      100 * f["cached_rows"].get<double>() / f["rows"].get<double>());
  TextTable table({0, 1, 2, 3, 4, 5});
  table.Add({"epoch", "batches", "rows read", "reads / rows", "read", "rows changed"});
  std::size_t number = 0;
  for (const Json& e : f["epochs"])
    table.Add({std::to_string(++number), WithCommas(f["batches"]), WithCommas(e["rows_read"]),
               fmt::format("{:.2f}", e["over_entities"].get<double>()), HumanBytes(e["bytes_read"]),
               WithCommas(e["rows_written"])});
  return text + table.ToString();
}

}  // namespace rhizome
