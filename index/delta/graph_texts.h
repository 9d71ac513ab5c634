#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/delta/delta.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "storage/store/text_dictionary.h"

namespace rhizome {
inline namespace internal {

/// Returns the id of the dictionary of an array of the manifest that holds texts.
TextsId TextsIdOf(const Manifest& manifest, const ArrayEntry& array);

/// The texts of an array at a commit: the generation's dictionary, followed by the texts that
/// commits of the delta added.
/// Threads: any.
class GraphTexts {
 public:
  /// Opens the texts of an array of the store's manifest. Reads no text. Returns nullptr if the
  /// array holds no texts. Errors: as TextDictionary::Open; kCorruption, the texts of the delta do
  /// not continue the dictionary.
  static Result<std::shared_ptr<const GraphTexts>> Open(const Store& store, const ArrayEntry& array,
                                                        std::shared_ptr<const Delta> delta);

  /// As above, for a dictionary of the array that is open.
  static Result<std::shared_ptr<const GraphTexts>> Open(
      const Store& store, const ArrayEntry& array, std::shared_ptr<const Delta> delta,
      std::shared_ptr<const TextDictionary> dictionary);

  /// The number of texts, and how many of the last ones are not sorted.
  std::uint64_t size() const { return size_; }
  std::uint64_t added() const { return size_ - dictionary_->size() + dictionary_->added(); }

  /// As TextDictionary.
  Result<std::vector<std::string>> TextsOf(std::span<const std::int64_t> codes) const;
  Result<std::optional<std::int64_t>> CodeOf(std::string_view text) const;

 private:
  GraphTexts() = default;

  std::string name_;  // of the array, as users write it
  TextsId id_ = 0;
  std::shared_ptr<const TextDictionary> dictionary_;
  std::shared_ptr<const Delta> delta_;
  std::uint64_t size_ = 0;
};

/// The dictionaries of a store, opened at their first use, so that their chunks stay in memory.
/// Threads: one at a time.
class OpenDictionaries {
 public:
  /// Returns the dictionary of an array of texts. `store` must be the same in all calls since
  /// Clear. Errors: as TextDictionary::Open.
  Result<std::shared_ptr<const TextDictionary>> Of(const Store& store, const ArrayEntry& array);
  void Clear() { open_.clear(); }

 private:
  std::map<TextsId, std::shared_ptr<const TextDictionary>> open_;
};

}  // namespace internal
}  // namespace rhizome
