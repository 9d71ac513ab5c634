#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

// Messages of the library name an option by its field, in backticks: `memory_bytes`. A front end
// replaces these names by its own, such as --memory, before it shows a message.

/// An option that a message may name: a field of an option struct of any layer, without the groups
/// that it is nested in, or a name in ModelSpec::options.
struct OptionField {
  std::string_view name;
  bool is_boolean = false;  ///< a message that names it without a value means that it is set
};

/// Returns the fields that messages may name, sorted by name.
std::span<const OptionField> OptionFields();

/// A field as a message names it: `undirected`, with a value, `directions=both`, or by its path in
/// the options of a job, `learning.epochs`.
struct FieldMention {
  OptionField field;
  std::optional<std::string_view> value;  ///< may be empty, and may be text of the user
};

/// Returns the text that replaces a mention, backticks included; nullopt: it remains.
using FieldSpeller = std::function<std::optional<std::string>(const FieldMention& mention)>;

/// Returns `message` with each mention of a field of OptionFields, or of a path, in backticks
/// replaced by the result of `spell`. A path has lower-case letters, underscores and periods
/// between them; `spell` decides whether it is one. All other text is unchanged, including other
/// text in backticks, because messages quote names and paths of users. A mention ends at the next
/// backtick, so a value cannot contain one. Takes linear time for any message. Throws only what
/// `spell` throws.
std::string SpellFields(std::string_view message, const FieldSpeller& spell);

}  // namespace internal
}  // namespace rhizome
