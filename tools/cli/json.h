#pragma once

#include <nlohmann/json.hpp>

namespace rhizome {

/// The JSON type of answers. Keys keep the order in which they were added.
using Json = nlohmann::ordered_json;

}  // namespace rhizome
