#pragma once

#include <cstdint>
#include <string>

namespace rhizome::testing {

/// Prints how much of something the running test has done, for tests/RELIABILITY.md, and writes it
/// to the folder RHIZOME_COUNTS, if that is set, for tests/reliability/harness/counts_table.sh.
/// Call once for each name and test. Skipped tests are written there too, with the reason.
void PrintCount(const std::string& what, std::uint64_t count);

}  // namespace rhizome::testing
