#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "index/delta/graph_parts.h"
#include "index/delta/graph_texts.h"
#include "rhizome/status.h"
#include "rhizome/write_batch.h"

namespace rhizome {
inline namespace internal {

/// The texts of one batch: their codes in the graph before the batch, and new codes for texts that
/// the graph does not have.
/// Threads: one at a time.
/// Ownership: borrows all constructor arguments, and the texts of the batch.
class BatchTexts {
 public:
  BatchTexts(const Store& store, const GraphParts& parts, std::shared_ptr<const Delta> before,
             OpenDictionaries& dictionaries, DeltaRunBuilder& builder);

  /// Looks up all texts of the batch, in their order, so that each chunk of a dictionary is read
  /// once. Texts for other arrays than arrays of texts are ignored.
  /// Errors: errors of reading a dictionary.
  Status Find(const WriteBatch& batch);

  /// Returns the array of an edge attribute that holds texts; nullptr for any other attribute.
  const ArrayEntry* OfAttribute(std::size_t attribute) const { return of_attribute_[attribute]; }
  bool any_attribute() const { return any_attribute_; }

  /// Returns the code of a text in an array of texts; -1 for an empty text. A new text gets the
  /// next code, and is added to the builder.
  /// Errors: kInvalidArgument, the text is too long or not UTF-8, is a new class, or one too many;
  /// errors of reading the dictionary.
  Result<std::int64_t> CodeOf(const ArrayEntry& array, const std::string& text);

  /// Checks that a code has a text, or is -1. Errors: kInvalidArgument; as CodeOf.
  Status CheckCode(const ArrayEntry& array, std::int64_t code);

 private:
  /// A dictionary, with the texts that the batch looked up and added.
  struct Dictionary {
    TextsId id = 0;
    std::shared_ptr<const GraphTexts> before;
    std::unordered_map<std::string_view, std::optional<std::int64_t>> found;
    std::unordered_map<std::string_view, std::int64_t> added;

    std::uint64_t size() const { return before->size() + added.size(); }
  };
  Result<Dictionary*> Open(const ArrayEntry& array);
  Status CheckNew(const ArrayEntry& array, const Dictionary& dictionary,
                  const std::string& text) const;

  const Store& store_;
  const GraphParts& parts_;
  const std::shared_ptr<const Delta> before_;
  OpenDictionaries& dictionaries_;
  DeltaRunBuilder& builder_;
  std::vector<const ArrayEntry*> of_attribute_;
  bool any_attribute_ = false;
  std::unordered_map<const ArrayEntry*, Dictionary> open_;  // by an array of the manifest
};

}  // namespace internal
}  // namespace rhizome
