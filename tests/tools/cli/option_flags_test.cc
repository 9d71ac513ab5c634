#include "tools/cli/option_flags.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "cache/feed/feed_fields.h"
#include "rhizome/sampler.h"
#include "testing/test_store.h"

// Tests of options made from rows of a table: each type of field, its default in help, and what is
// refused.

namespace rhizome {
namespace {

using ::testing::HasSubstr;

enum class Color : std::uint8_t { kRed, kGreen, kBlue };

struct Fields {
  bool flag = false;
  bool test = true;
  bool first = false;
  std::optional<bool> use = {};
  Color color = Color::kGreen;
  std::optional<Color> chosen = {};
  std::uint32_t count = 3;
  std::uint32_t ahead = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> limit = {};
  double share = 0.5;
  std::string name = "feat";
  Path file = {};
  std::vector<std::string> path = {};
  std::vector<std::int64_t> fanouts = {};
  std::vector<TypedFanouts> typed = {};
};

}  // namespace

template <>
struct ChoiceNames<Color> {
  static Choices<Color> Names() {
    return {{"red", Color::kRed}, {"green", Color::kGreen}, {"blue", Color::kBlue}};
  }
};

namespace {

class OptionFlagsTest : public ::testing::Test {
 protected:
  OptionFlagsTest() {
    table_(Option{"a.flag", "flag", "f"}, fields_.flag);
    table_(Option{"a.test", "no-test", "t"}, fields_.test);
    table_(Option{"a.first", "layers", "l"}.Words("all", "first"), fields_.first);
    table_(Option{"a.use", "use", "u"}.Words("ignore", "use").Absent("auto"), fields_.use);
    table_(Option{"b.color", "color", "c"}.Only("red|green"), fields_.color);
    table_(Option{"b.chosen", "chosen", "c"}.Absent("auto"), fields_.chosen);
    table_(Option{"b.count", "count", "n"}.In(1, 16), fields_.count);
    table_(Option{"b.ahead", "ahead", "n"}.In(1, 4294967295.0).Absent("auto"), fields_.ahead);
    table_(Option{"b.bytes", "bytes", "n"}.As(kSize), fields_.bytes);
    table_(Option{"b.limit", "limit", "n"}.As(kSize), fields_.limit);
    table_(Option{"bb.share", "share", "n"}.Above(0), fields_.share);
    table_(Option{"bb.name", "name", "n"}, fields_.name);
    table_(Option{"bb.file", "file", "n"}, fields_.file);
    table_(Option{"bb.path", "path", "n"}, fields_.path);
    table_(Option{"bb.fanouts", "fanout", "n"}.As(kFanouts), fields_.fanouts);
    table_(Option{"bb.typed", "typed", "n"}.As("T"), fields_.typed);
  }

  /// Parses the arguments; returns the error, empty if there is none.
  std::string Parse(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());
    verb_.clear();
    try {
      verb_.parse(arguments);
    } catch (const CLI::Error& error) {
      return error.what();
    }
    return "";
  }

