#include "tools/cli/value_type.h"

#include <gtest/gtest.h>

namespace rhizome {
namespace {

class ValueTypeTest : public ::testing::Test {
 protected:
  /// Returns the type of an option with this type name.
  ValueType TypeOf(const std::string& type_name, const std::string& fallback = "") {
    CLI::Option* const option = verb_.add_option("--option-" + std::to_string(++options_), value_);
    return ValueTypeOf(*option->type_name(type_name)->default_str(fallback));
  }

  CLI::App verb_;
  std::string value_;
  int options_ = 0;
};

TEST_F(ValueTypeTest, KnowsKindsByTheirTypeNames) {
  for (const auto& [name, kind] :
       std::initializer_list<std::pair<const char*, const char*>>{{"N", "integer"},
                                                                  {"[N]", "integer"},
                                                                  {"X", "number"},
                                                                  {"SIZE", "size"},
                                                                  {"F.json", "path"},
                                                                  {"DIR", "path"},
                                                                  {"NAME", "text"},
                                                                  {"NAME:K", "text"},
                                                                  {"BITS[,TIME]", "text"},
                                                                  {"TYPE:N,N,...;...", "text"}}) {
    const ValueType type = TypeOf(name);
    EXPECT_EQ(type.kind, kind) << name;
    EXPECT_FALSE(type.list) << name;
    EXPECT_TRUE(type.choices.empty()) << name;
  }
}

TEST_F(ValueTypeTest, KnowsListsByTheirDots) {
  for (const auto& [name, kind] : std::initializer_list<std::pair<const char*, const char*>>{
           {"N,...", "integer"}, {"N,N,...", "integer"}, {"TYPE,TYPE,...", "text"}}) {
    EXPECT_EQ(TypeOf(name).kind, kind) << name;
    EXPECT_TRUE(TypeOf(name).list) << name;
  }
}

TEST_F(ValueTypeTest, SeparatesChoicesFromOtherValues) {
  const std::vector<std::string> all = {"all"};
  for (const char* const name : {"N,N,...|all", "all|N,N,..."}) {
    EXPECT_EQ(TypeOf(name).kind, "integer") << name;
    EXPECT_TRUE(TypeOf(name).list) << name;
    EXPECT_EQ(TypeOf(name).choices, all) << name;
  }
  EXPECT_EQ(TypeOf("edgecut|owner|F").kind, "path");
  EXPECT_EQ(TypeOf("edgecut|owner|F").choices, (std::vector<std::string>{"edgecut", "owner"}));
  EXPECT_EQ(TypeOf("s3fifo|lru-live|none", "none").kind, "choice");
  EXPECT_EQ(TypeOf("s3fifo|lru-live|none").choices.size(), 3U);
}

TEST_F(ValueTypeTest, AcceptsTextBesideChoicesIfTheDefaultIsNone) {
  const ValueType codec = TypeOf("raw|zstd|blosc-lz4", "blosc-lz4:5");
  EXPECT_EQ(codec.kind, "text");
  EXPECT_EQ(codec.choices.size(), 3U);
}

TEST_F(ValueTypeTest, IgnoresChecksThatCli11AppendsToTypeNames) {
  int number = 0;
  double share = 0;
  EXPECT_EQ(ValueTypeOf(*verb_.add_option("--number", number)->check(CLI::Range(1, 9))).kind,
            "integer");
  EXPECT_EQ(ValueTypeOf(*verb_.add_option("--share", share)->check(CLI::Range(0.0, 1.0))).kind,
            "number");
  CLI::Option* const choice =
      verb_.add_option("--choice", value_)->check(CLI::IsMember({"a", "b"}));
  EXPECT_EQ(ValueTypeOf(*choice->type_name("a|b")).choices, (std::vector<std::string>{"a", "b"}));
}

TEST_F(ValueTypeTest, KnowsFlags) {
  bool flag = false;
  EXPECT_EQ(ValueTypeOf(*verb_.add_flag("--flag", flag)).kind, "flag");
  EXPECT_EQ(ValueTypeOf(*verb_.add_flag("!--no-flag", flag)).kind, "flag");
}

}  // namespace
}  // namespace rhizome
