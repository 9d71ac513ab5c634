#pragma once

#include <cstdint>
#include <string>

namespace rhizome::testing {

/// Prints how much of something the running test has done, for tests/RELIABILITY.md, and leaves it
/// in the folder RHIZOME_COUNTS, if that is set, for tests/reliability/harness/counts_table.sh.
/// Once per name and test. What tests skip is left there, too, with the reason.
void PrintCount(const std::string& what, std::uint64_t count);

}  // namespace rhizome::testing
