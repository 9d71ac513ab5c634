#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "index/ids/id_dictionary.h"
#include "index/input/table_reader.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// Progress within a file: bytes as stored on disk, or elements.
struct InputProgress {
  InputProgress(const InputStream& stream)  // NOLINT(google-explicit-constructor)
      : InputProgress(stream.path(), stream.consumed_bytes(), stream.total_bytes()) {}
  InputProgress(const Path& file, std::uint64_t bytes_done, std::uint64_t bytes_total)
      : path(file), done(bytes_done), total(bytes_total) {}
  const Path& path;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

/// Refuses an implausible IngestOptions::vertices before memory is allocated for it.
/// Errors: kInvalidArgument.
Status CheckGivenVertices(const IngestOptions& options);

/// The state that the readers of one ingestion share: options, plan of the input, bad lines, memory
/// budget.
/// Threads: one at a time.
/// Ownership: the constructor's arguments must outlive it.
class IngestContext {
 public:
  /// For arrays alone.
  IngestContext(FileSystem& file_system, const IngestOptions& ingest_options,
                const JobControl& job_control, bool spills)
      : fs(file_system), options(ingest_options), control(job_control), spills_(spills) {}
  IngestContext(FileSystem& file_system, const InputPlan& input_plan, const JobControl& job_control,
                bool spills)
      : fs(file_system),
        options(input_plan.options),
        plan(&input_plan),
        control(job_control),
        spills_(spills) {}

  FileSystem& fs;
  const IngestOptions& options;
  const InputPlan* const plan = nullptr;
  const JobControl& control;

  /// Counts the reader's current line as bad.
  /// Errors: kInvalidArgument, with place and reason, once there are more bad lines than allowed.
  Status BadLine(const TableReader& reader, std::string_view reason);
  std::uint64_t bad_lines() const { return bad_lines_; }

  /// Notes that the ids have become texts because of the line that is being read, which has the ids
  /// `a` and `b`. Only the first call counts, and none if the plan says it.
  void NoteTexts(std::string_view a, std::string_view b);

  /// Adds notes of a reader.
  void AddNotes(std::vector<std::string> notes);

  /// Notes that a column, which had integers or splits, has become texts because of `text` in the
  /// line that is being read.
  void NoteTextColumn(std::string_view column, std::string_view text);

  /// Returns the notes of the plan and of the readers, for IngestReport::notes.
  std::vector<std::string> Notes() const;

  /// Returns whether large data goes to spill files.
  bool spills() const { return spills_; }
  std::uint64_t held_bytes() const { return held_bytes_; }

  /// Reports progress in a file and checks the memory; `own_bytes` is the memory that the file's
  /// reader holds.
  /// Errors: kInterrupted; kOutOfMemory, with an estimate for the whole file.
  Status Progress(std::string_view phase, const InputProgress& file, std::uint64_t own_bytes);

  /// Opens a text file, which then is the one that NoteTexts and NoteTextColumn refer to.
  /// Errors: as TableReader::Open.
  Result<std::unique_ptr<TableReader>> OpenTable(const Path& path, const TextDialect& dialect,
                                                 bool header);

  /// Reads the lines of a text file and reports progress. `take_line(fields)` accepts a line, or
  /// returns the reason why it is malformed; the line then counts as bad. `own_bytes()` returns the
  /// memory that the reader holds. `check(reader)` is called at intervals and may return an error
  /// of the receiver.
  /// Errors: any error of BadLine, Progress, TableReader and `check`.
  template <typename TakeLine, typename OwnBytes, typename Check>
  Status ReadLines(const Path& path, const TextDialect& dialect, bool header,
                   std::string_view phase, TakeLine take_line, OwnBytes own_bytes, Check check);

  /// Errors: kOutOfMemory, `own_bytes` and the held bytes together exceed the budget.
  Status CheckMemory(std::string_view what, std::uint64_t own_bytes) const;

  /// Adds `own_bytes` to the held bytes.
  void Hold(std::uint64_t own_bytes) { held_bytes_ += own_bytes; }

 private:
  const bool spills_;
  std::uint64_t bad_lines_ = 0;
  std::vector<std::string> skipped_;  // the first bad lines, with their places
  std::uint64_t held_bytes_ = 0;
  const TableReader* table_ = nullptr;  // the file that is being read
  bool texts_noted_ = false;
  std::string texts_note_;
  std::vector<std::string> notes_;  // of readers, about columns
};

/// Number of lines between two progress reports and memory checks.
inline constexpr std::uint64_t kLinesPerReport = 1 << 14;

template <typename TakeLine, typename OwnBytes, typename Check>
Status IngestContext::ReadLines(const Path& path, const TextDialect& dialect, bool header,
                                std::string_view phase, TakeLine take_line, OwnBytes own_bytes,
                                Check check) {
  RHIZOME_ASSIGN_OR_RETURN(const auto reader, OpenTable(path, dialect, header));
  for (std::uint64_t lines = 1;; ++lines) {
    RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, reader->ReadLine());
    if (next == TableReader::Next::kEnd) break;
    const std::optional<std::string> reason =
        next == TableReader::Next::kMalformed ? reader->reason() : take_line(reader->fields());
    if (reason) RHIZOME_RETURN_IF_ERROR(BadLine(*reader, *reason));
    if (lines % kLinesPerReport != 0) continue;
    RHIZOME_RETURN_IF_ERROR(check(*reader));
    RHIZOME_RETURN_IF_ERROR(Progress(phase, reader->stream(), own_bytes()));
  }
  table_ = nullptr;
  RHIZOME_RETURN_IF_ERROR(check(*reader));
  return Progress(phase, reader->stream(), own_bytes());
}

/// Names of vertex or edge types, numbered in order of first occurrence.
class TypeNames {
 public:
  /// Returns the reason why `text` cannot be a type, or nullopt if it can.
  std::optional<std::string> Refuse(std::string_view text) const;

  /// Returns the type's number. Refuse must have accepted `text`.
  TypeId Add(std::string_view text) { return static_cast<TypeId>(names_.Add(text).first); }
  std::vector<std::string> All() const;
  std::uint64_t size() const { return names_.size(); }

 private:
  IdDictionary<StringKeys> names_;
};

/// Returns the error text for a line with `found` fields.
std::string WrongFieldCount(std::size_t found, std::size_t expected, std::string_view field);

}  // namespace internal
}  // namespace rhizome
