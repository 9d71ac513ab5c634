#pragma once

#include "rhizome/gnn/entry.h"
#include "rhizome/gnn/link_scores.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Loads librhizome_gnn, which brings libtorch, at most once in a process: from beside the binary,
/// from ../lib, or from where the system's loader finds it. The binary itself links neither.
/// Errors: kUnsupported, it is not installed or does not fit; the message says how to get it.
Result<const GnnEntry*> LoadGnnLibrary();

/// The same for scores of links.
Result<const LinkScores*> LoadLinkScores();

}  // namespace rhizome
