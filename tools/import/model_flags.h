#pragma once

#include "rhizome/train_options.h"
#include "tools/cli/cli.h"
#include "tools/cli/option_flags.h"

namespace rhizome {

/// Adds the flags of a model. When the verb is parsed or described (Session::late_options), also
/// adds a flag for each option of each model that librhizome_gnn provides (GnnEntry::Models), which
/// requires loading that library. `spec` must outlive `verb`.
void AddModelFlags(OptionFlags& flags, CLI::App& verb, ModelSpec& spec, Session& session);

}  // namespace rhizome
