#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Returns name and version of each library that the process uses, for reports.
std::vector<std::pair<std::string, std::string>> LibraryVersions();

/// Returns the newest store format that this build reads; it is also the one that it writes.
std::uint64_t StoreFormatVersion();

}  // namespace rhizome
