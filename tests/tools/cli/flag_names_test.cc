#include "tools/cli/flag_names.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "storage/options/spell_fields.h"
#include "tools/cli/help.h"

namespace rhizome {
namespace {

std::string Spelled(std::string_view message) { return SpellFlags(message, nullptr); }

TEST(FlagNamesTest, AFieldIsAFlagWithDashes) {
  EXPECT_EQ(Spelled("with `directions=both`, or with `undirected`"),
            "with --directions both, or with --undirected");
  EXPECT_EQ(Spelled("`node_columns` and `input-dropout`"), "--node-columns and --input-dropout");
  EXPECT_EQ(Spelled("`resume=false`"), "--resume=false");
}

TEST(FlagNamesTest, SomeFlagsHaveOtherNames) {
  EXPECT_EQ(Spelled("`memory_bytes` `learning_rate=0` `fanouts=10,10` `eval_fanouts=all`"),
            "--memory --lr 0 --fanout 10,10 --eval-fanout all");
  EXPECT_EQ(Spelled("`typed_fanouts` `neighbor_cache_bytes` `device_memory_bytes` `remote_bytes`"),
            "--typed-fanout --neighbor-cache --device-memory --remote-memory");
}

TEST(FlagNamesTest, SomeValuesHaveOtherFlags) {
  EXPECT_EQ(Spelled("`test=false`"), "--no-test");
  EXPECT_EQ(Spelled("`edge_weights=false` `edge_weights=true` `edge_weights`"),
            "--edge-weights ignore --edge-weights use --edge-weights");
  EXPECT_EQ(Spelled("`triplets=false` or `triplets=true`; `dim`"),
            "--array NAME=FILE or --array NAME=FILE:coo:DIM; --array NAME=FILE:coo:DIM");
}

TEST(FlagNamesTest, PathsOfTheTableAreFlags) {
  EXPECT_EQ(Spelled("`learning.schedule.factor` is 2, `ranks.prefetch.policy` lru, `a.b`"),
            "--decay-factor is 2, --prefetch lru, `a.b`");
  EXPECT_EQ(SpellPaths("`learning.schedule.factor` is 2, `memory_bytes`, `a.b`"),
            "`decay_factor` is 2, `memory_bytes`, `a.b`");
}

TEST(FlagNamesTest, SettingsAreSpelledAsTheyAreGiven) {
  CLI::App verb;
  UseHelpFormat(verb);
  std::string text;
  bool flag = false;
  for (const char* const name : {"--memory", "--direction", "--superbatch", "--edge-weights"})
    verb.add_option(name, text);
  verb.add_flag("--disjoint", flag);
  ArrangeOptions(verb, {"memory"}, {});
  EXPECT_EQ(SpellFlags("`memory_bytes` `direction=both` `superbatch` `disjoint`", &verb),
            "--memory --set direction=both --set superbatch=VALUE --set disjoint=true");
  EXPECT_EQ(SpellFlags("`edge_weights=false`", &verb), "--set edge-weights=ignore");
  // Another verb has it.
  EXPECT_EQ(SpellFlags("`directions=both`", &verb), "--directions both");
}

TEST(FlagNamesTest, OtherTextIsUnchanged) {
  for (const std::string_view text : {"array 'memory_bytes'", "`memory`", "a ` b", "--memory"})
    EXPECT_EQ(Spelled(text), text);
}

TEST(FlagNamesTest, NoFieldKeepsItsUnderscores) {
  for (const OptionField& field : OptionFields()) {
    const std::string flag = Spelled("`" + std::string(field.name) + "`");
    EXPECT_EQ(flag.substr(0, 2), "--") << field.name;
    EXPECT_EQ(flag.find_first_of("_`"), std::string::npos) << flag;
  }
}

}  // namespace
}  // namespace rhizome
