#include "cache/layout/pass_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "storage/base/mix.h"
#include "storage/base/name_table.h"

namespace rhizome {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

constexpr NameTable<TargetOrder, 5> kTargetNames = {{
    {TargetOrder::kStored, "stored"},
    {TargetOrder::kNatural, "natural"},
    {TargetOrder::kRandom, "random"},
    {TargetOrder::kPds, "pds"},
    {TargetOrder::kBfs, "bfs"},
}};

constexpr NameTable<RowRule, 9> kRowNames = {{
    {RowRule::kStored, "stored"},
    {RowRule::kNatural, "natural"},
    {RowRule::kRandom, "random"},
    {RowRule::kPds, "pds"},
    {RowRule::kBfs, "bfs"},
    {RowRule::kFirstUse, "first-use"},
    {RowRule::kReferences, "references"},
    {RowRule::kBlockCount, "block-count"},
    {RowRule::kBlocks, "blocks"},
}};

RowRule RowRuleOf(TargetOrder order) {
  return order == TargetOrder::kNatural  ? RowRule::kNatural
         : order == TargetOrder::kRandom ? RowRule::kRandom
         : order == TargetOrder::kPds    ? RowRule::kPds
         : order == TargetOrder::kBfs    ? RowRule::kBfs
                                         : RowRule::kStored;
}

/// Returns the target order of the same name, for a row rule that does not depend on the targets.
TargetOrder OrderOf(RowRule rule) {
  return rule == RowRule::kNatural  ? TargetOrder::kNatural
         : rule == RowRule::kRandom ? TargetOrder::kRandom
         : rule == RowRule::kPds    ? TargetOrder::kPds
         : rule == RowRule::kBfs    ? TargetOrder::kBfs
                                    : TargetOrder::kStored;
}

using Locals = std::vector<LocalRow>;

Locals AllLocals(const PassLists& lists) {
  Locals locals(lists.rows.size());
  std::iota(locals.begin(), locals.end(), LocalRow{0});
  return locals;
}

template <typename Key>
Locals SortedBy(const PassLists& lists, Key key) {
  Locals locals = AllLocals(lists);
  std::sort(locals.begin(), locals.end(), [&](LocalRow a, LocalRow b) { return key(a) < key(b); });
  return locals;
}

/// Sorts local rows by a rule that does not depend on the target order.
Locals SortRows(const PassLists& lists, RowRule rule, std::uint64_t seed) {
  const auto vertex = [&](LocalRow row) { return lists.vertices[row]; };
  if (rule == RowRule::kNatural) return SortedBy(lists, vertex);
  if (rule == RowRule::kRandom) {
    const std::uint64_t key = Mix64(seed);
    return SortedBy(
        lists, [&](LocalRow row) { return Mix64(key ^ static_cast<std::uint64_t>(vertex(row))); });
  }
  if (rule == RowRule::kPds) {
    return SortedBy(lists, [&](LocalRow row) {
      return std::tuple(lists.owners[row], ~lists.degrees[row], vertex(row));
    });
  }
  return AllLocals(lists);
}

/// Returns, for each local row, the index of the target that computes it, or kNone if the row is
/// only read.
std::vector<std::uint32_t> TargetOf(const PassLists& lists) {
  std::vector<std::uint32_t> target_of(lists.rows.size(), kNone);
  for (std::size_t t = 0; t < lists.targets.size(); ++t) {
    target_of[lists.targets[t]] = static_cast<std::uint32_t>(t);
  }
  return target_of;
}

/// Orders rows breadth first, from each target to the rows that it reads. Each tree is rooted at
/// the first target, by vertex id, that has not been reached yet.
Locals BreadthFirst(const PassLists& lists) {
  const std::vector<std::uint32_t> target_of = TargetOf(lists);
  std::vector<bool> seen(lists.rows.size(), false);
  Locals order;
  order.reserve(lists.rows.size());
  const auto visit = [&](LocalRow row) {
    if (!seen[row]) order.push_back(row);
    seen[row] = true;
  };
  std::size_t next = 0;
  for (const LocalRow root : SortRows(lists, RowRule::kNatural, 0)) {
    if (target_of[root] == kNone) continue;
    visit(root);
    for (; next < order.size(); ++next) {
      const std::uint32_t target = target_of[order[next]];
      if (target == kNone) continue;
      for (const LocalRow row : lists.ReadsOf(target)) visit(row);
    }
  }
  return order;
}

/// Calls use(local row, position of the target in `order`) for every use of a row.
template <typename Use>
void ForEachUse(const PassLists& lists, const std::vector<std::uint32_t>& order, Use use) {
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::uint32_t target = order[place];
    use(lists.targets[target], place);
    for (const LocalRow row : lists.ReadsOf(target)) use(row, place);
  }
}

