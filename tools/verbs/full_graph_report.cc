#include "tools/verbs/full_graph_report.h"

#include <fmt/format.h>

#include <utility>

#include "tools/cli/text.h"
#include "tools/import/learning_report.h"

// Reports of full-graph training: the plan by pass, its arrays and bytes, and the measured epochs,
// first as JSON, then as tables formatted from that JSON.

namespace rhizome {
namespace {

Json MovedJson(const std::vector<FullGraphPass::Moved>& moved) {
  Json json = Json::array();
  for (const FullGraphPass::Moved& one : moved)
    json.push_back({{"array", one.array}, {"bytes", one.bytes}});
  return json;
}

std::uint64_t Sum(const Json& moved) {
  std::uint64_t bytes = 0;
  for (const Json& one : moved) bytes += one["bytes"].get<std::uint64_t>();
  return bytes;
}

}  // namespace

void AddFullGraphPlan(const FullGraphReport& plan, Json& json) {
  Json passes = Json::array();
  for (const FullGraphPass& pass : plan.passes) {
    passes.push_back({{"pass", pass.name},
                      {"measures", pass.measures},
                      {"reads", MovedJson(pass.reads)},
                      {"feature_bytes", pass.feature_bytes},
                      {"writes", MovedJson(pass.writes)},
                      {"blocks", pass.blocks},
                      {"resident", MovedJson(pass.resident)},
                      {"sums", pass.sums.empty() ? Json() : Json(pass.sums)}});
  }
  Json arrays = Json::array();
  for (const FullGraphReport::Array& array : plan.arrays)
    arrays.push_back({{"array", array.name}, {"bytes", array.bytes}});
  Json policies = Json::object();
  for (const FullGraphReport::Policy& policy : plan.policies) policies[policy.name] = policy.bytes;
  json["plan"] = std::move(passes);
  json["arrays"] = std::move(arrays);
  json["chunk_rows"] = plan.chunk_rows;
  json["spill"] = plan.spill;
  json["measure_spill"] = plan.measure_spill;
  json["planned_bytes"] = plan.planned_bytes;
  json["planned_read_bytes"] = plan.planned_read_bytes;
  json["planned_feature_bytes"] = plan.feature_bytes;
  json["lower_bound_bytes"] = plan.lower_bound_bytes;
  json["optimal"] = plan.optimal ? Json(true) : Json("bound");
  json["policies"] = std::move(policies);
  json["plan_memory_bytes"] = plan.memory_bytes;
  json["plan_disk_bytes"] = plan.disk_bytes;
  if (plan.seconds == 0) return;
  Json times = Json::array();
  for (const FullGraphPass& pass : plan.passes) {
    times.push_back({{"pass", pass.name},
                     {"compute_seconds", pass.compute_seconds},
                     {"disk_seconds", pass.disk_seconds}});
  }
  json["plan_times"] = std::move(times);
  json["plan_seconds"] = plan.seconds;
  json["disk_read_rate"] = plan.disk_read_rate;
  json["disk_write_rate"] = plan.disk_write_rate;
  if (!plan.disk_problem.empty()) json["disk_problem"] = plan.disk_problem;
}

void AddFullGraphReport(const TrainReport& report, Json& json) {
  AddFullGraphPlan(*report.full_graph, json);
  std::size_t number = 0;
  for (Json& epoch : json["epochs"]) {
    const EpochReport& of = report.epochs[number++];
    epoch["forward_seconds"] = of.forward_seconds;
    epoch["backward_seconds"] = of.backward_seconds;
    epoch["measure_seconds"] = of.measure_seconds;
    epoch["spill_bytes_read"] = of.spill_bytes_read;
    epoch["spill_bytes_written"] = of.spill_bytes_written;
    epoch["feature_bytes_read"] = of.feature_bytes_read;
    epoch["disk_busy"] = of.disk_busy;
  }
  json["measured_bytes"] = report.epochs.empty() ? 0
                                                 : report.epochs.back().spill_bytes_read +
                                                       report.epochs.back().spill_bytes_written;
}

std::string DescribeFullGraphPlan(const Json& f) {
  // only plans have them; a training measures its times
  const bool times = f.contains("plan_seconds");
  TextTable table({1, 2, 3, 4, 5, 7, 8});
  std::vector<std::string> head = {"pass",   "in memory", "features", "reads",
                                   "writes", "blocks",    "sums"};
  if (times) head.insert(head.end(), {"compute", "transfer"});
  table.Add(head);
  std::size_t number = 0;
  for (const Json& pass : f["plan"]) {
    const std::string measures = pass["measures"].get<bool>() ? "evaluation: " : "";
    std::vector<std::string> row = {measures + pass["pass"].get<std::string>(),
                                    HumanBytes(Sum(pass["resident"])),
                                    HumanBytes(pass["feature_bytes"]),
                                    HumanBytes(Sum(pass["reads"])),
                                    HumanBytes(Sum(pass["writes"])),
                                    WithCommas(pass["blocks"]),
                                    pass["sums"].is_null() ? "" : pass["sums"].get<std::string>()};
    if (times) {
      const Json& of_pass = f["plan_times"][number++];
      row.push_back(HumanSeconds(of_pass["compute_seconds"]));
      row.push_back(HumanSeconds(of_pass["disk_seconds"]));
    }
    table.Add(row);
  }
  std::uint64_t bytes = 0;
  for (const Json& array : f["arrays"]) bytes += array["bytes"].get<std::uint64_t>();
  std::string text =
      table.ToString() +
      fmt::format(
          "{} of arrays in chunks of {} rows; an epoch transfers {} to and from disk, and reads {} "
          "of features; it needs at most {} of memory and {} of disk space\n",
          HumanBytes(bytes), WithCommas(f["chunk_rows"]), HumanBytes(f["planned_bytes"]),
          HumanBytes(f["planned_feature_bytes"]), HumanBytes(f["plan_memory_bytes"]),
          HumanBytes(f["plan_disk_bytes"]));
  if (times) {
    text += fmt::format("an epoch takes about {}", HumanSeconds(f["plan_seconds"]));
    const auto rate = [&](const char* name) {
      return HumanBytes(static_cast<std::uint64_t>(f[name].get<double>()));
    };
    if (f["disk_read_rate"].get<double>() > 0) {
      text += fmt::format(", on a disk that reads {}/s and writes {}/s", rate("disk_read_rate"),
                          rate("disk_write_rate"));
    } else if (f.contains("disk_problem")) {
      text += fmt::format(
          "; without transfers, because the speed of the disk could not be measured: {}",
          f["disk_problem"].get<std::string>());
    }
    text += "\n";
  }
  if (f["planned_bytes"].get<std::uint64_t>() == 0) return text;
  text += fmt::format(
      "spill policy {}, for evaluation {}; lower bound with the features {}; other policies "
      "transfer",
      f["spill"].get<std::string>(), f["measure_spill"].get<std::string>(),
      HumanBytes(f["lower_bound_bytes"]));
  const char* before = " ";
  for (const auto& [name, moved] : f["policies"].items()) {
    text += fmt::format("{}{} ({})", std::exchange(before, ", "), HumanBytes(moved), name);
  }
  return text + "\n";
}

std::string DescribeFullGraphEpochs(const Json& f) {
  TextTable table({0, 1, 2, 3, 4, 5, 6, 7, 8});
  const std::string monitor = f["monitor"];
  table.Add({"epoch", "loss", "valid " + monitor, "seconds", "forward", "backward", "read",
             "written", "disk busy"});
  std::size_t number = 0;
  for (const Json& e : f["epochs"]) {
    const auto seconds = [&](const char* name) {
      return fmt::format("{:.2f}", e[name].get<double>());
    };
    table.Add({std::to_string(++number), fmt::format("{:.4f}", e["loss"].get<double>()),
               MetricText(monitor, e["valid_metric"]), seconds("seconds"),
               seconds("forward_seconds"), seconds("backward_seconds"),
               HumanBytes(e["spill_bytes_read"]), HumanBytes(e["spill_bytes_written"]),
               fmt::format("{:.0f} %", 100 * e["disk_busy"].get<double>())});
  }
  return table.ToString();
}

}  // namespace rhizome
