#pragma once

#include "rhizome/entry.h"
#include "rhizome/link_scores.h"
#include "rhizome/status.h"

namespace rhizome {

/// Loads librhizome_gnn and with it libtorch, to which the binary itself is not linked. Searches
/// the binary's folder, ../lib, the folder of the Python package rhizome_gnn next to the package
/// that contains the binary, and the search path of the dynamic loader. The library is loaded at
/// most once per process.
/// Errors: kUnsupported, the library is not installed or is of another build; the message says how
/// to install it.
Result<const GnnEntry*> LoadGnnLibrary();

/// Like LoadGnnLibrary, but returns the interface for link scores.
Result<const LinkScores*> LoadLinkScores();

}  // namespace rhizome
