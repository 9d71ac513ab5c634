#pragma once

#include <string>
#include <string_view>

#include "core.h"
#include "rhizome/index/ingest_options.h"

namespace rhizome::python {

/// An array for the engine. `source`: a path, or the values of an array [rows, dim], whose type is
/// called `dtype`, and which the caller keeps while the job runs. Throws TypeError.
ArrayFile FileArrayOf(const std::string& name, nb::handle source, const std::string& dtype);

/// Returns "row" or "chunk" as a layout. Throws ValueError.
ArrayLayout LayoutOf(std::string_view name);

}  // namespace rhizome::python
