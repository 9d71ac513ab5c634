#pragma once

#include "gnn_bench.h"

namespace rhizome {

/// Loads librhizome_gnn_bench, as librhizome_gnn is loaded. Errors: kUnsupported, this build has no
/// libtorch, or it is not found; the message says how to get it.
Result<const GnnBench*> LoadGnnBench();

}  // namespace rhizome