Locals FirstUse(const PassLists& lists, const std::vector<std::uint32_t>& order) {
  std::vector<bool> seen(lists.rows.size(), false);
  Locals rows;
  rows.reserve(lists.rows.size());
  ForEachUse(lists, order, [&](LocalRow row, std::size_t) {
    if (!seen[row]) rows.push_back(row);
    seen[row] = true;
  });
  return rows;
}

/// Sorts rows by `uses` in descending order; ties by first use.
Locals ByUses(const PassLists& lists, const std::vector<std::uint32_t>& order,
              const std::vector<std::uint32_t>& uses) {
  Locals rows = FirstUse(lists, order);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](LocalRow a, LocalRow b) { return uses[a] > uses[b]; });
  return rows;
}

Locals ByReferences(const PassLists& lists, const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> uses(lists.rows.size(), 0);
  ForEachUse(lists, order, [&](LocalRow row, std::size_t) { ++uses[row]; });
  return ByUses(lists, order, uses);
}

/// For each local row, the blocks that read it.
struct BlocksOfRows {
  std::vector<std::uint64_t> offsets;  // [locals + 1]
  std::vector<std::uint32_t> blocks;   // distinct within a row

  std::span<const std::uint32_t> Of(LocalRow row) const {
    return std::span(blocks).subspan(offsets[row], offsets[row + std::size_t{1}] - offsets[row]);
  }
};

/// Calls use(local row, block) once for each pair of a block and a row that it reads, block by
/// block.
template <typename Use>
void ForEachBlock(const PassLists& lists, const std::vector<std::uint32_t>& order,
                  std::uint64_t block_rows, Use use) {
  std::vector<std::uint32_t> last(lists.rows.size(), kNone);
  ForEachUse(lists, order, [&](LocalRow row, std::size_t place) {
    const auto block = static_cast<std::uint32_t>(place / block_rows);
    if (last[row] == block) return;
    last[row] = block;
    use(row, block);
  });
}

Locals ByBlockCount(const PassLists& lists, const std::vector<std::uint32_t>& order,
                    std::uint64_t block_rows) {
  std::vector<std::uint32_t> blocks(lists.rows.size(), 0);
  ForEachBlock(lists, order, block_rows, [&](LocalRow row, std::uint32_t) { ++blocks[row]; });
  return ByUses(lists, order, blocks);
}

/// Returns the blocks of each row in ascending order, after renumbering the blocks so that those
/// reading the fewest rows come first.
BlocksOfRows RarestFirst(const PassLists& lists, const std::vector<std::uint32_t>& order,
                         std::uint64_t block_rows) {
  std::vector<std::uint64_t> rows_of((order.size() + block_rows - 1) / block_rows, 0);
  BlocksOfRows found;
  found.offsets.assign(lists.rows.size() + 1, 0);
  ForEachBlock(lists, order, block_rows, [&](LocalRow row, std::uint32_t block) {
    ++rows_of[block];
    ++found.offsets[row + std::size_t{1}];
  });
  std::partial_sum(found.offsets.begin(), found.offsets.end(), found.offsets.begin());
  std::vector<std::uint32_t> by_size(rows_of.size());
  std::iota(by_size.begin(), by_size.end(), 0U);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return rows_of[a] < rows_of[b]; });
  std::vector<std::uint32_t> rank(by_size.size());
  for (std::uint32_t i = 0; i < by_size.size(); ++i) rank[by_size[i]] = i;
  found.blocks.resize(found.offsets.back());
  std::vector<std::uint64_t> next(found.offsets.begin(), found.offsets.end() - 1);
  ForEachBlock(lists, order, block_rows,
               [&](LocalRow row, std::uint32_t block) { found.blocks[next[row]++] = rank[block]; });
  for (std::size_t row = 0; row < lists.rows.size(); ++row) {
    std::sort(found.blocks.begin() + static_cast<std::ptrdiff_t>(found.offsets[row]),
              found.blocks.begin() + static_cast<std::ptrdiff_t>(found.offsets[row + 1]));
  }
  return found;
}

