#include <fmt/format.h>

#include "rhizome/types.h"
#include "storage/store/diverged_states.h"

namespace rhizome {
namespace {

constexpr std::size_t kHexDigits = 2 * sizeof(Hash128);

}  // namespace

std::string StateId::ToString() const {
  if (!known()) return {};
  return StoreId{files}.ToString() + StoreId{commits}.ToString();
}

std::optional<StateId> StateId::Parse(std::string_view text) {
  if (text.empty()) return StateId{};
  if (text.size() != 2 * kHexDigits) return std::nullopt;
  const auto files = StoreId::Parse(text.substr(0, kHexDigits));
  const auto commits = StoreId::Parse(text.substr(kHexDigits));
  if (!files || !commits) return std::nullopt;
  return StateId{.files = files->bytes, .commits = commits->bytes};
}

Status DivergedStates(std::string_view ours, const StateId& our_state, std::string_view theirs,
                      const StateId& their_state, std::string_view remedy) {
  const bool commits = our_state.commits != their_state.commits;
  const auto hash = [&](const StateId& state) {
    return StoreId{commits ? state.commits : state.files}.ToString();
  };
  return Status::InvalidArgument(fmt::format(
      "{} and {} have the same number of commits, but are copies of one store that have diverged: "
      "the {} of the first have the hash {}, the second has {}; {}",
      ours, theirs, commits ? "commits" : "files", hash(our_state), hash(their_state), remedy));
}

}  // namespace rhizome
