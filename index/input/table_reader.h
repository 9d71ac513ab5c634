#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/index/input_stream.h"
#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// The longest line that is accepted.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

/// How a line is cut into fields.
enum class TableForm : std::uint8_t {
  kTabs,
  kCsv,
  kLines,  ///< not at all: the line is its one field
};

/// Commas if the name says .csv, before .gz or .zst if need be; else tabs.
inline TableForm TableFormOf(const Path& path) {
  return ContentExtension(path) == ".csv" ? TableForm::kCsv : TableForm::kTabs;
}

/// Reads a text table line by line: CSV (RFC 4180: quotes, doubled quotes, line ends within quotes)
/// if the name says .csv, tab-separated otherwise, where no byte but tab and line end is special.
/// Lines end in LF or CRLF, the last one perhaps in nothing; a UTF-8 byte order mark is skipped.
/// Nothing is a comment. Memory: about 1.3 MiB, whatever the file holds. Threads: one at a time.
class TableReader {
 public:
  enum class Next : std::uint8_t {
    kEnd,
    kFields,
    kMalformed,  ///< a line that is too long or not UTF-8, or has stray quotes; reading can go on
  };

  /// `header`: the first line is skipped unseen.
  /// Errors: those of InputStream::Open.
  static Result<std::unique_ptr<TableReader>> Open(FileSystem& fs, const Path& path, bool header);

  /// Reads an open stream in a form that is known. Errors: those of InputStream::Read.
  static Result<std::unique_ptr<TableReader>> Open(std::unique_ptr<InputStream> stream,
                                                   TableForm form, bool header);

  /// Moves to the next line. Errors: those of InputStream::Read.
  Result<Next> ReadLine();

  /// The line's fields, valid until the next call of ReadLine.
  std::span<const std::string_view> fields() const { return fields_; }

  /// Why the line is malformed.
  const std::string& reason() const { return reason_; }

  /// "edges.tsv:12", the line where the current record begins.
  std::string Place() const;
  std::uint64_t line() const { return line_; }
  const InputStream& stream() const { return *stream_; }

 private:
  TableReader(std::unique_ptr<InputStream> stream, TableForm form);
  enum class CsvState : std::uint8_t { kFieldStart, kPlain, kQuoted, kQuoteSeen };

  /// Reads more behind what is buffered; sets at_end_ when there is no more.
  Status Fill();
  Result<Next> ReadTabs();
  Result<Next> ReadCsv();
  /// Takes one byte of a CSV record; true at its end.
  bool TakeCsvByte(char byte, CsvState& state);
  Next FinishCsv();
  Next Malformed(std::string reason);
  Result<Next> SkipLongLine();

  std::unique_ptr<InputStream> stream_;
  const TableForm form_;
  const std::unique_ptr<char[]> buffer_;  // of kBufferBytes
  std::size_t begin_ = 0;                 // of what was not handed out yet
  std::size_t end_ = 0;
  bool at_end_ = false;  // the stream has no more
  std::uint64_t line_ = 0;
  std::uint64_t next_line_ = 1;
  std::vector<std::string_view> fields_;
  std::string text_;                 // of a CSV record: the fields without their quotes
  std::vector<std::size_t> starts_;  // of the fields in text_
  bool stray_quote_ = false;
  bool bare_return_ = false;  // the last byte is a carriage return outside quotes
  std::string reason_;
};

}  // namespace rhizome
