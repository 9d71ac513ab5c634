#include "cache/layout/pass_layout.h"

#include <map>
#include <numeric>
#include <tuple>

#include "cache/layout/pass_testing.h"
#include "testing/testing.h"

// Tests of row layouts of layer passes: every rule places each row and target once, and agrees with
// a naive implementation of its definition.

namespace rhizome {
namespace {

using testing::RandomPassLists;

std::vector<LayoutRule> AllRules() {
  std::vector<LayoutRule> rules;
  for (const TargetOrder targets : {TargetOrder::kStored, TargetOrder::kNatural,
                                    TargetOrder::kRandom, TargetOrder::kPds, TargetOrder::kBfs}) {
    for (const RowRule rows :
         {RowRule::kStored, RowRule::kNatural, RowRule::kRandom, RowRule::kPds, RowRule::kBfs,
          RowRule::kFirstUse, RowRule::kReferences, RowRule::kBlockCount, RowRule::kBlocks}) {
      rules.push_back({rows, targets});
    }
  }
  return rules;
}

bool IsPermutation(std::vector<std::uint32_t> values) {
  std::sort(values.begin(), values.end());
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    if (values[i] != i) return false;
  }
  return true;
}

/// Returns the local rows in the order of the layout.
std::vector<LocalRow> RowsInOrder(const PassLayout& layout) {
  std::vector<LocalRow> rows(layout.position.size());
  for (LocalRow row = 0; row < rows.size(); ++row) rows[layout.position[row]] = row;
  return rows;
}

/// The quantities that define the layout rules based on uses, computed naively.
struct Uses {
  std::map<LocalRow, std::uint64_t> references;
  std::map<LocalRow, std::set<std::uint64_t>> blocks;
  std::map<LocalRow, std::uint64_t> first;  // position in the sequence of all reads
  std::map<std::uint64_t, std::set<LocalRow>> rows_of_block;
};

Uses FindUses(const PassLists& lists, const std::vector<std::uint32_t>& order,
              std::uint64_t block_rows) {
  Uses uses;
  std::uint64_t time = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto use = [&](LocalRow row) {
      ++uses.references[row];
      uses.blocks[row].insert(i / block_rows);
      uses.rows_of_block[i / block_rows].insert(row);
      uses.first.emplace(row, time++);
    };
    use(lists.targets[order[i]]);
    for (const LocalRow row : lists.ReadsOf(order[i])) use(row);
  }
  return uses;
}

TEST(PassLayoutTest, NamesAreParsedBack) {
  for (const LayoutRule& rule : AllRules()) {
    const auto parsed = ParseLayout(LayoutName(rule));
    ASSERT_TRUE(parsed.has_value()) << LayoutName(rule);
    EXPECT_EQ(*parsed, rule);
  }
  EXPECT_EQ(LayoutName({RowRule::kPds, TargetOrder::kPds}), "pds");
  for (const char* name : {"", "pds/", "/pds", "blocks", "pds/blocks", "pds/pds/pds", "PDS"}) {
    EXPECT_FALSE(ParseLayout(name).has_value()) << name;
  }
}

TEST(PassLayoutTest, EveryRulePlacesEveryRowAndTargetOnce) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::size_t size : {0, 1, 2, 40, 300}) {
    const PassLists lists = RandomPassLists(random, size, 6);
    for (const LayoutRule& rule : AllRules()) {
      SCOPED_TRACE(LayoutName(rule));
      const PassLayout layout = LayOut(lists, rule, 8, 5);
      EXPECT_EQ(layout.order.size(), lists.targets.size());
      EXPECT_EQ(layout.position.size(), lists.rows.size());
      EXPECT_TRUE(IsPermutation(layout.order));
      EXPECT_TRUE(IsPermutation(layout.position));
    }
  }
}

