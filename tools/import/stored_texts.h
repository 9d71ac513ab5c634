#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "rhizome/graph.h"
#include "rhizome/text_values.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// The texts of a graph's arrays, opened at their first use. This is the one place where the code
/// of a text becomes the text that people see. Threads: one at a time. Ownership: the
/// graph must outlive it.
class StoredTexts {
 public:
  explicit StoredTexts(const Graph& graph) : graph_(graph) {}

  /// Returns a row of an array as JSON values: the texts of an array of texts (null: none), or
  /// numbers, as ToJson does.
  /// Errors: as TextValues.
  Result<Json> RowJson(const ArrayEntry& entry, std::span<const std::byte> row);

 private:
  Result<const TextValues*> Of(const std::string& array);

  const Graph& graph_;
  std::map<std::string, std::shared_ptr<const TextValues>> open_;
};

}  // namespace rhizome
