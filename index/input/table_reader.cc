// Text tables. ReadLine fills a buffer that holds at least one line of the maximum length and finds
// the end of the next line. A line without quotes is split at its separators (Split); a record with
// quotes by a state machine (ReadQuoted). Fields point into the buffer, or, with quotes, into a
// copy without them.

#include "index/input/table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/base/utf8.h"

namespace rhizome {
namespace {

constexpr std::size_t kBufferBytes = kMaxLineBytes + (std::size_t{256} << 10);

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

char SeparatorOf(Delimiter delimiter) {
  switch (delimiter) {
    case Delimiter::kComma:
      return ',';
    case Delimiter::kSemicolon:
      return ';';
    case Delimiter::kPipe:
      return '|';
    case Delimiter::kBlanks:
      return ' ';
    case Delimiter::kTab:
    case Delimiter::kNone:
      break;
  }
  return '\t';
}

}  // namespace

TextDialect DialectOf(TableForm form) {
  switch (form) {
    case TableForm::kCsv:
      return {.delimiter = Delimiter::kComma, .quotes = true};
    case TableForm::kLines:
      return {.delimiter = Delimiter::kNone};
    case TableForm::kTabs:
      break;
  }
  return {};
}

Result<std::unique_ptr<TableReader>> TableReader::Open(FileSystem& fs, const Path& path,
                                                       bool header) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  return Open(std::move(stream), TableFormOf(path), header);
}

// Reads the first bytes: refuses a file that is not text, and skips a byte order mark.
Result<std::unique_ptr<TableReader>> TableReader::Open(std::unique_ptr<InputStream> stream,
                                                       const TextDialect& dialect, bool header) {
  std::unique_ptr<TableReader> reader(new TableReader(std::move(stream), dialect));
  while (!reader->at_end_ && reader->end_ < kFormatBytes) RHIZOME_RETURN_IF_ERROR(reader->Fill());
  const std::string_view head(reader->buffer_.get(), std::min(reader->end_, kFormatBytes));
  if (const auto reason = RefuseAsText(std::as_bytes(std::span(head))))
    return Fail(
        Status::InvalidArgument(fmt::format("{}: {}", reader->stream().path().string(), *reason)));
  if (head.starts_with(kByteOrderMark)) reader->begin_ = kByteOrderMark.size();
  if (header) RHIZOME_RETURN_IF_ERROR(reader->ReadLine());
  return reader;
}

TableReader::TableReader(std::unique_ptr<InputStream> stream, const TextDialect& dialect)
    : stream_(std::move(stream)),
      dialect_(dialect),
      separator_(SeparatorOf(dialect.delimiter)),
      buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)) {}

std::string TableReader::Place() const {
  return fmt::format("{}:{}", stream_->path().string(), line_);
}

double TableReader::ShareRead() const {
  if (filled_bytes_ == 0 || stream_->total_bytes() == 0) return 0;
  const auto filled = static_cast<double>(filled_bytes_);
  return (filled - static_cast<double>(end_ - begin_)) / filled *
         static_cast<double>(stream_->consumed_bytes()) /
         static_cast<double>(stream_->total_bytes());
}

Result<TableReader::Next> TableReader::ReadLine() {
  if (std::exchange(in_long_line_, false)) RHIZOME_RETURN_IF_ERROR(SkipLongLine());
  while (true) {
    line_ = next_line_;
    RHIZOME_ASSIGN_OR_RETURN(const std::optional<Next> next, ReadRecord());
    if (next) return *next;
  }
}

Status TableReader::Fill() {
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto room = std::as_writable_bytes(std::span(buffer_.get() + end_, kBufferBytes - end_));
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, stream_->Read(room));
  end_ += bytes;
  filled_bytes_ += bytes;
  at_end_ = bytes == 0;
  return Status::Ok();
}

