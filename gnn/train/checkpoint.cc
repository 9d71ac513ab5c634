#include "gnn/train/checkpoint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cache/job/job_description.h"
#include "cache/job/safetensors.h"
#include "storage/section/untrusted_json.h"

namespace rhizome {
inline namespace internal {
namespace {

using Json = nlohmann::json;

constexpr const char* kJobKey = "job";
constexpr const char* kProgressKey = "progress";
constexpr const char* kHashKey = "xxh3";

// The fields are listed once, so that reading and writing agree.
template <typename Report, typename Visit>
void VisitReport(Report& r, const Visit& visit) {
  visit("loss", r.loss);
  visit("seconds", r.seconds);
  MinibatchCosts::Each(visit, r);
  visit("compute_seconds", r.compute_seconds);
  visit("stall_seconds", r.stall_seconds);
  visit("valid_accuracy", r.valid_accuracy);
}

/// Fields that checkpoints of older versions lack; these recorded accuracy only.
template <typename Report, typename Visit>
void VisitNewFields(Report& r, const Visit& visit) {
  visit("learning_rate", r.learning_rate);
  visit("valid_metric", r.valid_metric);
  visit("valid_loss", r.valid_loss);
}

/// Fields of full-graph training.
template <typename Report, typename Visit>
void VisitFullGraph(Report& r, const Visit& visit) {
  visit("forward_seconds", r.forward_seconds);
  visit("backward_seconds", r.backward_seconds);
  visit("measure_seconds", r.measure_seconds);
  visit("spill_bytes_read", r.spill_bytes_read);
  visit("spill_bytes_written", r.spill_bytes_written);
}

/// Fields of training on a device.
template <typename Report, typename Visit>
void VisitDevice(Report& r, const Visit& visit) {
  visit("upload_bytes", r.upload_bytes);
  visit("upload_seconds", r.upload_seconds);
  visit("device_wait_seconds", r.device_wait_seconds);
  visit("device_hits", r.device_hits);
}

template <typename Outcome, typename Visit>
void VisitOutcome(Outcome& o, const Visit& visit) {
  visit("loss_sum", o.loss_sum);
  visit("seeds", o.seeds);
}

/// Writes each field to `json`; doubles keep every bit.
auto Into(Json& json) {
  return [&json](const char* name, const auto& value) { json[name] = value; };
}

/// Reads each field from `json`; throws Json's exceptions if one is missing or has another type.
auto From(const Json& json) {
  return [&json](const char* name, auto& value) { json.at(name).get_to(value); };
}

/// Writes an outcome; a metric only if an objective measured one, which older versions had not.
Json OutcomeJson(const BatchOutcome& outcome) {
  Json json;
  VisitOutcome(outcome, Into(json));
  if (outcome.metric_sum != 0) json["metric_sum"] = outcome.metric_sum;
  return json;
}

void TakeOutcome(const Json& json, BatchOutcome& outcome) {
  VisitOutcome(outcome, From(json));
  if (json.contains("metric_sum")) json.at("metric_sum").get_to(outcome.metric_sum);
}

template <typename Progress, typename Visit>
void VisitNumbers(Progress& p, const Visit& visit) {
  visit("done", p.done);
  visit("best_epoch", p.best_epoch);
  visit("best_accuracy", p.best_value);  // the field's name in older versions
  visit("best_loss", p.best_loss);
}

constexpr const char* kValidMetrics = "valid_metrics";
constexpr const char* kTrainMetrics = "train_metrics";

Json MetricsJson(const std::vector<MetricValue>& values) {
  Json json = Json::array();
  for (const MetricValue& one : values) {
    json.push_back({{"metric", MetricName(one.metric)},
                    {"value", one.value ? Json(*one.value) : Json()},
                    {"reason", one.reason}});
  }
  return json;
}

std::vector<MetricValue> MetricsFrom(const Json& json) {
  std::vector<MetricValue> values;
  for (const Json& one : json) {
    const std::optional<Metric> metric = ParseMetric(one.at("metric").get<std::string>());
    if (!metric) continue;
    MetricValue& value = values.emplace_back();
    value.metric = *metric;
    if (!one.at("value").is_null()) value.value = one.at("value").get<double>();
    value.reason = one.at("reason").get<std::string>();
  }
  return values;
}

Json ReportJson(const EpochReport& report) {
  Json json;
  VisitReport(report, Into(json));
  VisitNewFields(report, [&json](const char* name, const auto& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) json[name] = *value;
    } else {
      json[name] = value;
    }
  });
  if (report.forward_seconds > 0) VisitFullGraph(report, Into(json));
  if (report.upload_bytes > 0) VisitDevice(report, Into(json));
  if (report.disk_busy > 0) json["disk_busy"] = report.disk_busy;
  if (report.feature_bytes_read > 0) json["feature_bytes_read"] = report.feature_bytes_read;
  json["resident_bytes"] = report.resident_bytes;
  json[kValidMetrics] = MetricsJson(report.valid_metrics);
  json[kTrainMetrics] = MetricsJson(report.train_metrics);
  return json;
}

EpochReport ReportFrom(const Json& json) {
  EpochReport report;
  VisitReport(report, From(json));
  if (!json.contains("learning_rate")) report.valid_metric = report.valid_accuracy;
  VisitNewFields(report, [&json](const char* name, auto& value) {
    if (json.contains(name)) value = json.at(name).get<double>();
  });
  if (json.contains("forward_seconds")) VisitFullGraph(report, From(json));
  if (json.contains("upload_bytes")) VisitDevice(report, From(json));
  if (json.contains("disk_busy")) json.at("disk_busy").get_to(report.disk_busy);
  if (json.contains("feature_bytes_read"))
    json.at("feature_bytes_read").get_to(report.feature_bytes_read);
  if (json.contains("resident_bytes")) json.at("resident_bytes").get_to(report.resident_bytes);
  if (json.contains(kValidMetrics)) report.valid_metrics = MetricsFrom(json.at(kValidMetrics));
  if (json.contains(kTrainMetrics)) report.train_metrics = MetricsFrom(json.at(kTrainMetrics));
  return report;
}

std::string EncodeProgress(const Checkpoint& checkpoint) {
  const TrainProgress& progress = checkpoint.progress;
  Json json;
  VisitNumbers(progress, Into(json));
  json["epochs"] = Json::array();
  for (const EpochReport& epoch : progress.epochs) json["epochs"].push_back(ReportJson(epoch));
  json["current"] = ReportJson(progress.current);
  json["train"] = OutcomeJson(progress.train);
  json["valid"] = OutcomeJson(progress.valid);
  json["steps"] = checkpoint.learner.steps;
  return json.dump();
}

void DecodeProgress(const std::string& text, Checkpoint& checkpoint) {
  const Json json = ParseUntrustedJson(text);
  TrainProgress& progress = checkpoint.progress;
  VisitNumbers(progress, From(json));
  for (const Json& epoch : json.at("epochs")) progress.epochs.push_back(ReportFrom(epoch));
  progress.current = ReportFrom(json.at("current"));
  TakeOutcome(json.at("train"), progress.train);
  TakeOutcome(json.at("valid"), progress.valid);
  json.at("steps").get_to(checkpoint.learner.steps);
}

/// Name prefixes of a checkpoint's tensors; the optimiser's tensors have their own names.
constexpr const char* kWeights = "weight";
constexpr const char* kBestWeights = "best";
constexpr const char* kValidScores = "valid";
constexpr const char* kTrainScores = "train";

std::string NameOf(const char* part, std::size_t i) { return fmt::format("{}.{:04}", part, i); }

void PutTensor(const std::string& name, const torch::Tensor& tensor, TensorFile& file) {
  const torch::Tensor values = tensor.detach().contiguous();
  const float* data = values.data_ptr<float>();
  file.tensors[name] = {.shape = values.sizes().vec(), .values = {data, data + values.numel()}};
}

void PutTensors(const char* part, const std::vector<torch::Tensor>& tensors, TensorFile& file) {
  for (std::size_t i = 0; i < tensors.size(); ++i) PutTensor(NameOf(part, i), tensors[i], file);
}

torch::Tensor ToTensor(const NamedTensor& stored) {
  return torch::tensor(at::ArrayRef<float>(stored.values)).view(stored.shape);
}

std::vector<torch::Tensor> TakeTensors(const char* part, const TensorFile& file) {
  std::vector<torch::Tensor> tensors;
  for (auto found = file.tensors.find(NameOf(part, 0)); found != file.tensors.end();
       found = file.tensors.find(NameOf(part, tensors.size()))) {
    tensors.push_back(ToTensor(found->second));
  }
  return tensors;
}

// The file holds the tensors of the weights, the best weights, the kept scores and the optimiser,
// and in its metadata the job's description, the progress as JSON, and a hash over everything else.
TensorFile FileOf(const std::string& job, const Checkpoint& checkpoint) {
  TensorFile file;
  PutTensors(kWeights, checkpoint.weights, file);
  PutTensors(kBestWeights, checkpoint.best_weights, file);
  for (const auto& [name, scores] : {std::pair{kValidScores, checkpoint.valid_scores},
                                     std::pair{kTrainScores, checkpoint.train_scores}})
    if (scores.defined()) PutTensor(NameOf(name, 0), scores, file);
  for (const auto& [name, tensor] : checkpoint.learner.tensors) PutTensor(name, tensor, file);
  file.metadata[kJobKey] = job;
  file.metadata[kProgressKey] = EncodeProgress(checkpoint);
  file.metadata[kHashKey] = HashWithout(file, kHashKey);
  return file;
}

// Steps:
// 1. Verify the file's metadata and hash.
// 2. Compare the job's description with `job`.
// 3. Decode the progress, and sort the tensors by name into weights, scores and optimiser state.
Result<Checkpoint> CheckpointOf(const TensorFile& file, const std::string& of,
                                const std::string& job) {
  const std::string place = fmt::format("checkpoint {}", of);
  const auto damaged = [&](std::string_view what) {
    return Fail(Status::Corruption(
        fmt::format("{}: {}; train without `resume` to start over", place, what)));
  };
  if (!file.metadata.contains(kJobKey) || !file.metadata.contains(kProgressKey) ||
      !file.metadata.contains(kHashKey))
    return damaged("its metadata lacks an entry of checkpoints");
  if (file.metadata.at(kHashKey) != HashWithout(file, kHashKey)) return damaged("wrong checksum");
  const std::string other = fmt::format(
      "{} belongs to a run with other options, or to another state of the store; train without "
      "`resume` to start over, or choose another `job`",
      place);
  RHIZOME_ASSIGN_OR_RETURN(
      const bool compared,
      CompareJobs(file.metadata.at(kJobKey), job,
                  {.place = place,
                   .other = other,
                   .remedy = "resume on the copy of the store that the checkpoint belongs to, or "
                             "train without `resume` to start over"}));
  Checkpoint checkpoint;
  checkpoint.by_numbers = !compared;
  try {
    DecodeProgress(file.metadata.at(kProgressKey), checkpoint);
  } catch (const Json::exception& error) {
    return damaged(error.what());
  }
  checkpoint.weights = TakeTensors(kWeights, file);
  checkpoint.best_weights = TakeTensors(kBestWeights, file);
  for (const auto& [name, stored] : file.tensors) {
    const std::string_view part = std::string_view(name).substr(0, name.find('.'));
    if (part == kWeights || part == kBestWeights) continue;
    torch::Tensor& taken = part == kValidScores   ? checkpoint.valid_scores
                           : part == kTrainScores ? checkpoint.train_scores
                                                  : checkpoint.learner.tensors[name];
    taken = ToTensor(stored);
  }
  return checkpoint;
}

}  // namespace

