#include "storage/section/untrusted_json.h"

#include <gtest/gtest.h>

#include <string>

#include "storage/base/escaped_text.h"

namespace rhizome {
namespace {

std::string Nested(std::size_t depth, char open, char close) {
  return std::string(depth, open) + std::string(depth, close);
}

TEST(UntrustedJsonTest, IsRefusedWhereItIsNestedTooDeep) {
  EXPECT_TRUE(ParseUntrustedJson(Nested(kMaxJsonNesting, '[', ']')).is_array());
  EXPECT_TRUE(ParseUntrustedJson(Nested(kMaxJsonNesting + 1, '[', ']')).is_discarded());
  EXPECT_TRUE(ParseUntrustedJson(Nested(1'000'000, '[', ']')).is_discarded());
  EXPECT_TRUE(ParseUntrustedJson(std::string(1'000'000, '{')).is_discarded());
  EXPECT_TRUE(ParseUntrustedJson("{").is_discarded());
}

TEST(UntrustedJsonTest, IsRefusedWhereAKeyStandsTwice) {
  std::optional<std::string> repeated;
  EXPECT_TRUE(ParseUntrustedJson(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]})", &repeated)
                  .is_object());
  EXPECT_FALSE(repeated);
  EXPECT_TRUE(ParseUntrustedJson(R"({"x": [{"a": 1, "\u0061": 1}]})", &repeated).is_discarded());
  EXPECT_EQ(repeated, "a");
}

TEST(UntrustedJsonTest, BracketsInTextsAreNone) {
  EXPECT_EQ(ParseUntrustedJson("[\"" + std::string(100, '[') + "\\\"[\"]").size(), 1U);
  EXPECT_EQ(ParseUntrustedJson("{\"a\": [[], [], [[]]]}")["a"].size(), 3U);
}

TEST(ExcerptTest, EndsBetweenCharacters) {
  EXPECT_EQ(Excerpt("short"), "short");
  EXPECT_EQ(Excerpt("abcdef", 3), "abc ...");
  EXPECT_EQ(Excerpt("a\xC3\xA9z", 2), "a ...");
  EXPECT_EQ(Excerpt("\xC3\xA9", 2), "\xC3\xA9");
}

}  // namespace
}  // namespace rhizome
