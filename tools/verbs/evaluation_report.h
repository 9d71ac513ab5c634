#pragma once

#include <string>

#include "rhizome/link_scores.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Returns the figures of an evaluation of links. `seconds`: of all of it.
Json EvaluationJson(const LinkEvaluation& found, double seconds);

/// Formats these figures as a table for people.
std::string RanksTable(const Json& evaluation);

}  // namespace rhizome