Status SaveCheckpoint(const Path& path, const std::string& job, const Checkpoint& checkpoint) {
  return SaveSafetensors(path, FileOf(job, checkpoint), OutputFile::Place::kScratch);
}

std::vector<std::byte> EncodeCheckpoint(const std::string& job, const Checkpoint& checkpoint) {
  return EncodeSafetensors(FileOf(job, checkpoint));
}

Result<Checkpoint> DecodeCheckpoint(std::span<const std::byte> bytes, const std::string& place,
                                    const std::string& job) {
  RHIZOME_ASSIGN_OR_RETURN(const TensorFile file, DecodeSafetensors(bytes));
  return CheckpointOf(file, place, job);
}

Result<std::optional<Checkpoint>> LoadCheckpoint(FileSystem& fs, const Path& path,
                                                 const std::string& job) {
  const Result<LoadedTensorFile> loaded = LoadSafetensors(fs, path);
  if (!loaded && loaded.error().code() == StatusCode::kNotFound) return std::optional<Checkpoint>();
  if (!loaded) return Fail(loaded.error());
  RHIZOME_ASSIGN_OR_RETURN(Checkpoint checkpoint, CheckpointOf(loaded->file, path.string(), job));
  return std::optional(std::move(checkpoint));
}

}  // namespace internal
}  // namespace rhizome
