#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/io/files.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Returns whether `path` is "-", which names standard output.
inline bool IsStandardOutput(std::string_view path) { return path == "-"; }

/// Writes lines, in pieces of 1 MiB, to standard output or atomically to a file (OutputFile).
class TextOutput {
 public:
  static Result<TextOutput> Create(const std::string& path) {
    if (IsStandardOutput(path)) return TextOutput(std::nullopt);
    RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    return TextOutput(std::move(file));
  }

  /// Adds `line` and a newline.
  Status Line(std::string_view line) {
    constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
    piece_ += line;
    piece_ += '\n';
    ++lines_;
    return piece_.size() < kPieceBytes ? Status::Ok() : Flush();
  }

  Status Commit() {
    RHIZOME_RETURN_IF_ERROR(Flush());
    return file_ ? file_->Commit() : Status::Ok();
  }

  std::uint64_t lines() const { return lines_; }

 private:
  explicit TextOutput(std::optional<OutputFile> file) : file_(std::move(file)) {}
  Status Flush() {
    const Status status =
        file_ ? file_->Append(std::as_bytes(std::span(piece_))) : PrintOut(piece_);
    piece_.clear();
    return status;
  }

  std::optional<OutputFile> file_;  // absent: standard output
  std::string piece_;
  std::uint64_t lines_ = 0;
};

}  // namespace rhizome
