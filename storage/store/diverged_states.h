#pragma once

#include <string_view>

#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {

/// Creates the error that two states with equal numbers differ (kInvalidArgument). `ours` and
/// `theirs` say what has these states, as in "'b.rz'" and "the checkpoint 'x'"; `remedy` says what
/// the caller can do.
Status DivergedStates(std::string_view ours, const StateId& our_state, std::string_view theirs,
                      const StateId& their_state, std::string_view remedy);

}  // namespace rhizome
