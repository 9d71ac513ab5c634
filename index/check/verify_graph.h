#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "index/check/topology_check.h"
#include "rhizome/store.h"
#include "rhizome/verify.h"

namespace rhizome {
inline namespace internal {

/// Returns the message for a row of a home array that is not a valid home.
inline std::string WrongHome(std::uint64_t row, std::int32_t home, std::uint32_t homes) {
  return fmt::format("row {}: home {} is not in [0, {})", row, home, homes);
}

/// Second part of VerifyGraph, after topology, order and ids were checked: checks the delta and the
/// arrays. Adds all findings to `report`.
Status VerifyOpened(const Store& store, const TopologyFindings& topology, const JobControl& control,
                    VerifyReport& report);

}  // namespace internal
}  // namespace rhizome
