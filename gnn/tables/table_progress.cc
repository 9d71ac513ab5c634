#include "gnn/tables/table_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cache/job/safetensors.h"

namespace rhizome {
inline namespace internal {
namespace {

using nlohmann::json;

constexpr const char* kJobField = "job";
constexpr const char* kStateField = "state";
constexpr const char* kRelationsTensor = "relations";

json ReportJson(const TableModelEpoch& report) {
  return {report.loss,
          report.seconds,
          report.edges,
          report.rows_requested,
          report.rows_read,
          report.rows_written,
          report.bytes_read,
          report.bytes_written,
          report.mrr_sampled ? json(*report.mrr_sampled) : json()};
}

TableModelEpoch ReportOf(const json& j) {
  std::optional<double> mrr;
  if (const json& measured = j.at(8); !measured.is_null()) mrr = measured.get<double>();
  return {.loss = j.at(0),
          .seconds = j.at(1),
          .edges = j.at(2),
          .rows_requested = j.at(3),
          .rows_read = j.at(4),
          .rows_written = j.at(5),
          .bytes_read = j.at(6),
          .bytes_written = j.at(7),
          .mrr_sampled = mrr};
}

/// Returns the fields in which two descriptions differ.
std::vector<std::string> Differences(const std::string& one, const std::string& other) {
  const json a = json::parse(one, nullptr, false);
  const json b = json::parse(other, nullptr, false);
  std::vector<std::string> names;
  if (!a.is_object() || !b.is_object()) return names;
  for (const auto& [name, value] : a.items())
    if (b.value(name, json()) != value) names.push_back(name);
  return names;
}

}  // namespace

std::vector<std::byte> EncodeTableProgress(const TableProgress& progress,
                                           const std::string& description) {
  json reports = json::array();
  for (const TableModelEpoch& report : progress.reports) reports.push_back(ReportJson(report));
  TensorFile file;
  file.metadata[kJobField] = description;
  file.metadata[kStateField] = json{
      {"epoch", progress.epoch},
      {"batch", progress.batch},
      {"steps", progress.steps},
      {"current", ReportJson(progress.current)},
      {"reports",
       std::move(reports)}}.dump();
  file.tensors[kRelationsTensor] = {{static_cast<std::int64_t>(progress.relations.size())},
                                    progress.relations};
  return EncodeSafetensors(file);
}

Result<TableProgress> DecodeTableProgress(std::span<const std::byte> bytes,
                                          const std::string& description) {
  RHIZOME_ASSIGN_OR_RETURN(TensorFile file, DecodeSafetensors(bytes));
  const std::string& job = file.metadata[kJobField];
  if (job != description)
    return Fail(Status::InvalidArgument(fmt::format(
        "the checkpoint is of another training ({} differ); give the same options and store, or "
        "omit `resume`",
        fmt::join(Differences(description, job), ", "))));
  try {
    const json state = json::parse(file.metadata[kStateField]);
    TableProgress progress{.epoch = state.at("epoch"),
                           .batch = state.at("batch"),
                           .steps = state.at("steps"),
                           .relations = std::move(file.tensors[kRelationsTensor].values),
                           .current = ReportOf(state.at("current")),
                           .reports = {}};
    for (const json& report : state.at("reports")) progress.reports.push_back(ReportOf(report));
    return progress;
  } catch (const json::exception& error) {
    return Fail(Status::Corruption(fmt::format("the checkpoint: {}", error.what())));
  }
}

}  // namespace internal
}  // namespace rhizome