Result<std::optional<TableReader::Next>> TableReader::ReadRecord() {
  std::size_t scanned = 0;
  const char* found = nullptr;
  while (true) {
    const char* const from = buffer_.get() + begin_;
    found = static_cast<const char*>(std::memchr(from + scanned, '\n', end_ - begin_ - scanned));
    if (found != nullptr || at_end_ || end_ - begin_ > kMaxLineBytes) break;
    scanned = end_ - begin_;
    RHIZOME_RETURN_IF_ERROR(Fill());
  }
  if (found == nullptr && begin_ == end_) return Next::kEnd;
  const char* const from = buffer_.get() + begin_;
  std::string_view line(from, (found != nullptr ? found : buffer_.get() + end_) - from);
  if (dialect_.quotes && (line.size() > kMaxLineBytes || line.find('"') != line.npos) &&
      !Skips(line)) {
    RHIZOME_ASSIGN_OR_RETURN(const Next next, ReadQuoted());
    return next;
  }
  if (line.size() > kMaxLineBytes) return TooLong();
  begin_ += line.size() + (found != nullptr ? 1 : 0);
  ++next_line_;
  while (line.ends_with('\r')) line.remove_suffix(1);
  if (Skips(line)) return std::nullopt;
  if (!IsAscii(line) && !IsUtf8(line)) return Malformed("is not valid UTF-8");
  Split(line);
  return Next::kFields;
}

bool TableReader::Skips(std::string_view line) const {
  if (dialect_.delimiter == Delimiter::kNone) return false;
  if (line.empty()) return true;
  if (dialect_.comments.find(line.front()) != std::string::npos) return true;
  return IsBlank(line.front()) &&
         std::all_of(line.begin(), line.end(), [this](char byte) { return IsBlank(byte); });
}

inline void TableReader::AddField(const char* from, const char* end) {
  while (from < end && IsBlank(*from)) ++from;
  while (from < end && IsBlank(end[-1])) --end;
  fields_.emplace_back(from, end - from);
}

void TableReader::Split(std::string_view line) {
  if (dialect_.delimiter == Delimiter::kNone) {
    fields_.assign(1, line);
    return;
  }
  if (dialect_.delimiter == Delimiter::kBlanks) return SplitBlanks(line);
  fields_.clear();
  const char* from = line.data();
  const char* const end = from + line.size();
  while (true) {
    const auto* const stop = static_cast<const char*>(std::memchr(from, separator_, end - from));
    if (stop == nullptr) break;
    AddField(from, stop);
    from = stop + 1;
  }
  AddField(from, end);
}

void TableReader::SplitBlanks(std::string_view line) {
  fields_.clear();
  const char* from = line.data();
  const char* const end = from + line.size();
  while (true) {
    while (from < end && IsBlank(*from)) ++from;
    if (from == end) return;
    const char* stop = from;
    while (stop < end && !IsBlank(*stop)) ++stop;
    fields_.emplace_back(from, stop - from);
    from = stop;
  }
}

Result<TableReader::Next> TableReader::ReadQuoted() {
  text_.clear();
  starts_.assign(1, 0);
  stray_quote_ = false;
  QuoteState state = QuoteState::kFieldStart;
  while (true) {
    while (begin_ < end_) {
      if (TakeByte(buffer_[begin_++], state)) return FinishQuoted();
      if (text_.size() + starts_.size() - 1 > kMaxLineBytes) return TooLong();
    }
    if (at_end_) break;
    RHIZOME_RETURN_IF_ERROR(Fill());
  }
  if (state == QuoteState::kQuoted) return Malformed("has a quote that is never closed");
  if (state == QuoteState::kPlain) TrimField();
  return FinishQuoted();
}

bool TableReader::TakeByte(char byte, QuoteState& state) {
  if (byte == '\n') ++next_line_;
  if (state == QuoteState::kQuoted) {
    if (byte == '"')
      state = QuoteState::kQuoteSeen;
    else
      text_.push_back(byte);
    return false;
  }
  if (byte == '\n' || byte == separator_) {
    if (state == QuoteState::kPlain) TrimField();
    if (byte == '\n') return true;
    starts_.push_back(text_.size());
    state = QuoteState::kFieldStart;
    return false;
  }
  if (byte == '"' && state != QuoteState::kPlain) {
    // Two quotes in a quoted field represent one.
    if (state == QuoteState::kQuoteSeen) text_.push_back(byte);
    state = QuoteState::kQuoted;
    return false;
  }
  // Blanks around a field are not part of it.
  if (state != QuoteState::kPlain && IsBlank(byte)) return false;
  // A quote within a bare field, or text after a closing quote.
  if (byte == '"' || state == QuoteState::kQuoteSeen) stray_quote_ = true;
  state = QuoteState::kPlain;
  text_.push_back(byte);
  return false;
}

void TableReader::TrimField() {
  while (text_.size() > starts_.back() && IsBlank(text_.back())) text_.pop_back();
}

TableReader::Next TableReader::FinishQuoted() {
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
