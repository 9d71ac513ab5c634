#include "tools/verbs/table_report.h"

#include <fmt/format.h>

#include "tools/cli/text.h"

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
         {"bytes_written", epoch.bytes_written}});
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
  TextTable table({0, 1, 2, 3, 4, 5, 6});
  table.Add({"epoch", "loss", "seconds", "edges", "rows read", "rows written", "reads / rows"});
  std::size_t number = 0;
  for (const Json& e : f["epochs"])
    table.Add({std::to_string(++number), fmt::format("{:.4f}", e["loss"].get<double>()),
               fmt::format("{:.2f}", e["seconds"].get<double>()), WithCommas(e["edges"]),
               WithCommas(e["rows_read"]), WithCommas(e["rows_written"]),
               fmt::format("{:.2f}", e["over_entities"].get<double>())});
  std::string text = table.ToString();
  text +=
      fmt::format("{} rows of {} numbers, {} in the cache; table {}, on disk {}; peak memory {}\n",
                  WithCommas(f["rows"]), f["dim"].get<std::uint64_t>(),
                  WithCommas(f["cached_rows"]), HumanBytes(f["table_bytes"]),
                  HumanBytes(f["disk_bytes"]), HumanBytes(f["peak_memory_bytes"]));
  const std::string decoder = f["decoder"];
  const std::string array = f["array"];
  if (!decoder.empty()) text += fmt::format("wrote {}\n", decoder);
  if (!array.empty()) text += fmt::format("wrote array '{}'\n", array);
  if (!decoder.empty() && !array.empty())
    text += fmt::format("next: rhizome evaluate {} --array {} --decoder {} --test F\n",
                        f["store"].get<std::string>(), array, decoder);
  return text;
}

}  // namespace rhizome
