#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/index/graph.h"

namespace rhizome::inline internal {

/// What a graph says of its vertices and edges that the networks of this library do not look at, in
/// words: types, weights, edge attributes (times among them). Empty where all is used.
std::vector<std::string> IgnoredFacts(const GraphSnapshot& graph);

/// Tells `note`, if there is one, in a sentence.
void TellIgnored(const std::vector<std::string>& ignored,
                 const std::function<void(std::string_view)>& note);

}  // namespace rhizome::inline internal
