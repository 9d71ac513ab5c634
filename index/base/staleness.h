#pragma once

#include <string>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Returns the name "emb.v3.stale" of an array with one uint8 a vertex: 1 if a compaction carried
/// over a row of `array` whose inputs had changed. The array exists only while there is such a row.
std::string StaleName(std::string_view array);

}  // namespace rhizome
