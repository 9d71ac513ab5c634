#include "tools/verbs/change_marks.h"

#include <fmt/format.h>

#include <utility>

namespace rhizome {
namespace {

constexpr const char* kStore = "store";
constexpr const char* kAfter = "after";
constexpr const char* kAfterHash = "after_hash";
constexpr const char* kLast = "last";
constexpr const char* kLastHash = "last_hash";

/// Parses one of the two states of a mark. Returns false if it is malformed.
bool ReadState(const Json& json, const char* commit, const char* hash,
               std::optional<LeaderState>& state) {
  if (!json.contains(commit)) return true;
  const auto store = json.find(kStore);
  const auto number = json.find(commit);
  const auto digits = json.find(hash);
  const bool whole = store != json.end() && store->is_string() && number->is_number_unsigned() &&
                     digits != json.end() && digits->is_string();
  if (!whole) return false;
  const auto id = StoreId::Parse(store->get<std::string>());
  const auto commits = StoreId::Parse(digits->get<std::string>());
  if (!id || !commits) return false;
  state =
      LeaderState{.store = *id, .commit = number->get<std::uint64_t>(), .commits = commits->bytes};
  return true;
}

void AddState(const std::optional<LeaderState>& state, const char* commit, const char* hash,
              Json& json) {
  if (!state) return;
  json[kStore] = state->store.ToString();
  json[commit] = state->commit;
  json[hash] = StoreId{state->commits}.ToString();
}

std::string Words(const LeaderState& state) {
  return fmt::format("commit {} of store {} (hash {})", state.commit, state.store.ToString(),
                     StoreId{state.commits}.ToString());
}

}  // namespace

Json MarkJson(const ChangeMark& mark) {
  Json json = Json::object();
  AddState(mark.continues, kAfter, kAfterHash, json);
  AddState(mark.reaches, kLast, kLastHash, json);
  return json;
}

std::optional<ChangeMark> ParseMark(const Json& json) {
  ChangeMark mark;
  const bool read = json.is_object() && ReadState(json, kAfter, kAfterHash, mark.continues) &&
                    ReadState(json, kLast, kLastHash, mark.reaches);
  return read && (mark.continues || mark.reaches) ? std::optional(mark) : std::nullopt;
}

// A store that has not followed any leader may be a copy of the leader; its own history is compared
// then.
Status ChangeMarks::CheckContinues(const LeaderState& state) const {
  constexpr std::string_view kAnew =
      "the leader has diverged: it is another copy, or was restored from a backup and then written "
      "to; create this store again from the leader";
  if (known_ && known_->store == state.store) {
    if (*known_ == state) return Status::Ok();
    const std::string what =
        fmt::format("the changes start after {}, but this store has the changes up to {}",
                    Words(state), Words(*known_));
    return Status::InvalidArgument(
        known_->commit == state.commit
            ? fmt::format("{}: {}", what, kAnew)
            : fmt::format("{}: export them again with rhizome changes --after {}", what,
                          known_->commit));
  }
  const Store& store = graph_.store();
  if (store.id() != state.store) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const HistoryState own, store.StateAt(state.commit));
  if (!own.known() || own.commits == state.commits) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "the changes start after {}, but this copy of the store has the hash {} at that commit: {}",
      Words(state), StoreId{own.commits}.ToString(), kAnew));
}

Status ChangeMarks::Take(const ChangeMark& mark) {
  if (mark.continues) {
    if (open_) return Finish();
    RHIZOME_RETURN_IF_ERROR(CheckContinues(*mark.continues));
    open_ = mark.continues;
  }
  if (!mark.reaches) return Status::Ok();
  if (!open_ || open_->store != mark.reaches->store) {
    return Status::InvalidArgument(
        fmt::format("the first line of the changes up to {} is missing", Words(*mark.reaches)));
  }
  open_.reset();
  known_ = reached_ = mark.reaches;
  return Status::Ok();
}

Status ChangeMarks::Finish() const {
  if (!open_) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("the last line of the changes after {} is missing: the file was cut off, or "
                  "lines were removed; export it again",
                  Words(*open_)));
}

}  // namespace rhizome
