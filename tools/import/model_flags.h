#pragma once

#include "rhizome/model_spec.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Adds --model. When the verb is parsed or described (Session::late_options), also adds a flag for
/// each option of each model that librhizome_gnn provides (GnnEntry::Models), which requires
/// loading that library. `spec` must outlive `verb`.
void AddModelKindFlags(CLI::App& verb, ModelSpec& spec, Session& session);

}  // namespace rhizome
