#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/input/text_sniffer.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// The options of an ingestion that concern a text file.
struct TextWish {
  std::optional<InputKind> kind;       ///< kEdges or kNodes; unset: found
  std::vector<std::string> columns;    ///< empty: found
  std::optional<bool> header;          ///< unset: found
  std::optional<Delimiter> delimiter;  ///< unset: found
};

/// A text file with the rows of its sample.
struct SniffedFile {
  FilePlan plan;
  std::vector<SniffedRow> rows;         ///< without the header
  std::vector<std::string> types = {};  ///< as RoleNames::types; empty with TextWish::columns

  /// With TextWish::columns: what `types` would be otherwise, if these columns have the same ends.
  std::vector<std::string> unused_types = {};
  std::vector<std::string> notes = {};
};

/// Returns the roles of the columns, in the order of the file.
std::vector<std::string> RolesOf(const FilePlan& plan);

/// Returns how a text file of edges or nodes is read.
/// Errors: kInvalidArgument, the file is not text, or the roles of its columns are unclear.
Result<SniffedFile> PlanText(const FileHead& head, const Path& path, const TextWish& wish);

/// Returns whether the first of the rows is a header: no name is a number, and nearly all values of
/// a column below it are numbers or times; or the names give roles of edges or nodes (only of
/// `kind`, if it is known), and none recurs below.
bool IsHeader(std::span<const SniffedRow> rows, std::optional<InputKind> kind);

/// Returns the type of the values in a column.
ColumnType TypeOfColumn(std::span<const SniffedRow> rows, std::size_t column);

/// Returns how a Matrix Market file is read; nullopt if the file is none.
/// Errors: kInvalidArgument, a form of it that is not supported, naming it.
Result<std::optional<FilePlan>> PlanMatrixMarket(const FileHead& head, const Path& path);

}  // namespace internal
}  // namespace rhizome
