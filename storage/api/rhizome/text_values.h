#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/store.h"

namespace RHIZOME_API rhizome {

/// The texts of an array of texts. The array holds int64 codes (its attribute `type` is `text`):
/// code c stands for text c, and -1 for no text. The texts are distinct and ascend by their bytes,
/// so that the class names of `label` are sorted. They remain on disk; a look-up of one text reads
/// one chunk (about 256 KiB, raw), and the most recent chunks are kept in memory.
/// Threads: any.
/// Ownership: it holds a snapshot of the store, and so keeps the files of that state on disk; a
/// snapshot of a store that is open for writing also keeps its lock.
class TextValues {
 public:
  /// Opens the texts of an array, given by name or reference (Manifest::FindArray); for an edge
  /// attribute, by its name. Reads no text.
  /// Errors: kNotFound, no such array; kInvalidArgument, the array does not hold texts;
  /// kCorruption, its files are not those that its attributes describe.
  static Result<std::shared_ptr<const TextValues>> Open(const Store& store,
                                                        std::string_view array);

  /// As above; nullptr if there is no such array, or if it does not hold texts.
  static Result<std::shared_ptr<const TextValues>> OpenIfAny(const Store& store,
                                                             std::string_view array);
  ~TextValues();

  /// The name of the array, as the user wrote it.
  const std::string& array() const;

  /// The number of texts.
  std::uint64_t size() const;

  /// Returns the text of a code; an empty text for -1.
  /// Errors: kInvalidArgument, no such code; kCorruption; kIoError.
  Result<std::string> TextOf(std::int64_t code) const;

  /// Returns the text of each code, in the order of `codes`. Reads every chunk at most once.
  /// Errors: as TextOf.
  Result<std::vector<std::string>> TextsOf(std::span<const std::int64_t> codes) const;

  /// Returns all texts in the order of their codes, if there are at most `max_texts`.
  /// Errors: kInvalidArgument, there are more; as TextOf.
  Result<std::vector<std::string>> All(std::uint64_t max_texts) const;

  /// Returns the code of a text; -1 for an empty text; nullopt if no code stands for it.
  /// Errors: kCorruption; kIoError.
  Result<std::optional<std::int64_t>> CodeOf(std::string_view text) const;

 private:
  class Impl;
  explicit TextValues(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Returns the names of the classes in an array of labels, by class: its texts, or the JSON list in
/// its attribute `label_names`, which importers set. Returns an empty list if there is no such
/// array, or if its classes have no names or more than 2^20.
/// Errors: as TextValues::TextOf.
Result<std::vector<std::string>> ReadClassNames(const Store& store,
                                                std::string_view labels = "label");

}  // namespace rhizome
