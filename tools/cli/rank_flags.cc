#include "tools/cli/rank_flags.h"

#include <charconv>

#include "rhizome/transport.h"

namespace rhizome {
namespace {

/// Parses the N of --ranks N, the number of ranks that run as threads of this process.
std::uint32_t RanksIn(const std::string& text) {
  const std::uint32_t most = MaxLocalRanks();
  std::uint32_t ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc() || end != text.data() + text.size() || ranks == 0 || ranks > most)
    throw CLI::ValidationError(
        "--ranks", "'" + text + "' is not a number of ranks, from 1 to " + std::to_string(most) +
                       ": they are threads of this process, to try it, and mpirun starts more");
  return ranks;
}

}  // namespace

CLI::Option* AddPeerTimeout(CLI::App& verb, double& seconds) {
  return verb
      .add_option("--peer-timeout", seconds,
                  "Seconds after which a rank that says nothing counts as lost (computing is not "
                  "silence); while MPI starts at least 30")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
}

void AddRankFlags(CLI::App& verb, RankFlags& flags, const std::string& description) {
  verb.add_option_function<std::vector<std::string>>(
          "--ranks",
          [&flags](const std::vector<std::string>& given) {
            flags.ranked = true;
            if (!given.empty() && !given.front().empty()) flags.local = RanksIn(given.front());
          },
          description)
      ->expected(0, 1)
      ->type_name("[N]");
  AddPeerTimeout(verb, flags.peer_timeout_seconds);
}

}  // namespace rhizome
