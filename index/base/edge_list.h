#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "index/base/value_list.h"
#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// An edge attribute: a time stamp, an amount, or a feature of `dim` values an edge. Its dtype is
/// kInt64, kFloat32 or kFloat64; a value that needs a wider one converts the column
/// (ValueList::WidenTo).
/// Threads: const functions may run concurrently.
/// Ownership: the column owns its values.
class EdgeAttribute {
 public:
  EdgeAttribute() = default;
  /// Creates an empty column of `dim` values an edge; dtype must be kInt64, kFloat32 or kFloat64.
  explicit EdgeAttribute(std::string name, DataType dtype = DataType::kInt64, std::uint64_t dim = 1)
      : name_(std::move(name)), dim_(dim), values_(dtype) {}

  /// Returns an empty column of the same name, dtype, width, null and attributes.
  EdgeAttribute Empty() const;

  const std::string& name() const { return name_; }
  DataType dtype() const { return values_.dtype(); }
  std::uint64_t dim() const { return dim_; }  ///< values an edge, at least 1
  std::size_t value_count() const { return values_.size(); }
  std::size_t size() const { return dim_ == 0 ? 0 : value_count() / dim_; }  ///< edges
  /// Return the bytes allocated for the values, and the bytes of one edge's values.
  std::uint64_t memory_bytes() const { return values_.memory_bytes(); }
  std::size_t row_bytes() const { return dim_ * DataTypeBytes(dtype()); }

  /// Returns the values as elements of dtype(), edge after edge: shape [size(), dim()].
  std::span<const std::byte> bytes() const { return values_.bytes(); }
  const ValueList& values() const { return values_; }
  ValueList& values() { return values_; }

  /// The meaning of the values (array_facts.h: `null`, `type`); stored with the arrays of the
  /// attribute.
  std::vector<std::pair<std::string, std::string>> attributes = {};

  /// Add one value; every `dim` values belong to one edge.
  void Add(std::int64_t value) { values_.Add(value); }
  void Add(float value);
  void Add(double value);

  /// Add the values of edge i, or of all edges, of `other`, a column of the same width. Add nothing
  /// on error.
  /// Errors: kInvalidArgument, another width, or no edge i.
  Status AddFrom(const EdgeAttribute& other, std::size_t i);
  Status AddAll(const EdgeAttribute& other);

  /// Adds values in the form of bytes(). Adds nothing on error.
  /// Errors: as ValueList::AddBytes.
  Status AddBytes(DataType dtype, std::span<const std::byte> bytes);

  /// Removes all values; name, dtype, width, null and attributes remain.
  void Clear() { values_.Clear(); }

 private:
  std::string name_;
  std::uint64_t dim_ = 1;
  ValueList values_;
};

/// Edges in memory, column by column, in input order. `type`, `weight` and `attributes` are empty
/// if the graph has one edge type, no weights, no attributes; every other column has the length of
/// `src`.
struct EdgeList {
  std::vector<VertexId> src;
  std::vector<VertexId> dst;
  std::vector<TypeId> type;
  std::vector<float> weight;
  std::vector<EdgeAttribute> attributes;

  std::size_t size() const { return src.size(); }
};

}  // namespace rhizome
