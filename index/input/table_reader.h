#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "index/input/input_stream.h"
#include "rhizome/export.h"
#include "rhizome/ingest.h"

namespace RHIZOME_API rhizome {

/// The maximum length of a line; longer lines are malformed.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

/// UTF-8 byte order mark. Readers skip it at the beginning of a file, so a text that begins with it
/// would lose it if it came first.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The rule that splits a line into fields.
enum class TableForm : std::uint8_t {
  kTabs,
  kCsv,
  kLines,  ///< no splitting: the line is its only field
};

/// Returns kCsv if the name ends in .csv, with or without a following extension of compression
/// (.gz); otherwise kTabs.
inline TableForm TableFormOf(const Path& path) {
  return ContentExtension(path) == ".csv" ? TableForm::kCsv : TableForm::kTabs;
}

/// Returns the dialect of a form: CSV with quotes, tabs without, or whole lines. No comments.
TextDialect DialectOf(TableForm form);

/// Reads a text table line by line, in a given dialect. Lines end in LF, CR LF or CR CR LF; a line
/// end in quotes is part of the field; the last line may have no line end. A UTF-8 byte order mark
/// is skipped.
/// Memory: about 1.3 MiB, regardless of the file's size.
/// Threads: one at a time.
class TableReader {
 public:
  enum class Next : std::uint8_t {
    kEnd,
    kFields,
    kMalformed,  ///< the line is too long, not UTF-8, or has stray quotes; reading can continue
  };

  /// Opens a file: CSV if its name ends in .csv, otherwise tab-separated. With `header`, the first
  /// line that is neither blank nor a comment is skipped.
  /// Errors: as InputStream::Open.
  static Result<std::unique_ptr<TableReader>> Open(FileSystem& fs, const Path& path, bool header);

  /// Reads an open stream.
  /// Errors: as InputStream::Read; kInvalidArgument, the file is not text, naming its kind.
  static Result<std::unique_ptr<TableReader>> Open(std::unique_ptr<InputStream> stream,
                                                   const TextDialect& dialect, bool header);
  static Result<std::unique_ptr<TableReader>> Open(std::unique_ptr<InputStream> stream,
                                                   TableForm form, bool header) {
    return Open(std::move(stream), DialectOf(form), header);
  }

  /// Moves to the next line.
  /// Errors: as InputStream::Read.
  Result<Next> ReadLine();

  /// Returns the line's fields, valid until the next call of ReadLine.
  std::span<const std::string_view> fields() const { return fields_; }

  /// Returns why the last line was malformed.
  const std::string& reason() const { return reason_; }

  /// Returns the line where the current record begins, as "edges.tsv:12".
  std::string Place() const;
  std::uint64_t line() const { return line_; }
  const InputStream& stream() const { return *stream_; }

  /// Returns the share of the file that the lines so far take up, or 0 if it is not known.
  double ShareRead() const;

 private:
  TableReader(std::unique_ptr<InputStream> stream, const TextDialect& dialect);
  enum class QuoteState : std::uint8_t { kFieldStart, kPlain, kQuoted, kQuoteSeen };

  /// Appends bytes of the stream to the buffer; sets at_end_ if there are no more.
  Status Fill();
  /// Reads the next line; nullopt if the dialect skips it.
  Result<std::optional<Next>> ReadRecord();
  bool Skips(std::string_view line) const;
  /// Carriage returns count as blanks: most are before a line end.
  bool IsBlank(char byte) const {
    return byte == ' ' || byte == '\r' || (byte == '\t' && separator_ != '\t');
  }
  void Split(std::string_view line);
  void SplitBlanks(std::string_view line);
  void AddField(const char* from, const char* end);

  Result<Next> ReadQuoted();
  /// Processes one byte of a record with quotes; returns true at the record's end.
  bool TakeByte(char byte, QuoteState& state);
  void TrimField();
  Next FinishQuoted();
  Next Malformed(std::string reason);
  Next TooLong();
  Status SkipLongLine();

  std::unique_ptr<InputStream> stream_;
  const TextDialect dialect_;
  const char separator_;
  const std::unique_ptr<char[]> buffer_;  // kBufferBytes bytes
  std::size_t begin_ = 0;                 // first byte of buffer_ not yet consumed
  std::size_t end_ = 0;
  std::uint64_t filled_bytes_ = 0;  // bytes of the stream that were read
  bool at_end_ = false;             // the stream is exhausted
  std::uint64_t line_ = 0;
  std::uint64_t next_line_ = 1;
  std::vector<std::string_view> fields_;
  std::string text_;                 // the fields of a record with quotes, without them
  std::vector<std::size_t> starts_;  // start of each field in text_
  bool stray_quote_ = false;
  std::string reason_;
  // The line is too long. The rest of the line, which may be endless, is skipped only when the next
  // line is requested.
  bool in_long_line_ = false;
};

}  // namespace rhizome
