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

#include "rhizome/export.h"
#include "rhizome/graph_types.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns the name of the C++ type T in the spelling of DataTypeName. Types that no array has get
/// similar names: "uint64", "long double".
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

/// A value of an edge attribute, which records whether it was given as an integer, a float or a
/// text. It converts from any number or text: `{.attributes = {17, 0.5, "card"}}`.
class EdgeValue {
 public:
  constexpr EdgeValue() = default;  ///< not given: 0, or no text in an attribute of texts
  template <std::integral T>
  constexpr EdgeValue(T value)  // NOLINT(google-explicit-constructor): a number is a value
      : bits_(static_cast<std::int64_t>(value)),
        kind_(std::in_range<std::int64_t>(value) ? Kind::kInteger : Kind::kTooLarge) {}
  template <std::floating_point T>
  constexpr EdgeValue(T value)  // NOLINT(google-explicit-constructor): as above
      : bits_(std::bit_cast<std::int64_t>(static_cast<double>(value))), kind_(Kind::kFloat) {}
  /// An empty text: no text.
  template <std::convertible_to<std::string_view> T>
  EdgeValue(const T& text)  // NOLINT(google-explicit-constructor): as above
      : kind_(Kind::kText), text_(std::string_view(text)) {}

  /// Converts an element of Change::attributes of an attribute of this dtype (change_feed.h) to a
  /// value.
  static EdgeValue OfBits(DataType dtype, std::int64_t bits) {
    if (dtype == DataType::kInt64) return bits;
    return std::bit_cast<double>(bits);
  }

  /// Returns the representation of the value in an attribute of `dtype`: an integer, or the bits of
  /// a double. Returns nullopt if the value does not fit: a float, or an integer beyond int64, for
  /// an attribute of integers; an integer that the dtype would round, for one of floats; a text.
  std::optional<std::int64_t> BitsAs(DataType dtype) const;

  std::string_view type_name() const;  ///< for messages: "int64", "float64", "uint64" or "text"
  bool given() const { return kind_ != Kind::kNone; }

  /// Returns the text; nullptr if the value was not given as a text.
  const std::string* text() const { return kind_ == Kind::kText ? &text_ : nullptr; }

 private:
  enum class Kind : std::uint8_t { kInteger, kFloat, kTooLarge, kText, kNone };
  std::int64_t bits_ = 0;
  Kind kind_ = Kind::kNone;
  std::string text_ = {};
};

/// The properties of an edge.
struct EdgeFields {
  std::string type = {};  ///< name of its edge type; empty: the first type
  float weight = 1;       ///< ignored by a store without weights

  /// Values of the store's edge attributes, in the order of Graph::edge_attributes(), which has the
  /// number and dtype of each. The value of an attribute of texts is a text, or the code of one
  /// (TextValues::CodeOf). Graph::Write adds texts that the attribute does not have. Empty: all 0,
  /// without texts.
  std::vector<EdgeValue> attributes = {};
};

/// Updates that Graph::Write applies atomically, in the order in which they were added
/// (docs/DESIGN.md, section 6). Vertices are named by their external ids. Nothing is checked before
/// Graph::Write, so no function here fails.
///
/// Threads: one at a time.
/// Ownership: copies all arguments.
/// Memory: the memory of the added operations.
class WriteBatch {
 public:
  /// Adds a vertex; an existing vertex does not change. `type` is the name of its vertex type;
  /// empty: the first type. The type of an existing vertex is not compared.
  void PutVertex(ExternalId id, std::string_view type = {});

  /// Deletes a vertex and its edges in both directions; no effect if it does not exist. A later put
  /// of the same id creates a new vertex.
  void DeleteVertex(ExternalId id);

  /// Adds one edge, parallel to equal edges that exist; missing end vertices are added
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
  /// As above, for a braced list of numbers.
  void PutRow(ExternalId id, std::string_view array, std::initializer_list<T> row) {
    PutRow(std::move(id), array, std::span(row.begin(), row.size()));
  }

  /// As above, for the bytes of a row, whose type is not checked: for float16, which C++ does not
  /// have, and for rows from a file.
  void PutRow(ExternalId id, std::string_view array, std::span<const std::byte> row);

  /// Replaces a vertex's row of an array of texts, which has shape [dim]; an empty text: none.
  /// Graph::Write adds texts that the array does not have, except to `label`, whose texts are the
  /// names of classes.
  void PutTexts(ExternalId id, std::string_view array, std::vector<std::string> texts);

  /// Replaces the rows of many vertices: PutRow for each of `ids`, in order. `rows` has the bytes
  /// of all rows, shape [ids.size(), row bytes]. `type` is the NumberTypeName of their elements;
  /// empty: not checked, as in PutRow. If the bytes are not a whole number of rows, the excess is
  /// added to the last row, which Graph::Write then refuses.
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
    kPutTexts,
  };
  /// One operation; fields that its kind does not use have their defaults.
  struct Operation {
    Kind kind = Kind::kPutVertex;
    ExternalId id = {};     ///< vertex, or source
    ExternalId dst = {};    ///< target of an edge
    std::string name = {};  ///< name of a type or an array
    float weight = 1;       ///< weight of an edge
    std::vector<EdgeValue> attributes = {};
    std::vector<std::byte> row = {};
    std::string row_type = {};  ///< NumberTypeName of the row's numbers; empty if given as bytes
    std::vector<std::string> texts = {};
  };
  std::span<const Operation> operations() const { return operations_; }

 private:
  void AddRow(ExternalId id, std::string_view array, std::vector<std::byte> row,
              std::string_view row_type);

  std::vector<Operation> operations_;
};

/// Options of Graph::Write.
struct WriteOptions {
  /// If true, the batch is durable when Write returns. If false, a power failure may lose the last
  /// batches, but never a part of a batch, and never an earlier batch without the later ones.
  bool sync = true;

  /// Add types of edges and vertices that the schema lacks, and ignore deletions of edges of such
  /// types; otherwise both are refused.
  bool create_types = false;

  /// Add missing vertices that an edge or row names; otherwise they are refused.
  bool create_vertices = true;

  /// Returns the origin of operation i for messages, such as "edges.tsv:12". Unset: "operation i".
  std::function<std::string(std::size_t operation)> place = {};

  /// The state of another store whose changes this batch completes. The store records it with the
  /// batch (GraphSnapshot::history), even if the batch is empty. Absent: the recorded state is
  /// unchanged.
  std::optional<LeaderState> leader = {};
};

/// The result of a batch.
struct WriteResult {
  std::uint64_t commit = 0;  ///< its sequence number; Graph::sequence() is at least this afterwards
  std::uint64_t vertices_added = 0;
};

}  // namespace rhizome
