#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/store.h"

namespace RHIZOME_API rhizome {

/// The sizes of a store's partition files, by groups of sections. Reads only the ends and tables of
/// the files.
class TopologySections {
 public:
  /// Errors: kCorruption; kIoError.
  static Result<TopologySections> Read(const Store& store);

  /// Returns the bytes of a group; 0 if there is no group with that name.
  std::uint64_t Group(std::string_view name) const;

  /// Returns names and bytes of all groups, in the order in which `info` prints them.
  const std::vector<std::pair<std::string, std::uint64_t>>& groups() const { return groups_; }

  /// Returns "none" or "elias-fano".
  const std::string& codec() const { return codec_; }

 private:
  TopologySections() = default;
  std::vector<std::pair<std::string, std::uint64_t>> groups_;
  std::string codec_;
};

/// The largest over the smallest load of a store's partitions: 1 if there is nothing to divide,
/// infinite if a partition is empty. Vertices without edges count in the partition that owns them.
struct MaxOverMinLoad {
  double vertices = 1;
  double edges = 1;
};

/// Reads only headers.
/// Errors: kCorruption; kIoError.
Result<MaxOverMinLoad> MaxOverMinOf(const Store& store);

}  // namespace rhizome
