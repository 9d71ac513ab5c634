#pragma once

#include <cstdint>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome::testing {

/// The arrays "rows0", "rows1", ... that a live writer (live_writer.h) adds, one after each
/// kCommitsPerArray commits and before the next commit. Each has one row, for the vertex "root",
/// and all elements of "rows<k>" are k + 1.
constexpr std::uint64_t kCommitsPerArray = 5;

/// Adds array `number`. No other handle may have the store open for writing. Errors: any of
/// AddArray.
Status AddLiveArray(const Path& path, std::uint64_t number);

/// Returns the number of these arrays in the store. Errors: kCorruption, one in between is missing
/// or has other contents; any of opening and reading.
Result<std::uint64_t> CountLiveArrays(const Path& path);

}  // namespace rhizome::testing
