#pragma once

#include <cstdint>
#include <string>

namespace rhizome::testing {

/// Prints a count of the running test for tests/RELIABILITY.md. If RHIZOME_COUNTS is set, also
/// writes it to that folder, for tests/reliability/harness/counts_table.sh. Call once for each name
/// and test. Skipped tests are written there, too, with the reason.
void PrintCount(const std::string& what, std::uint64_t count);

}  // namespace rhizome::testing
