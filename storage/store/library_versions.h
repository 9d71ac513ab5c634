#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// Name and version of each library that the engine was loaded with, for reports.
std::vector<std::pair<std::string, std::string>> LibraryVersions();

/// The newest format of stores that this build reads and writes.
std::uint64_t StoreFormatVersion();

}  // namespace rhizome
