#pragma once

#include <cstdint>

#include "cli.h"

namespace rhizome {

/// Flags of a verb that runs over ranks.
struct RankFlags {
  bool ranked = false;      ///< --ranks was given
  std::uint32_t local = 0;  ///< ranks as threads of this process; 0: those of the launcher
  double peer_timeout_seconds = 30;
};

/// Adds --ranks [N] and --peer-timeout. `description` is that of --ranks.
void AddRankFlags(CLI::App& verb, RankFlags& flags, const std::string& description);

/// Adds --peer-timeout.
CLI::Option* AddPeerTimeout(CLI::App& verb, double& seconds);

}  // namespace rhizome
