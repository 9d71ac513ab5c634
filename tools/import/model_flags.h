#pragma once

#include "cli.h"
#include "rhizome/gnn/model_spec.h"

namespace rhizome {

/// Adds --model and, when the verb is parsed, a flag for each option of each model that
/// librhizome_gnn knows (GnnEntry::Models): the library has to be loaded to know them. `spec` must
/// outlive `verb`.
void AddModelKindFlags(CLI::App& verb, ModelSpec& spec);

}  // namespace rhizome
