#include "storage/section/json_value.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "storage/array/zarr_json.h"
#include "storage/section/untrusted_json.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

// Existing files were written by nlohmann's JSON library, and are compared with new ones byte by
// byte.
TEST(JsonValueTest, IsWrittenAsNlohmannsIs) {
  const std::string texts[] = {
      "{}",
      "[]",
      "null",
      R"({"b": [1, -2, {}], "a": {"z": [], "y": [[1], "t"]}, "c": true, "d": false, "e": null})",
      R"(["quote \" slash \\ / tab \t line \n \r \b \f bell \u0007 é \u20ac \u007f", ""])",
      R"([0, 18446744073709551615, -9223372036854775808, 4294967296])",
      R"({"twice": 1, "twice": {"last": 2}})",
      R"([1.5, -0.25, 1e300])",
  };
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    const auto theirs = nlohmann::json::parse(text);
    const auto ours = ParseJson(text);
    ASSERT_OK(ours);
    EXPECT_EQ(ParseJson(ours->Dump()).value(), *ours);
    if (text.find("e300") != text.npos) continue;  // floats can be written in several ways
    EXPECT_EQ(ours->Dump(), theirs.dump());
    EXPECT_EQ(ours->Dump(2), theirs.dump(2));
  }
}

TEST(JsonValueTest, WhatIsNoneIsRefused) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\" 1}", "nul", "1 2", "\"\\x\"", "\"\xff\"", "01"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(ParseJson(text));
  }
  EXPECT_TRUE(ParseJson(std::string(kMaxJsonNesting, '[') + std::string(kMaxJsonNesting, ']')));
  EXPECT_FALSE(ParseJson(std::string(1'000'000, '[') + std::string(1'000'000, ']')));
}

TEST(JsonValueTest, IsAskedForWhatItHolds) {
  const JsonValue json = JsonValue::Object()
                             .With("list", JsonValue::Array(1, -1, "text"))
                             .With("number", 3)
                             .With("half", 0.5)
                             .With("no", false);
  EXPECT_EQ(json.size(), 4U);
  EXPECT_EQ(ZarrAt(json, "/list/0"), JsonValue(1));
  EXPECT_EQ(ZarrAt(json, "/list/1").integer(), -1);
  EXPECT_EQ(ZarrAt(json, "/list/2").text(), "text");
  for (const char* nowhere : {"/list/3", "/list/x", "/list/", "/none", "/number/0", "/list/2/0"})
    EXPECT_TRUE(ZarrAt(json, nowhere).is_null()) << nowhere;
  EXPECT_EQ(json.Find("number")->number(), 3.0);
  EXPECT_EQ(JsonValue(3), JsonValue(3.0));
  EXPECT_NE(JsonValue(3), JsonValue(-3));
  EXPECT_NE(JsonValue(1), JsonValue(true));
  EXPECT_NE(JsonValue(0), JsonValue());
  // Reading a value as another kind returns the empty value and does not throw.
  EXPECT_EQ(json.unsigned_number(), 0U);
  EXPECT_EQ(json.text(), "");
  EXPECT_EQ(JsonValue("x").Find("x"), nullptr);
  EXPECT_EQ(JsonValue(std::numeric_limits<std::uint64_t>::max()).integer(),
            std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace rhizome
