#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rhizome/index/external_id.h"
#include "rhizome/storage/dtype.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/store_id.h"

namespace RHIZOME_API rhizome {

/// Returns the name of the C++ type T as DataTypeName has it, and similar names for types that no
/// array has: "float64", "int16", "bool".
template <typename T>
requires std::is_arithmetic_v<T>
constexpr std::string_view NumberTypeName() {
  constexpr std::size_t size = sizeof(T);
  if (std::is_same_v<T, bool>) return "bool";
  if (std::is_floating_point_v<T>)
    return size == 4 ? "float32" : size == 8 ? "float64" : "long double";
  if (std::is_signed_v<T>)
    return size == 1 ? "int8" : size == 2 ? "int16" : size == 4 ? "int32" : "int64";
  return size == 1 ? "uint8" : size == 2 ? "uint16" : size == 4 ? "uint32" : "uint64";
}

/// A value of an edge attribute, which remembers whether it was given as an integer or as a float.
/// It converts from any number: `{.attributes = {17, 0.5}}`.
class EdgeValue {
 public:
  constexpr EdgeValue() = default;  ///< 0
  template <std::integral T>
  constexpr EdgeValue(T value)  // NOLINT(google-explicit-constructor): a number is a value
      : bits_(static_cast<std::int64_t>(value)),
        kind_(std::in_range<std::int64_t>(value) ? Kind::kInteger : Kind::kTooLarge) {}
  template <std::floating_point T>
  constexpr EdgeValue(T value)  // NOLINT(google-explicit-constructor): as above
      : bits_(std::bit_cast<std::int64_t>(static_cast<double>(value))), kind_(Kind::kFloat) {}

  /// Makes a value from an element of Change::attributes of an attribute of this dtype
  /// (change_feed.h).
  static EdgeValue OfBits(DataType dtype, std::int64_t bits) {
    if (dtype == DataType::kInt64) return bits;
    return std::bit_cast<double>(bits);
  }

  /// Returns the form that an attribute of `dtype` keeps: an integer, or the bits of a double.
  /// Returns nullopt if the value does not fit: a float, or an integer beyond int64, for an
  /// attribute of integers.
  std::optional<std::int64_t> BitsAs(DataType dtype) const;

  std::string_view type_name() const;  ///< for messages: "int64", "float64" or "uint64"

 private:
  enum class Kind : std::uint8_t { kInteger, kFloat, kTooLarge };
  std::int64_t bits_ = 0;
  Kind kind_ = Kind::kInteger;
};

/// The properties of an edge.
struct EdgeFields {
  std::string type = {};  ///< name of its edge type; empty: the first type
  float weight = 1;       ///< ignored by a store without weights

  /// Values of the store's edge attributes, in the order of Graph::edge_attributes(), which gives
  /// the number and dtype of each. Empty: all 0.
  std::vector<EdgeValue> attributes = {};
};

/// Updates that Graph::Write applies atomically, in the order in which they were added
/// (docs/DESIGN.md, section 6). Vertices are named by their external ids. Nothing is checked before
/// Graph::Write, so no function here fails.
///
/// Threads: one at a time. Ownership: copies everything that it is given. Memory: that of the added
/// operations.
class WriteBatch {
 public:
  /// Adds a vertex; an existing vertex stays unchanged. `type` is the name of its vertex type;
  /// empty: the first type. The type of an existing vertex is not compared.
  void PutVertex(ExternalId id, std::string_view type = {});

  /// Deletes a vertex and its edges in both directions; no effect if it does not exist. A later put
  /// of the same id makes a new vertex.
  void DeleteVertex(ExternalId id);

  /// Adds one edge, parallel to equal ones that exist; missing end vertices are added
  /// (WriteOptions). In an undirected store it adds the pair, once for both directions.
  void PutEdge(ExternalId src, ExternalId dst, EdgeFields fields = {});

  /// Replaces all edges of the same source, type and target by this one.
  void UpsertEdge(ExternalId src, ExternalId dst, EdgeFields fields = {});

