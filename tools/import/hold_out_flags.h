#pragma once

#include "rhizome/ingest.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Adds --hold-out, --hold-out-by and --inverse. `options` must outlive `verb`.
void AddHoldOutFlags(CLI::App& verb, HoldOutOptions& options);

/// Returns whether any of the flags is given.
bool HasHoldOutFlags(const HoldOutOptions& options);

/// Returns the field `held_out` of the answer, and describes it, a line a set; "" without one.
Json HeldOutJson(const IngestReport& report);
std::string DescribeHeldOut(const Json& held_out);

}  // namespace rhizome
