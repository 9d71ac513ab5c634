#pragma once

#include "rhizome/gnn/entry.h"
#include "rhizome/gnn/link_scores.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Loads librhizome_gnn, which brings libtorch, at most once in a process: from the binary's
/// folder, from ../lib, from the Python package rhizome_gnn beside that of the binary, or from
/// where the system's loader finds it. The binary itself links neither.
/// Errors: kUnsupported, it is not installed or does not match; the message says how to get it.
Result<const GnnEntry*> LoadGnnLibrary();

/// Does the same for link scores.
Result<const LinkScores*> LoadLinkScores();

}  // namespace rhizome
