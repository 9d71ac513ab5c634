#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "index/input/table_writer.h"
#include "rhizome/export.h"
#include "rhizome/graph_scan.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/text_values.h"

namespace RHIZOME_API rhizome {

/// The edges of a graph in the order of an EdgeScan, a block at a time, with their attributes.
/// Memory: the block and the scan.
/// Threads: one at a time.
class EdgeBlocks {
 public:
  struct Block {
    std::vector<EdgeScan::Entry> edges;
    std::vector<std::vector<std::byte>> attributes;  ///< by attribute: rows, one for each edge
    std::vector<std::vector<std::string>> texts;     ///< by attribute of texts, if wanted: values
  };

  /// Each pair of an undirected graph is returned once. `block_bytes` bounds the bytes of a block's
  /// attributes, without texts. `with_texts` reads the texts of attributes that hold codes of
  /// texts. Errors: as EdgeScan::Open; as TextValues::Open.
  static Result<EdgeBlocks> Open(const Graph& graph, std::uint64_t block_bytes,
                                 bool with_texts = false);

  /// Replaces `block` by the next edges. Returns false, and no edges, at the end.
  /// Errors: any error of reading.
  Result<bool> Next(Block& block);

  const std::vector<EdgeAttributeInfo>& attributes() const { return attributes_; }
  const EdgeScan& scan() const { return scan_; }  ///< for its snapshot and its progress

 private:
  EdgeBlocks(EdgeScan scan, std::uint64_t block_bytes);

  EdgeScan scan_;
  std::vector<EdgeAttributeInfo> attributes_;
  std::vector<std::shared_ptr<const TextValues>> texts_;  // by attribute; null: not read
  std::size_t block_edges_ = 1;
  std::vector<std::int64_t> numbers_;
};

/// The columns of a table of edges: src, dst, the type if there are several, the weight if edges
/// have one, and, if wanted, one column for each value of each attribute (NAME, or NAME_0, NAME_1
/// and so on).
class EdgeTable {
 public:
  EdgeTable(const GraphSnapshot& graph, TableForm form, bool with_attributes);

  const std::vector<std::string>& columns() const { return columns_; }
  std::string Header() const;  ///< the names of the columns as a line

  /// Replaces `line` by the fields of edge i of a block.
  /// Errors: as AppendField, naming the column.
  Status Format(const EdgeBlocks::Block& block, std::size_t i, std::string& line) const;

 private:
  struct Attribute {
    ValueForm form;
    std::uint64_t dim = 1;
    bool texts = false;
  };
  const GraphSnapshot& graph_;
  const TableForm form_;
  std::vector<std::string> types_;  // empty: no column
  const bool weighted_;
  std::vector<Attribute> attributes_;
  std::vector<std::string> columns_;
};

}  // namespace rhizome
