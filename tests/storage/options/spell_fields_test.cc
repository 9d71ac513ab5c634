#include "storage/options/spell_fields.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "testing/testing.h"

namespace rhizome {
namespace {

/// Spells a mention as <name>, <name!> for a boolean, or <name:value>.
std::string Marked(const FieldMention& mention) {
  std::string text = "<" + std::string(mention.field.name);
  if (mention.field.is_boolean) text += '!';
  if (mention.value) text += ":" + std::string(*mention.value);
  return text + ">";
}

std::string Spelled(std::string_view message) { return SpellFields(message, Marked); }

TEST(SpellFieldsTest, FieldsAreReplaced) {
  EXPECT_EQ(Spelled("give more `memory_bytes`, or `layout=stored`"),
            "give more <memory_bytes>, or <layout:stored>");
  EXPECT_EQ(Spelled("`directions=both`, or with `undirected`"),
            "<directions:both>, or with <undirected!>");
  EXPECT_EQ(Spelled("`resume``resume`"), "<resume!><resume!>");
  EXPECT_EQ(Spelled("`input-dropout`"), "<input-dropout>");
}

TEST(SpellFieldsTest, ValuesAreAnyTextWithoutBackticks) {
  EXPECT_EQ(Spelled("`columns=src,dst,time`"), "<columns:src,dst,time>");
  EXPECT_EQ(Spelled("`init=a b=c.st`: it"), "<init:a b=c.st>: it");
  EXPECT_EQ(Spelled("`columns=`"), "<columns:>");
  EXPECT_EQ(Spelled("`init=a`b`"), "<init:a>b`");
}

TEST(SpellFieldsTest, OtherTextIsUnchanged) {
  for (const std::string_view text :
       {"", "`", "``", "```", "memory_bytes", "'memory_bytes'", "`memory_bytes", "memory_bytes`",
        "` memory_bytes`", "`memory_bytes `", "`memory`", "`Memory_bytes`", "`=3`", "`--memory`",
        "array `x y`", "`memory_bytes.x=3`", "`a.B`", "`a.b c`"})
    EXPECT_EQ(Spelled(text), text);
}

TEST(SpellFieldsTest, QuotedTextWithABacktickHidesNoField) {
  EXPECT_EQ(Spelled("array 'a`b': run without `resume`"), "array 'a`b': run without <resume!>");
  EXPECT_EQ(Spelled("array `odd` and `: `resume`"), "array `odd` and `: <resume!>");
}

TEST(SpellFieldsTest, APathIsLeftToTheSpeller) {
  EXPECT_EQ(Spelled("`learning.loss.class_weights` is bad"),
            "<learning.loss.class_weights> is bad");
  const auto none = [](const FieldMention&) { return std::optional<std::string>(); };
  EXPECT_EQ(SpellFields("`a.b` and `resume` stay", none), "`a.b` and `resume` stay");
}

TEST(SpellFieldsTest, TheResultOfTheSpellerIsNotReadAgain) {
  const auto spell = [](const FieldMention&) { return std::string("`epochs` `"); };
  EXPECT_EQ(SpellFields("`resume` and `seeds`", spell), "`epochs` ` and `epochs` `");
}

TEST(SpellFieldsTest, EveryFieldIsFound) {
  ASSERT_FALSE(OptionFields().empty());
  for (const OptionField& field : OptionFields()) {
    const std::string name(field.name);
    const std::string boolean = field.is_boolean ? "!" : "";
    EXPECT_EQ(Spelled("a `" + name + "` b"), "a <" + name + boolean + "> b");
    EXPECT_EQ(Spelled("`" + name + "=1`"), "<" + name + boolean + ":1>");
  }
}

// Messages of random pieces, each in or outside of backticks. The expected text follows from the
// list of pieces, without a search for backticks.
TEST(SpellFieldsTest, RandomMessagesAreSpelledByTheirPieces) {
  std::mt19937_64 random(testing::TestSeed());
  const auto below = [&](std::size_t bound) { return random() % bound; };
  const auto fields = OptionFields();
  const auto bytes = [&] {
    std::string text(below(6), '\0');
    for (char& c : text) {
      c = static_cast<char>(below(256));
      // No backtick, and no small letter: random text is no field.
      if (c == '`' || (c >= 'a' && c <= 'z')) c = '=';
    }
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    // The text before the first backtick, between the first and the second, and so on.
    std::vector<std::string> pieces(1 + below(12));
    std::vector<std::string> spelled(pieces.size());  // empty: not a mention
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i] = bytes();
      if (below(2) == 0) continue;
      FieldMention mention{.field = fields[below(fields.size())], .value = std::nullopt};
      const std::string value = bytes();
      pieces[i] = mention.field.name;
      if (below(2) == 0) {
        mention.value = value;
        pieces[i] += "=" + value;
      }
      spelled[i] = Marked(mention);
    }
    std::string message = pieces[0], expected = pieces[0];
    for (std::size_t i = 1; i < pieces.size(); ++i) message += "`" + pieces[i];
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      const bool closed = i + 1 < pieces.size();
      if (closed && !spelled[i].empty()) {
        expected += spelled[i] + pieces[i + 1];
        ++i;
      } else {
        expected += "`" + pieces[i];
      }
    }
    EXPECT_EQ(Spelled(message), expected) << message;
  }
}

// A quadratic search takes hours.
TEST(SpellFieldsTest, LongHostileMessages) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  const std::string backticks(kBytes, '`');
  EXPECT_EQ(Spelled(backticks), backticks);
  const std::string open = "`resume" + std::string(kBytes, 'e');
  EXPECT_EQ(Spelled(open), open);
  std::string names;
  while (names.size() < kBytes) names += "`resum`";
  EXPECT_EQ(Spelled(names), names);
}

}  // namespace
}  // namespace rhizome