  /// Deletes all edges of the same source, type and target; no effect if there is none.
  void DeleteEdge(ExternalId src, ExternalId dst, std::string_view type = {});

  /// Replaces a vertex's row of an array; a missing vertex is added (WriteOptions). `row` has shape
  /// [dim]: a span, vector, array or other range of exactly the array's type, because no number is
  /// converted. Graph::Write refuses any other type, naming both.
  template <std::ranges::input_range Row>
  requires std::is_arithmetic_v<std::ranges::range_value_t<Row>>
  void PutRow(ExternalId id, std::string_view array, Row&& row) {
    using T = std::ranges::range_value_t<Row>;
    std::vector<std::byte> bytes;
    for (const T number : row)
      for (const std::byte byte : std::bit_cast<std::array<std::byte, sizeof(T)>>(number))
        bytes.push_back(byte);
    AddRow(std::move(id), array, std::move(bytes), NumberTypeName<T>());
  }
  template <typename T>
  requires std::is_arithmetic_v<T>
  /// Does the same with a braced list of numbers.
  void PutRow(ExternalId id, std::string_view array, std::initializer_list<T> row) {
    PutRow(std::move(id), array, std::span(row.begin(), row.size()));
  }

  /// Does the same with the bytes of the row, whose type is not checked: for float16, which C++
  /// does not have, and for rows from a file.
  void PutRow(ExternalId id, std::string_view array, std::span<const std::byte> row);

  /// Replaces the rows of many vertices: PutRow for each of `ids`, in their order. `rows` has the
  /// bytes of all rows, shape [ids.size(), row bytes], of numbers of the type that NumberTypeName
  /// calls `type`; empty: not checked, as in PutRow. Bytes that are no whole number of rows go to
  /// the last one, which Graph::Write then refuses.
  void PutRows(std::span<const ExternalId> ids, std::string_view array,
               std::span<const std::byte> rows, std::string_view type = {});

  /// Drops all operations.
  void Clear() { operations_.clear(); }
  bool empty() const { return operations_.empty(); }
  std::size_t size() const { return operations_.size(); }  ///< operations

  /// The types below are for the engine.
  enum class Kind : std::uint8_t {
    kPutVertex,
    kDeleteVertex,
    kPutEdge,
    kUpsertEdge,
    kDeleteEdge,
    kPutRow,
  };
  /// One operation; fields that its kind does not use have their defaults.
  struct Operation {
    Kind kind = Kind::kPutVertex;
    ExternalId id = {};     ///< vertex, or source
    ExternalId dst = {};    ///< target of an edge
    std::string name = {};  ///< of a type, or an array
    float weight = 1;       ///< of an edge
    std::vector<EdgeValue> attributes = {};
    std::vector<std::byte> row = {};
    std::string row_type = {};  ///< NumberTypeName of its numbers; empty if given as bytes
  };
  std::span<const Operation> operations() const { return operations_; }

 private:
  void AddRow(ExternalId id, std::string_view array, std::vector<std::byte> row,
              std::string_view row_type);

  std::vector<Operation> operations_;
};

/// Options of Graph::Write.
struct WriteOptions {
  /// If true, the batch is durable when Write returns. If false, a power cut may lose the last
  /// batches, but never a part of one, and never an earlier one without the later ones.
  bool sync = true;

  /// Add edge and vertex types that the schema lacks; else they are refused.
  bool create_types = false;

  /// Add missing vertices that an edge or row names; else they are refused.
  bool create_vertices = true;

  /// Returns the origin of operation i for messages, such as "edges.tsv:12". Unset: "operation i".
  std::function<std::string(std::size_t operation)> place = {};

  /// The state of another store whose changes this batch completes. The store remembers it with the
  /// batch (GraphSnapshot::history), even with an empty one. Absent: what it remembers stays.
  std::optional<LeaderState> leader = {};
};

/// The result of a batch.
struct WriteResult {
  std::uint64_t commit = 0;  ///< its sequence number; Graph::sequence() is at least this afterwards
  std::uint64_t vertices_added = 0;
};

}  // namespace rhizome
