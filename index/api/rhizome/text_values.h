#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// The texts of an array of texts: of a text property, an edge attribute, or `label`. The array
/// holds int64 codes (its attribute `type` is `text`); each code from 0 to size() - 1 is the number
/// of one text, and -1 for none. An ingestion numbers the texts in ascending order of their bytes;
/// updates add texts, whose codes follow. The code of a text never changes.
/// Texts are on disk: a look-up reads one chunk, about 256 KiB, and the last chunks are kept in
/// memory; texts that were added since the last compaction are in memory. Threads: any. Ownership:
/// it holds a snapshot of the graph, and so has the texts up to its commit.
class TextValues {
 public:
  /// Opens the texts of an array, given by name or reference (Manifest::FindArray), or of an edge
  /// attribute, given by name. Reads no text.
  /// Errors: kNotFound, no such array; kInvalidArgument, the array does not hold texts;
  /// kCorruption, its files are not those that its attributes describe.
  static Result<std::shared_ptr<const TextValues>> Open(const Graph& graph, std::string_view array);

  /// As above; nullptr if there is no such array, or if it does not hold texts.
  static Result<std::shared_ptr<const TextValues>> OpenIfAny(const Graph& graph,
                                                             std::string_view array);
  ~TextValues();

  /// Returns the number of texts.
  std::uint64_t size() const;

  /// Returns the text of a code; an empty text for -1.
  /// Errors: kInvalidArgument, no such code; kCorruption; kIoError.
  Result<std::string> TextOf(std::int64_t code) const;

  /// Returns the text of each code, in the order of `codes`. Reads every chunk at most once.
  /// Errors: as TextOf.
  Result<std::vector<std::string>> TextsOf(std::span<const std::int64_t> codes) const;

  /// Returns the text of each vertex, in an array of vertices with one column.
  /// Errors: as TextOf and Graph::ReadRows; kInvalidArgument, the array has several columns.
  Result<std::vector<std::string>> TextsOfVertices(std::span<const VertexId> vertices) const;

  /// Returns all texts in the order of their codes.
  /// Errors: kInvalidArgument, there are more than `max_texts`; as TextOf.
  Result<std::vector<std::string>> All(std::uint64_t max_texts) const;

  /// Returns the code of a text; -1 for an empty text; nullopt if there is none.
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
Result<std::vector<std::string>> ReadClassNames(const Graph& graph,
                                                std::string_view labels = "label");

}  // namespace rhizome
