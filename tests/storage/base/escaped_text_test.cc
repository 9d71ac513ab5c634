#include "storage/base/escaped_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/base/exceptions.h"
#include "storage/base/utf8.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

/// Encodes a code point in UTF-8.
std::string Utf8(std::uint32_t code) {
  const auto byte = [](std::uint32_t bits) { return static_cast<char>(bits); };
  const auto next = [&](int shift) { return byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), next(0)};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), next(6), next(0)};
  return {byte(0xF0 | code >> 18), next(12), next(6), next(0)};
}

TEST(ShownTextTest, ReadableTextIsUnchanged) {
  for (const char* text :
       {"", "plain ~ text", "größe 数 🙂 ❤️ é", "C:\\dir\\n", "\\u001b"})
    EXPECT_EQ(EscapedText(text), text);
}

TEST(ShownTextTest, ControlsAreEscaped) {
  EXPECT_EQ(EscapedText("\x1b]0;title\x07"), "\\u001b]0;title\\u0007");
  EXPECT_EQ(EscapedText("a\nb\rc\td\x7f"), "a\\nb\\rc\\td\\u007f");
  EXPECT_EQ(EscapedText(std::string("\0", 1)), "\\u0000");
  EXPECT_EQ(EscapedText("csi \xC2\x9B"), "csi \\u009b");
}

TEST(ShownTextTest, BytesThatAreNotUtf8AreEscapedOneByOne) {
  EXPECT_EQ(EscapedText("csi \x9b!"), "csi \\x9b!");
  EXPECT_EQ(EscapedText("cut \xE2\x82"), "cut \\xe2\\x82");
  EXPECT_EQ(EscapedText("long \xC0\xBC"), "long \\xc0\\xbc");
  EXPECT_EQ(EscapedText("surrogate \xED\xA0\x80"), "surrogate \\xed\\xa0\\x80");
  EXPECT_EQ(EscapedText("beyond \xF4\x90\x80\x80"), "beyond \\xf4\\x90\\x80\\x80");
}

TEST(ShownTextTest, CharactersThatReorderOrHideTextAreEscaped) {
  for (const std::uint32_t code : {0xADU, 0x61CU, 0x200BU, 0x200DU, 0x200EU, 0x200FU, 0x2028U,
                                   0x2029U, 0x202AU, 0x202EU, 0x2060U, 0x2066U, 0x2069U, 0xFEFFU}) {
    const std::string shown = EscapedText("a" + Utf8(code) + "b");
    EXPECT_EQ(shown.substr(0, 3), "a\\u") << code;
    EXPECT_EQ(std::stoul(shown.substr(3, 4), nullptr, 16), code);
    EXPECT_EQ(shown.substr(7), "b") << code;
  }
  EXPECT_EQ(EscapedText(Utf8(0xE0041)), "\\U000e0041");
}

// For any input bytes, the shown text contains no terminal control sequences, and showing it again
// does not change it.
TEST(ShownTextTest, EveryPairOfBytesBecomesHarmless) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      const std::string shown = EscapedText(text);
      ASSERT_TRUE(IsUtf8(shown)) << first << " " << second;
      ASSERT_EQ(EscapedText(shown), shown);
      for (const char c : shown) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
      ASSERT_EQ(shown.find("\xC2\x9B"), std::string::npos);
    }
  }
}

TEST(ShownTextTest, MessagesOfEveryStatusAreShown) {
  const std::string name = "a\x1b[2J\n\xE2\x80\xAE\x9b";
  const std::string shown = "a\\u001b[2J\\n\\u202e\\x9b";
  EXPECT_EQ(Status::NotFound("'" + name + "'").message(), "'" + shown + "'");
  EXPECT_EQ(Status::FromErrno(2, name).WithContext(name).message().find('\x1b'), std::string::npos);
  EXPECT_NE(CheckName("array", name).message().find(shown), std::string::npos);
  const Status thrown = Guarded([&]() -> Status { throw std::runtime_error("one\ntwo" + name); });
  EXPECT_EQ(thrown.message(), "unexpected: one twoa\\u001b[2J \\u202e\\x9b");
}

}  // namespace
}  // namespace rhizome
