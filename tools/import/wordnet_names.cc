#include "tools/import/wordnet_names.h"

#include <array>

#include "tools/import/wordnet.h"

namespace rhizome {
namespace {

// Indexed by the number of the lexicographer file; see lexnames(5WN).
constexpr std::array<std::string_view, 45> kLabelNames = {
    "adj.all",          "adj.pert",           "adv.all",
    "noun.Tops",        "noun.act",           "noun.animal",
    "noun.artifact",    "noun.attribute",     "noun.body",
    "noun.cognition",   "noun.communication", "noun.event",
    "noun.feeling",     "noun.food",          "noun.group",
    "noun.location",    "noun.motive",        "noun.object",
    "noun.person",      "noun.phenomenon",    "noun.plant",
    "noun.possession",  "noun.process",       "noun.quantity",
    "noun.relation",    "noun.shape",         "noun.state",
    "noun.substance",   "noun.time",          "verb.body",
    "verb.change",      "verb.cognition",     "verb.communication",
    "verb.competition", "verb.consumption",   "verb.contact",
    "verb.creation",    "verb.emotion",       "verb.motion",
    "verb.perception",  "verb.possession",    "verb.social",
    "verb.stative",     "verb.weather",       "adj.ppl"};

// Pointer symbols; see wninput(5WN). `\` is "pertainym" for adjectives and "derived from" for
// adverbs.
constexpr std::array<WordNetPointer, 26> kPointers = {{
    {"!", "antonym"},
    {"@", "hypernym"},
    {"@i", "instance_hypernym"},
    {"~", "hyponym"},
    {"~i", "instance_hyponym"},
    {"#m", "member_holonym"},
    {"#s", "substance_holonym"},
    {"#p", "part_holonym"},
    {"%m", "member_meronym"},
    {"%s", "substance_meronym"},
    {"%p", "part_meronym"},
    {"=", "attribute"},
    {"+", "derivationally_related"},
    {";c", "domain_topic"},
    {"-c", "member_topic"},
    {";r", "domain_region"},
    {"-r", "member_region"},
    {";u", "domain_usage"},
    {"-u", "member_usage"},
    {"*", "entailment"},
    {">", "cause"},
    {"^", "also_see"},
    {"$", "verb_group"},
    {"&", "similar_to"},
    {"<", "participle_of"},
    {"\\", "pertainym_or_derived_from_adjective"},
}};

}  // namespace

std::span<const std::string_view> WordNetLabelNames() { return kLabelNames; }
std::span<const WordNetPointer> WordNetPointers() { return kPointers; }

std::optional<std::size_t> WordNetFileOf(char letter) {
  switch (letter) {
    case 'n':
      return 0;
    case 'v':
      return 1;
    case 'a':
    case 's':
      return 2;
    case 'r':
      return 3;
    default:
      return std::nullopt;
  }
}

std::optional<TypeId> WordNetPointerType(std::string_view symbol) {
  for (std::size_t i = 0; i < kPointers.size(); ++i)
    if (kPointers[i].symbol == symbol) return static_cast<TypeId>(i);
  return std::nullopt;
}

}  // namespace rhizome
