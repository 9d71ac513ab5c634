#pragma once

#include <string_view>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// Returns the id of the build of librhizome: its version, the compiler, and the options on which
/// the layout of its types depends. Libraries that share its classes, as librhizome_gnn does, must
/// be of the same build. Threads: any.
std::string_view BuildId();

}  // namespace rhizome
