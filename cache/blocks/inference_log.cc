#include "cache/blocks/inference_log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cache/job/job_description.h"
#include "cache/job/safetensors.h"
#include "storage/section/untrusted_json.h"

namespace rhizome {
inline namespace internal {
namespace {

using nlohmann::json;

// Models have up to 64 layers; the merged array and the rows before the first layer follow them.
constexpr std::uint32_t kMaxLayer = 65;

Status Corrupt(std::string_view what) {
  return Status::Corruption(fmt::format("inference log: {}; run without `resume`", what));
}

std::optional<Hash128> ParseHash(const std::string& hex) {
  Hash128 hash{};
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    unsigned value = 0;
    for (const char digit : {hex[2 * i], hex[2 * i + 1]}) {
      const std::size_t at = std::string_view("0123456789abcdef").find(digit);
      if (at == std::string_view::npos) return std::nullopt;
      value = value * 16 + static_cast<unsigned>(at);
    }
    hash[i] = static_cast<std::byte>(value);
  }
  return hash;
}

std::optional<std::uint64_t> Number(const json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

std::optional<std::string> Text(const json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

bool ReadCounts(const json& object, const char* field, std::array<std::uint64_t, 3>& counts) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_array() || found->size() != counts.size()) return false;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!(*found)[i].is_number_unsigned()) return false;
    counts[i] = (*found)[i].get<std::uint64_t>();
  }
  return true;
}

json FileJson(const FileEntry& file) {
  return {{"path", file.path},
          {"size", file.size_bytes},
          {"xxh3", ToHex(file.xxh3)},
          {"crc32c", file.crc32c}};
}

std::optional<FileEntry> ParseFile(const json& object) {
  const auto path = Text(object, "path");
  const auto size = Number(object, "size");
  const auto hash = Text(object, "xxh3");
  const auto crc = Number(object, "crc32c");
  if (!path || !size || !hash || !crc) return std::nullopt;
  const auto parsed = ParseHash(*hash);
  if (!parsed) return std::nullopt;
  return FileEntry{.path = *path,
                   .size_bytes = *size,
                   .xxh3 = *parsed,
                   .crc32c = static_cast<std::uint32_t>(*crc)};
}

}  // namespace

std::string EncodeFinished(std::uint32_t layer, std::uint64_t chunk,
                           const FinishedChunk& finished) {
  json record = FileJson(finished.file);
  record["layer"] = layer;
  record["chunk"] = chunk;
  record["correct"] = finished.accuracy.correct;
  record["total"] = finished.accuracy.total;
  if (finished.non_finite_rows > 0) record["non_finite_rows"] = finished.non_finite_rows;
  return record.dump();
}

Result<DecodedFinished> DecodeFinished(const std::string& text) {
  const json object = ParseUntrustedJson(text);
  if (!object.is_object()) return Fail(Corrupt("a record is not a JSON object"));
  const auto layer = Number(object, "layer");
  const auto chunk = Number(object, "chunk");
  std::optional<FileEntry> file = ParseFile(object);
  DecodedFinished decoded;
  const bool counted = ReadCounts(object, "correct", decoded.finished.accuracy.correct) &&
                       ReadCounts(object, "total", decoded.finished.accuracy.total);
  if (!layer || !chunk || !file || !counted || *layer > kMaxLayer) {
    return Fail(Corrupt("a record lacks a field"));
  }
  decoded.layer = static_cast<std::uint32_t>(*layer);
  decoded.chunk = *chunk;
  decoded.finished.file = *std::move(file);
  decoded.finished.non_finite_rows = Number(object, "non_finite_rows").value_or(0);
  return decoded;
}

// The log's first record is the description of the job. Each other record is a finished chunk, the
// order of a layer's output, or the metadata of a layer's output. Opening has two steps: (1) JobLog
// returns its complete records; (2) ReadRecords compares the description and replays the others.
Result<std::unique_ptr<InferenceLog>> InferenceLog::Open(FileSystem& fs, const Path& path,
                                                         const std::string& description) {
  std::unique_ptr<InferenceLog> log(new InferenceLog());
  RHIZOME_ASSIGN_OR_RETURN(log->log_, JobLog::Open(fs, path));
  const std::vector<std::string>& records = log->log_->records();
  if (records.empty()) {
    RHIZOME_RETURN_IF_ERROR(log->log_->Append(description));
    return log;
  }
  RHIZOME_RETURN_IF_ERROR(log->ReadRecords(records, description));
  return log;
}

