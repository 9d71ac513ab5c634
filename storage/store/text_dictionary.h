#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/status.h"
#include "rhizome/store.h"

namespace rhizome {
inline namespace internal {

/// The texts of an array of a generation (storage/FORMAT.md, "Texts"). They remain on disk: a
/// look-up of one text reads one chunk, about 256 KiB raw, and the last chunks are kept in memory.
/// Texts that updates added are not sorted: the first CodeOf that needs one reads all of them, and
/// keeps 16 bytes for each.
/// Threads: any.
/// Ownership: it holds a snapshot of the store, and so keeps the files of that state on disk; a
/// snapshot of a store that is open for writing also keeps its lock.
class TextDictionary {
 public:
  /// Opens the dictionary of an array of the store's manifest. Reads no text. Returns nullptr if
  /// the array holds no texts. Errors: kCorruption, the manifest does not have the files that the
  /// array's attributes describe.
  static Result<std::shared_ptr<const TextDictionary>> Open(const Store& store,
                                                            const ArrayEntry& array);
  ~TextDictionary();

  /// The number of texts, and how many of them, the last ones, updates added.
  std::uint64_t size() const;
  std::uint64_t added() const;

  /// Returns the text of each code in [-1, size()), in the order of `codes`; an empty text for -1.
  /// Reads every chunk at most once.
  /// Errors: kInvalidArgument, no such code; kCorruption; kIoError.
  Result<std::vector<std::string>> TextsOf(std::span<const std::int64_t> codes) const;

  /// Returns the code of a text; nullopt if there is none.
  /// Errors: kCorruption; kIoError.
  Result<std::optional<std::int64_t>> CodeOf(std::string_view text) const;

 private:
  class Impl;
  explicit TextDictionary(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace internal
}  // namespace rhizome
