#include "cache/full_graph/full_graph_plan.h"

#include "storage/base/name_table.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr NameTable<SpillKind, 7> kSpillNames = {{{SpillKind::kAuto, "auto"},
                                                  {SpillKind::kNone, "none"},
                                                  {SpillKind::kLru, "lru"},
                                                  {SpillKind::kLruLive, "lru-live"},
                                                  {SpillKind::kBelady, "belady"},
                                                  {SpillKind::kDp, "dp"},
                                                  {SpillKind::kDpTensor, "dp-tensor"}}};
constexpr NameTable<SumsRule, 3> kSumsNames = {
    {{SumsRule::kAuto, "auto"}, {SumsRule::kStore, "store"}, {SumsRule::kRecompute, "recompute"}}};

}  // namespace

std::string_view SpillName(SpillKind kind) { return NameOf(kSpillNames, kind); }
std::optional<SpillKind> ParseSpill(std::string_view name) { return KindOf(kSpillNames, name); }
std::string_view SumsRuleName(SumsRule rule) { return NameOf(kSumsNames, rule); }
std::optional<SumsRule> ParseSumsRule(std::string_view name) { return KindOf(kSumsNames, name); }

}  // namespace internal
}  // namespace rhizome