  Fields fields_;
  CLI::App verb_;
  OptionFlags table_{verb_};
};

TEST_F(OptionFlagsTest, EveryTypeIsParsed) {
  EXPECT_EQ(
      Parse({"--flag",  "--no-test", "--layers", "first", "--use",   "use",
             "--color", "red",       "--chosen", "blue",  "--count", "16",
             "--ahead", "7",         "--bytes",  "2K",    "--limit", "1.5M",
             "--share", "1e-3",      "--name",   "x",     "--file",  "f/g",
             "--path",  "a,b",       "--fanout", "5,all", "--typed", "cites:3,all;default:1,2"}),
      "");
  EXPECT_TRUE(fields_.flag);
  EXPECT_FALSE(fields_.test);
  EXPECT_TRUE(fields_.first);
  EXPECT_EQ(fields_.use, true);
  EXPECT_EQ(fields_.color, Color::kRed);
  EXPECT_EQ(fields_.chosen, Color::kBlue);
  EXPECT_EQ(fields_.count, 16u);
  EXPECT_EQ(fields_.ahead, 7u);
  EXPECT_EQ(fields_.bytes, 2048u);
  EXPECT_EQ(fields_.limit, 1536u * 1024);
  EXPECT_EQ(fields_.share, 1e-3);
  EXPECT_EQ(fields_.name, "x");
  EXPECT_EQ(fields_.file, "f/g");
  EXPECT_EQ(fields_.path, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields_.fanouts, (std::vector<std::int64_t>{5, kAllNeighbors}));
  ASSERT_EQ(fields_.typed.size(), 2u);
  EXPECT_EQ(fields_.typed[1].type, "default");
  EXPECT_EQ(fields_.typed[0].fanouts, (std::vector<std::int64_t>{3, kAllNeighbors}));
}

TEST_F(OptionFlagsTest, TheWordForNoValueClearsAField) {
  fields_.use = false;
  fields_.chosen = Color::kRed;
  fields_.ahead = 5;
  EXPECT_EQ(Parse({"--use", "auto", "--chosen", "auto", "--ahead", "auto"}), "");
  EXPECT_EQ(fields_.use, std::nullopt);
  EXPECT_EQ(fields_.chosen, std::nullopt);
  EXPECT_EQ(fields_.ahead, 0u);
  EXPECT_EQ(Parse({"--use", "ignore"}), "");
  EXPECT_EQ(fields_.use, false);
}

TEST_F(OptionFlagsTest, WrongValuesAreRefusedByNameAndNothingIsSet) {
  for (const auto& [arguments, text] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--color", "blue"}, "--color: 'blue' is not one of red|green"},
           {{"--chosen", "pink"}, "--chosen: 'pink' is not one of red|green|blue|auto"},
           {{"--layers", "none"}, "'none' is not one of all|first"},
           {{"--count", "0"}, "--count: '0' is not a number that is in [1, 16]"},
           {{"--count", "17"}, "in [1, 16]"},
           {{"--count", "-1"}, "in [1, 16]"},
           {{"--count", "3x"}, "in [1, 16]"},
           {{"--count", "99999999999999999999"}, "in [1, 16]"},
           {{"--ahead", "0"}, "nor auto"},
           {{"--ahead", "4294967296"}, "nor auto"},
           {{"--bytes", "many"}, "'many' is not a size such as 512M or 4G"},
           {{"--limit", "-1"}, "is not a size"},
           {{"--share", "0"}, "--share: '0' is not a number that is above 0"},
           {{"--share", "nan"}, "above 0"},
           {{"--fanout", "5,,5"}, "is not all or a list such as 10,10"},
           {{"--typed", "cites"}, "is not a list such as"}}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(Parse(arguments), HasSubstr(text));
  }
  EXPECT_EQ(fields_.color, Color::kGreen);
  EXPECT_EQ(fields_.count, 3u);
  EXPECT_EQ(fields_.share, 0.5);
}

TEST_F(OptionFlagsTest, HelpShowsTheDefaultOfEachField) {
  const std::string help = verb_.help();
  for (const char* const text : {"--color red|green=green", "--chosen red|green|blue|auto=auto",
                                 "--count N=3", "--ahead N|auto=auto", "--share X=0.5",
                                 "--name NAME=feat", "--bytes SIZE ", "--layers all|first=all"})
    EXPECT_THAT(help, HasSubstr(text));
}

TEST_F(OptionFlagsTest, OptionsOfAGroupThatIsNotUsedAreRefused) {
  ASSERT_EQ(Parse({"--count", "4"}), "");
  EXPECT_TRUE(table_.Refuse("bb", "is for b").ok());
  EXPECT_TRUE(table_.Refuse("a", "is for a").ok());
  const Status status = table_.Refuse("b", "is for b");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "--count is for b");
}

}  // namespace
}  // namespace rhizome
