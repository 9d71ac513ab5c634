#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/index/graph.h"

namespace rhizome::inline internal {

/// Lists, in words, the properties of a graph's vertices and edges that the networks of this
/// library ignore: types, weights, edge attributes (times among them). Empty if nothing is ignored.
std::vector<std::string> IgnoredFacts(const GraphSnapshot& graph);

/// Tells `note` what is ignored, in a sentence, if there is anything and `note` is not empty.
void TellIgnored(const std::vector<std::string>& ignored,
                 const std::function<void(std::string_view)>& note);

}  // namespace rhizome::inline internal
