#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// The bytes of a store's partition files, by groups of sections. Reads only the ends and tables of
/// the files.
class TopologySections {
 public:
  /// Errors: kCorruption; kIoError.
  static Result<TopologySections> Read(const Store& store);

  /// Returns the bytes of a group; 0 if there is no group of that name.
  std::uint64_t Group(std::string_view name) const;

  /// Returns {"offsets": bytes, ...} without groups of 0 bytes.
  nlohmann::ordered_json ToJson() const;

  /// Returns "none" or "elias-fano".
  const std::string& codec() const { return codec_; }

 private:
  TopologySections() = default;
  std::vector<std::pair<std::string, std::uint64_t>> groups_;
  std::string codec_;
};

/// Adds "vertex_max_over_min" and "edge_max_over_min", the largest partition of a store over the
/// smallest, or null if one is empty. Vertices without edges count in the partition that owns them.
/// Reads headers only. Errors: kCorruption; kIoError.
Status AddMaxOverMin(const Store& store, nlohmann::ordered_json& fields);

}  // namespace rhizome
