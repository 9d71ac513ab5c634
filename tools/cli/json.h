#pragma once

#include <nlohmann/json.hpp>

namespace rhizome {

/// What answers are made of: keys keep the order in which they were written.
using Json = nlohmann::ordered_json;

}  // namespace rhizome
