#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "rhizome/index/topology_check.h"
#include "rhizome/storage/store.h"
#include "rhizome/storage/verify.h"

namespace rhizome::inline internal {

/// The words for a row of an array of homes that is none of them.
inline std::string WrongHome(std::uint64_t row, std::int32_t home, std::uint32_t homes) {
  return fmt::format("row {}: home {} is not in [0, {})", row, home, homes);
}

/// Does the rest of VerifyGraph, after topology, order and ids were checked: checks the delta and
/// the arrays. Adds all findings to `report`.
Status VerifyOpened(const Store& store, const TopologyFindings& topology, const JobControl& control,
                    VerifyReport& report);

}  // namespace rhizome::inline internal
