// Text tables. ReadLine fills a buffer that holds at least one line of the maximum length, finds
// the end of the next record, and splits it at tabs (ReadTabs) or by a state machine for CSV
// (ReadCsv). Fields point into the buffer, or, for CSV, into a copy without quotes.

#include "index/input/table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/base/utf8.h"

namespace rhizome {
namespace {

constexpr std::size_t kBufferBytes = kMaxLineBytes + (std::size_t{256} << 10);
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Tests eight bytes at a time, because most lines are ASCII.
bool IsAscii(std::string_view text) {
  std::uint64_t all = 0;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    all |= word;
  }
  for (; i < text.size(); ++i) all |= static_cast<unsigned char>(text[i]);
  return (all & 0x8080808080808080) == 0;
}

void SplitTabs(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return;
    line.remove_prefix(tab + 1);
  }
}

}  // namespace

Result<std::unique_ptr<TableReader>> TableReader::Open(FileSystem& fs, const Path& path,
                                                       bool header) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  return Open(std::move(stream), TableFormOf(path), header);
}

Result<std::unique_ptr<TableReader>> TableReader::Open(std::unique_ptr<InputStream> stream,
                                                       TableForm form, bool header) {
  std::unique_ptr<TableReader> reader(new TableReader(std::move(stream), form));
  while (!reader->at_end_ && reader->end_ < kByteOrderMark.size())
    RHIZOME_RETURN_IF_ERROR(reader->Fill());
  if (std::string_view(reader->buffer_.get(), reader->end_).starts_with(kByteOrderMark))
    reader->begin_ = kByteOrderMark.size();
  if (header) RHIZOME_RETURN_IF_ERROR(reader->ReadLine());
  return reader;
}

TableReader::TableReader(std::unique_ptr<InputStream> stream, TableForm form)
    : stream_(std::move(stream)),
      form_(form),
      buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)) {}

std::string TableReader::Place() const {
  return fmt::format("{}:{}", stream_->path().string(), line_);
}

Result<TableReader::Next> TableReader::ReadLine() {
  if (std::exchange(in_long_line_, false)) RHIZOME_RETURN_IF_ERROR(SkipLongLine());
  line_ = next_line_;
  return form_ == TableForm::kCsv ? ReadCsv() : ReadTabs();
}

Status TableReader::Fill() {
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto room = std::as_writable_bytes(std::span(buffer_.get() + end_, kBufferBytes - end_));
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, stream_->Read(room));
  end_ += bytes;
  at_end_ = bytes == 0;
  return Status::Ok();
}

Result<TableReader::Next> TableReader::ReadTabs() {
  std::size_t scanned = 0;
  while (true) {
    const char* from = buffer_.get() + begin_;
    const void* found = std::memchr(from + scanned, '\n', end_ - begin_ - scanned);
    if (found == nullptr && !at_end_ && end_ - begin_ <= kMaxLineBytes) {
      scanned = end_ - begin_;
      RHIZOME_RETURN_IF_ERROR(Fill());
      continue;
    }
    if (found == nullptr && begin_ == end_) return Next::kEnd;
    std::string_view line(from, end_ - begin_);
    if (found != nullptr) line = line.substr(0, static_cast<const char*>(found) - from);
    if (line.size() > kMaxLineBytes) return TooLong();
    begin_ += line.size() + (found != nullptr ? 1 : 0);
    ++next_line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!IsAscii(line) && !IsUtf8(line)) return Malformed("is not valid UTF-8");
    if (form_ == TableForm::kLines) {
      fields_.assign(1, line);
    } else {
      SplitTabs(line, fields_);
    }
    return Next::kFields;
  }
}

Result<TableReader::Next> TableReader::ReadCsv() {
  text_.clear();
  starts_.assign(1, 0);
  stray_quote_ = false;
  bare_return_ = false;
  CsvState state = CsvState::kFieldStart;
  bool any = false;
  while (true) {
    while (begin_ < end_) {
      any = true;
      if (TakeCsvByte(buffer_[begin_++], state)) return FinishCsv();
      if (text_.size() + starts_.size() - 1 > kMaxLineBytes) return TooLong();
    }
    if (at_end_) break;
    RHIZOME_RETURN_IF_ERROR(Fill());
  }
  if (!any) return Next::kEnd;
  if (state == CsvState::kQuoted) return Malformed("has a quote that is never closed");
  return FinishCsv();
}

bool TableReader::TakeCsvByte(char byte, CsvState& state) {
  if (byte == '\n') ++next_line_;
  if (state != CsvState::kQuoted && byte == '\n') return true;
  bare_return_ = state != CsvState::kQuoted && byte == '\r';
  if (state == CsvState::kQuoted) {
    if (byte == '"')
      state = CsvState::kQuoteSeen;
    else
      text_.push_back(byte);
    return false;
  }
  if (byte == ',') {
    starts_.push_back(text_.size());
    state = CsvState::kFieldStart;
    return false;
  }
  if (byte == '"' && state == CsvState::kFieldStart) {
    state = CsvState::kQuoted;
    return false;
  }
  if (byte == '"' && state == CsvState::kQuoteSeen) {
    state = CsvState::kQuoted;
  } else if (byte == '"' || (state == CsvState::kQuoteSeen && byte != '\r')) {
    stray_quote_ = true;  // a quote within a bare field, or text after a closing quote
    state = CsvState::kPlain;
  } else if (state == CsvState::kFieldStart) {
    state = CsvState::kPlain;
  }
  text_.push_back(byte);
  return false;
}

TableReader::Next TableReader::FinishCsv() {
  if (bare_return_) text_.pop_back();
  if (stray_quote_)
    return Malformed(
        "has a quote in the wrong place; a field with quotes is written \"a \"\"b\"\"\"");
  if (!IsAscii(text_) && !IsUtf8(text_)) return Malformed("is not valid UTF-8");
  fields_.clear();
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    const std::size_t end = i + 1 < starts_.size() ? starts_[i + 1] : text_.size();
    fields_.push_back(std::string_view(text_).substr(starts_[i], end - starts_[i]));
  }
  return Next::kFields;
}

TableReader::Next TableReader::Malformed(std::string reason) {
  fields_.clear();
  reason_ = std::move(reason);
  return Next::kMalformed;
}

TableReader::Next TableReader::TooLong() {
  in_long_line_ = true;
  return Malformed(fmt::format("is longer than {} bytes", kMaxLineBytes));
}

Status TableReader::SkipLongLine() {
  while (true) {
    const char* from = buffer_.get() + begin_;
    const void* found = std::memchr(from, '\n', end_ - begin_);
    if (found != nullptr) {
      begin_ += static_cast<std::size_t>(static_cast<const char*>(found) - from) + 1;
      ++next_line_;
      return Status::Ok();
    }
    begin_ = end_;
    if (at_end_) return Status::Ok();
    RHIZOME_RETURN_IF_ERROR(Fill());
  }
}

}  // namespace rhizome
