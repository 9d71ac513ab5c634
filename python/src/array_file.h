#pragma once

#include <string>
#include <string_view>

#include "core.h"
#include "rhizome/ingest.h"

namespace rhizome::python {

/// Returns an array file for the engine. `source` is a path, or a matrix [rows, dim] whose element
/// type is named by `dtype`; the caller keeps it alive while the job runs. Throws TypeError.
ArrayFile FileArrayOf(const std::string& name, nb::handle source, const std::string& dtype);

/// Parses "row" or "chunk". Throws ValueError.
ArrayLayout LayoutOf(std::string_view name);

}  // namespace rhizome::python
