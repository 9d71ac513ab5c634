#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// A file of lines that a user asked for: whole or not there (OutputFile), written in large pieces.
class TextOutput {
 public:
  static Result<TextOutput> Create(const Path& path) {
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
    return file_.Commit();
  }

  std::uint64_t lines() const { return lines_; }

 private:
  explicit TextOutput(OutputFile file) : file_(std::move(file)) {}
  Status Flush() {
    const Status status = file_.Append(std::as_bytes(std::span(piece_)));
    piece_.clear();
    return status;
  }

  OutputFile file_;
  std::string piece_;
  std::uint64_t lines_ = 0;
};

}  // namespace rhizome