// A chunk is read by every block that reads one of its rows, so rows that are read by the same
// blocks belong in the same chunk. Rows are sorted lexicographically by their blocks, the rarest
// block first: common blocks come last, where they separate no neighbours. Rows that are read by
// one block come after all others.
Locals ByBlocks(const PassLists& lists, const std::vector<std::uint32_t>& order,
                std::uint64_t block_rows) {
  const BlocksOfRows blocks = RarestFirst(lists, order, block_rows);
  Locals rows = FirstUse(lists, order);
  std::stable_sort(rows.begin(), rows.end(), [&](LocalRow a, LocalRow b) {
    const std::span<const std::uint32_t> of_a = blocks.Of(a);
    const std::span<const std::uint32_t> of_b = blocks.Of(b);
    const bool a_shared = of_a.size() > 1;
    const bool b_shared = of_b.size() > 1;
    if (a_shared != b_shared) return a_shared;
    return std::lexicographical_compare(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
  });
  return rows;
}

}  // namespace

std::string LayoutName(const LayoutRule& rule) {
  const std::string rows(NameOf(kRowNames, rule.rows));
  const std::string targets(NameOf(kTargetNames, rule.targets));
  return rows == targets ? rows : rows + "/" + targets;
}

std::optional<LayoutRule> ParseLayout(std::string_view name) {
  const std::size_t slash = name.find('/');
  const auto rows = KindOf(kRowNames, name.substr(0, slash));
  const auto targets =
      KindOf(kTargetNames, slash == std::string_view::npos ? name : name.substr(slash + 1));
  if (!rows || !targets) return std::nullopt;
  return LayoutRule{*rows, *targets};
}

std::vector<LayoutRule> CandidateLayouts() {
  std::vector<LayoutRule> rules = {{RowRule::kStored, TargetOrder::kStored},
                                   {RowRule::kNatural, TargetOrder::kNatural},
                                   {RowRule::kPds, TargetOrder::kPds},
                                   {RowRule::kBfs, TargetOrder::kBfs}};
  for (const TargetOrder targets :
       {TargetOrder::kStored, TargetOrder::kNatural, TargetOrder::kPds, TargetOrder::kBfs}) {
    for (const RowRule rows :
         {RowRule::kFirstUse, RowRule::kReferences, RowRule::kBlockCount, RowRule::kBlocks}) {
      rules.push_back({rows, targets});
    }
  }
  return rules;
}

// Lays out a pass: (1) orders the targets by the rule; (2) orders the rows, by an independent rule
// or by how the ordered targets use them; (3) inverts the row order into positions.
PassLayout LayOut(const PassLists& lists, const LayoutRule& rule, std::uint64_t block_rows,
                  std::uint64_t seed) {
  const auto sorted = [&](TargetOrder order) {
    return order == TargetOrder::kBfs      ? BreadthFirst(lists)
           : order == TargetOrder::kStored ? AllLocals(lists)
                                           : SortRows(lists, RowRuleOf(order), seed);
  };
  PassLayout layout;
  const std::vector<std::uint32_t> target_of = TargetOf(lists);
  const Locals by_target = sorted(rule.targets);
  for (const LocalRow row : by_target) {
    if (target_of[row] != kNone) layout.order.push_back(target_of[row]);
  }
  const auto placed = [&] {
    switch (rule.rows) {
      case RowRule::kFirstUse:
        return FirstUse(lists, layout.order);
      case RowRule::kReferences:
        return ByReferences(lists, layout.order);
      case RowRule::kBlockCount:
        return ByBlockCount(lists, layout.order, block_rows);
      case RowRule::kBlocks:
        return ByBlocks(lists, layout.order, block_rows);
      default:
        return sorted(OrderOf(rule.rows));
    }
  };
  const Locals rows = placed();
  layout.position.resize(lists.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    layout.position[rows[i]] = static_cast<std::uint32_t>(i);
  }
  return layout;
}

}  // namespace rhizome
