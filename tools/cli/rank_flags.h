#pragma once

#include <cstdint>

#include "tools/cli/cli.h"

namespace rhizome {

/// Flags of a verb that runs on several ranks.
struct RankFlags {
  bool ranked = false;  ///< --ranks was given
  /// number of ranks that run as threads of this process; 0: the launcher starts the ranks
  std::uint32_t local = 0;
  double peer_timeout_seconds = 30;
};

/// Adds --ranks [N], with the given description, and --peer-timeout.
void AddRankFlags(CLI::App& verb, RankFlags& flags, const std::string& description);

/// Adds --peer-timeout.
CLI::Option* AddPeerTimeout(CLI::App& verb, double& seconds);

}  // namespace rhizome