Result<std::unique_ptr<InferenceLog>> InferenceLog::Read(FileSystem& fs, const Path& path,
                                                         const std::string& description) {
  std::unique_ptr<InferenceLog> log(new InferenceLog());
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::string> records, JobLog::ReadRecords(fs, path));
  if (records.empty()) return Fail(Corrupt("it is empty"));
  RHIZOME_RETURN_IF_ERROR(log->ReadRecords(records, description));
  return log;
}

Status InferenceLog::ReadRecords(const std::vector<std::string>& records,
                                 const std::string& description) {
  const std::string other = fmt::format(
      "the files of the earlier run belong to other settings, another model or another snapshot; "
      "run without `resume` to start over (then {}, now {})",
      records.front(), description);
  RHIZOME_ASSIGN_OR_RETURN(
      const bool compared,
      CompareJobs(records.front(), description,
                  {.place = "the state of the earlier run",
                   .other = other,
                   .remedy = "resume on the copy of the store that the run began with, or run "
                             "without `resume` to start over"}));
  by_numbers_ = !compared;
  for (std::size_t i = 1; i < records.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(ReadRecord(records[i]));
  }
  return Status::Ok();
}

Status InferenceLog::ReadRecord(const std::string& record) {
  const json object = ParseUntrustedJson(record);
  if (object.is_object() && object.contains("order")) return ReadOrder(record);
  if (object.is_object() && object.contains("metadata")) return ReadMetadata(record);
  RHIZOME_ASSIGN_OR_RETURN(DecodedFinished decoded, DecodeFinished(record));
  finished_[decoded.layer][decoded.chunk] = std::move(decoded.finished);
  return Status::Ok();
}

Status InferenceLog::ReadOrder(const std::string& record) {
  const json object = ParseUntrustedJson(record);
  const auto layer = Number(object, "layer");
  const auto rule = Text(object, "order");
  const auto hash = Text(object, "xxh3");
  if (!layer || !rule || !hash || *layer > kMaxLayer) return Corrupt("a record lacks a field");
  const auto parsed = ParseHash(*hash);
  if (!parsed) return Corrupt("a record's hash is malformed");
  orders_[static_cast<std::uint32_t>(*layer)] = {.rule = *rule, .xxh3 = *parsed};
  return Status::Ok();
}

Status InferenceLog::ReadMetadata(const std::string& record) {
  const json object = ParseUntrustedJson(record);
  const auto layer = Number(object, "layer");
  std::optional<FileEntry> file = ParseFile(object["metadata"]);
  if (!layer || *layer > kMaxLayer || !file) return Corrupt("a record lacks a field");
  metadata_[static_cast<std::uint32_t>(*layer)] = *std::move(file);
  return Status::Ok();
}

const FileEntry* InferenceLog::Metadata(std::uint32_t layer) const {
  const auto found = metadata_.find(layer);
  return found == metadata_.end() ? nullptr : &found->second;
}

Status InferenceLog::AppendMetadata(std::uint32_t layer, const FileEntry& file) {
  const json record = {{"layer", layer}, {"metadata", FileJson(file)}};
  metadata_[layer] = file;
  return log_->Append(record.dump());
}

const LoggedOrder* InferenceLog::Order(std::uint32_t layer) const {
  const auto found = orders_.find(layer);
  return found == orders_.end() ? nullptr : &found->second;
}

Status InferenceLog::AppendOrder(std::uint32_t layer, const LoggedOrder& order) {
  const json record = {{"layer", layer}, {"order", order.rule}, {"xxh3", ToHex(order.xxh3)}};
  orders_[layer] = order;
  return log_->Append(record.dump());
}

const std::map<std::uint64_t, FinishedChunk>& InferenceLog::Finished(std::uint32_t layer) const {
  static const std::map<std::uint64_t, FinishedChunk> kNone;
  const auto found = finished_.find(layer);
  return found == finished_.end() ? kNone : found->second;
}

Status InferenceLog::Append(std::uint32_t layer, std::uint64_t chunk,
                            const FinishedChunk& finished) {
  finished_[layer][chunk] = finished;
  return log_->Append(EncodeFinished(layer, chunk, finished));
}

}  // namespace internal
}  // namespace rhizome
