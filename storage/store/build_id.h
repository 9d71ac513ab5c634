#pragma once

#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Returns the id of the build of librhizome: its version, the compiler, and the options that
/// affect the layout of its types. Libraries that share its classes, such as librhizome_gnn, must
/// be from the same build. Threads: any.
std::string_view BuildId();

}  // namespace rhizome
