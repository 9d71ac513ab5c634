#pragma once

#include <nlohmann/json.hpp>

namespace rhizome {

/// JSON type of answers. Keys keep their insertion order.
using Json = nlohmann::ordered_json;

}  // namespace rhizome
