#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace rhizome {

/// Adds --scorer and --decoder, which choose how links are scored (LinkScoreOptions).
void AddDecoder(CLI::App& verb, std::string& scorer, std::string& decoder);

}  // namespace rhizome
