#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "index/input/file_format.h"
#include "rhizome/file_system.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// Bounds on what is read of a file to find its dialect.
inline constexpr std::size_t kSniffedLines = 10'000;
inline constexpr std::size_t kSniffedBytes = std::size_t{4} << 20;

/// The first bytes of a file, decompressed.
struct FileHead {
  std::string bytes;
  Compression compression = Compression::kNone;
  bool whole = false;  ///< these are all bytes of the file
};

/// Reads the first `bytes` bytes of a file.
/// Errors: as InputStream.
Result<FileHead> ReadHead(FileSystem& fs, const Path& path, std::size_t bytes = kSniffedBytes);

/// A row of a text table.
struct SniffedRow {
  std::uint64_t line = 0;  ///< where it begins
  std::vector<std::string> fields;
};

/// The first rows of a text file, and the dialect that was found in them.
struct SniffedText {
  TextDialect dialect;
  std::vector<SniffedRow> rows;  ///< at most kSniffedLines; a header is one of them
  std::size_t fields = 0;        ///< the number of fields that most rows have
  std::uint64_t comment_lines = 0;
  std::uint64_t bad_lines = 0;  ///< malformed; `rows` does not have them
  bool whole = false;           ///< these are all rows of the file
};

/// Facts about a file that the caller knows.
struct SniffHints {
  std::optional<Delimiter> delimiter;
  std::size_t fields = 0;         ///< the expected number of fields; 0: unknown
  bool may_be_one_field = false;  ///< a line may be one text, which may have blanks
};

/// Finds the dialect of a text:
/// - Tabs, if nearly all lines have equally many fields; otherwise the comma, semicolon or pipe
///   with the most fields; otherwise blanks. The extension of the name decides if
///   several would do, and if the lines have one field.
/// - '#' and '%' begin comments if all lines that begin with them come before the first row, or
///   have another number of fields than the rows.
/// Errors: kInvalidArgument, the file is not text, or its lines end in CR alone.
Result<SniffedText> SniffText(const FileHead& head, const Path& path, const SniffHints& hints);

}  // namespace internal
}  // namespace rhizome
