#include "rhizome/gnn/inference_log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "rhizome/gnn/safetensors.h"

namespace rhizome {
namespace {

using nlohmann::json;

constexpr std::uint32_t kMaxLayer = 64;

Status Corrupt(std::string_view what) {
  return Status::Corruption(fmt::format("inference log: {}; run without --resume", what));
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

}  // namespace

Result<std::unique_ptr<InferenceLog>> InferenceLog::Open(FileSystem& fs, const Path& path,
                                                         const std::string& description) {
  std::unique_ptr<InferenceLog> log(new InferenceLog());
  RHIZOME_ASSIGN_OR_RETURN(log->log_, JobLog::Open(fs, path));
  const std::vector<std::string>& records = log->log_->records();
  if (records.empty()) {
    RHIZOME_RETURN_IF_ERROR(log->log_->Append(description));
    return log;
  }
  if (records.front() != description) {
    return Fail(Status::InvalidArgument(
        fmt::format("what the earlier run left belongs to other settings, another model or another "
                    "snapshot; run without --resume to start over (there {}, now {})",
                    records.front(), description)));
  }
  for (std::size_t i = 1; i < records.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(log->ReadRecord(records[i]));
  }
  return log;
}

Status InferenceLog::ReadRecord(const std::string& record) {
  const json object = json::parse(record, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Corrupt("a record is not a JSON object");
  if (object.contains("order")) return ReadOrder(record);
  const auto layer = Number(object, "layer");
  const auto chunk = Number(object, "chunk");
  const auto path = Text(object, "path");
  const auto size = Number(object, "size");
  const auto hash = Text(object, "xxh3");
  const auto crc = Number(object, "crc32c");
  FinishedChunk finished;
  const bool counted = ReadCounts(object, "correct", finished.accuracy.correct) &&
                       ReadCounts(object, "total", finished.accuracy.total);
  if (!layer || !chunk || !path || !size || !hash || !crc || !counted || *layer > kMaxLayer) {
    return Corrupt("a record lacks a field");
  }
  const auto parsed = ParseHash(*hash);
  if (!parsed) return Corrupt("a record's hash is malformed");
  finished.file = {.path = *path,
                   .size_bytes = *size,
                   .xxh3 = *parsed,
                   .crc32c = static_cast<std::uint32_t>(*crc)};
  finished_[static_cast<std::uint32_t>(*layer)][*chunk] = std::move(finished);
  return Status::Ok();
}

Status InferenceLog::ReadOrder(const std::string& record) {
  const json object = json::parse(record, nullptr, /*allow_exceptions=*/false);
  const auto layer = Number(object, "layer");
  const auto rule = Text(object, "order");
  const auto hash = Text(object, "xxh3");
  if (!layer || !rule || !hash || *layer > kMaxLayer) return Corrupt("a record lacks a field");
  const auto parsed = ParseHash(*hash);
  if (!parsed) return Corrupt("a record's hash is malformed");
  orders_[static_cast<std::uint32_t>(*layer)] = {.rule = *rule, .xxh3 = *parsed};
  return Status::Ok();
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
  const json record = {{"layer", layer},
                       {"chunk", chunk},
                       {"path", finished.file.path},
                       {"size", finished.file.size_bytes},
                       {"xxh3", ToHex(finished.file.xxh3)},
                       {"crc32c", finished.file.crc32c},
                       {"correct", finished.accuracy.correct},
                       {"total", finished.accuracy.total}};
  finished_[layer][chunk] = finished;
  return log_->Append(record.dump());
}

}  // namespace rhizome
