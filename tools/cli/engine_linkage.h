#pragma once

#include <string_view>

#include "rhizome/status.h"

namespace rhizome {

/// Checks that this program can load `library`, which shares classes with librhizome. Errors:
/// kUnsupported, the engine is linked into the program, and the library would bring a second one.
Status CheckSharesEngine(std::string_view library);

}  // namespace rhizome
