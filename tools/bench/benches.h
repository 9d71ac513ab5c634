#pragma once

#include <span>

#include "tools/bench/harness/verb_bench.h"

namespace rhizome {

/// Returns the table of benches, in the order of `rhizome bench --help`.
std::span<const Bench> AllBenches();

}  // namespace rhizome
