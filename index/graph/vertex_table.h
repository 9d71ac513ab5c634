#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "index/graph/live_vertices.h"
#include "index/input/table_writer.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Returns the arrays of vertices that users created, including versions: no checksums, no marks
/// of stale rows, no arrays of edges.
std::vector<const ArrayEntry*> VertexArraysOf(const GraphSnapshot& graph);

/// The vertices of a graph that are not deleted as a table, in the order of their ids: id, the type
/// if there are several, and, if wanted, a column for each array of width 1: label, split (as
/// train, valid, test, none), and the others by name. Columns of bound arrays are empty for
/// vertices of other types.
class VertexTable {
 public:
  VertexTable(const GraphSnapshot& graph, TableForm form, bool with_arrays);

  const std::vector<std::string>& columns() const { return columns_; }
  /// Arrays that are not columns: of several columns, or with the name of another column.
  const std::vector<std::string>& left_out() const { return left_out_; }
  std::uint64_t rows() const { return live_.count(); }
  std::string Header() const;  ///< the names of the columns as a line

  /// Passes each vertex as a line to `put`, and reports progress. Reads blocks of rows within
  /// `memory_bytes`.
  /// Errors: as AppendField, naming the column; any error of `put` and of reading.
  Status Write(const std::function<Status(std::string_view line)>& put, std::uint64_t memory_bytes,
               const JobControl& control) const;

 private:
  struct Column {
    std::string array;  // stored name
    ValueForm form;
    bool split = false;
    bool texts = false;
    std::optional<TypeId> type = {};  // of a bound array
  };

  /// The rows of a block of vertices in each array, and the texts of arrays of texts.
  struct Block {
    std::vector<std::vector<std::byte>> values;
    std::vector<std::vector<std::string>> texts;
  };
  void AddArrays();
  Status Read(std::span<const VertexId> vertices, Block& block) const;
  Status ReadColumn(const Column& column, std::span<const VertexId> vertices,
                    std::vector<std::string>& texts, std::vector<std::byte>& values) const;
  Status Format(VertexId vertex, std::size_t row, const Block& block, std::string& line) const;

  const GraphSnapshot& graph_;
  const TableForm form_;
  const LiveVertices live_;
  std::vector<std::string> types_;  // empty: no column
  std::vector<Column> arrays_;
  std::vector<std::string> columns_;
  std::vector<std::string> left_out_;
};

}  // namespace rhizome