TEST(PassLayoutTest, SortedRulesSortByTheirKeys) {
  std::mt19937_64 random(testing::TestSeed());
  const PassLists lists = RandomPassLists(random, 200, 6);
  const auto expect_sorted = [&](const LayoutRule& rule, auto key) {
    SCOPED_TRACE(LayoutName(rule));
    const PassLayout layout = LayOut(lists, rule, 8);
    const std::vector<LocalRow> rows = RowsInOrder(layout);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                               [&](LocalRow a, LocalRow b) { return key(a) < key(b); }));
    EXPECT_TRUE(std::is_sorted(layout.order.begin(), layout.order.end(),
                               [&](std::uint32_t a, std::uint32_t b) {
                                 return key(lists.targets[a]) < key(lists.targets[b]);
                               }));
  };
  expect_sorted({RowRule::kStored, TargetOrder::kStored}, [](LocalRow row) { return row; });
  expect_sorted({RowRule::kNatural, TargetOrder::kNatural},
                [&](LocalRow row) { return lists.vertices[row]; });
  expect_sorted({RowRule::kPds, TargetOrder::kPds}, [&](LocalRow row) {
    return std::tuple(lists.owners[row], -static_cast<int>(lists.degrees[row]),
                      lists.vertices[row]);
  });
}

TEST(PassLayoutTest, BreadthFirstVisitsNearRowsFirst) {
  // The targets are 0, 1, 2 and 4; 3 and 5 are only read. Breadth-first search from vertex 10 (row
  // 0) reaches 2 and 5, then row 1, which 2 reads.
  PassLists lists;
  lists.rows = {0, 1, 2, 3, 4, 5};
  lists.vertices = {10, 20, 30, 40, 50, 60};
  lists.owners.assign(6, 0);
  lists.degrees.assign(6, 1);
  lists.targets = {0, 1, 2, 4};
  lists.offsets = {0, 2, 2, 3, 4};
  lists.neighbors = {2, 5, 1, 3};
  const PassLayout layout = LayOut(lists, {RowRule::kBfs, TargetOrder::kBfs}, 2);
  EXPECT_EQ(RowsInOrder(layout), (std::vector<LocalRow>{0, 2, 5, 1, 4, 3}));
  EXPECT_EQ(layout.order, (std::vector<std::uint32_t>{0, 2, 1, 3}));
}

TEST(PassLayoutTest, RulesOfUsesEqualTheirDefinitions) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 20; ++round) {
    const PassLists lists = RandomPassLists(random, 1 + random() % 120, 5);
    const std::uint64_t block_rows = 1 + random() % 20;
    const auto targets = static_cast<TargetOrder>(random() % 5);
    const auto rows_by = [&](RowRule rule) {
      return RowsInOrder(LayOut(lists, {rule, targets}, block_rows));
    };
    const Uses uses =
        FindUses(lists, LayOut(lists, {RowRule::kStored, targets}, block_rows).order, block_rows);
    const auto expect = [&](RowRule rule, auto key) {
      std::vector<LocalRow> expected(lists.rows.size());
      std::iota(expected.begin(), expected.end(), LocalRow{0});
      std::sort(expected.begin(), expected.end(),
                [&](LocalRow a, LocalRow b) { return key(a) < key(b); });
      EXPECT_EQ(rows_by(rule), expected) << LayoutName({rule, targets});
    };
    expect(RowRule::kFirstUse, [&](LocalRow row) { return uses.first.at(row); });
    expect(RowRule::kReferences,
           [&](LocalRow row) { return std::tuple(~uses.references.at(row), uses.first.at(row)); });
    expect(RowRule::kBlockCount, [&](LocalRow row) {
      return std::tuple(~uses.blocks.at(row).size(), uses.first.at(row));
    });
    expect(RowRule::kBlocks, [&](LocalRow row) {
      std::vector<std::pair<std::size_t, std::uint64_t>> blocks;  // (rows that it reads, block)
      for (const std::uint64_t block : uses.blocks.at(row)) {
        blocks.emplace_back(uses.rows_of_block.at(block).size(), block);
      }
      std::sort(blocks.begin(), blocks.end());
      return std::tuple(blocks.size() == 1, blocks, uses.first.at(row));
    });
  }
}

}  // namespace
}  // namespace rhizome
