#include "index/ingest/ingest_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "index/ingest/id_plan.h"
#include "rhizome/graph_types.h"
#include "storage/array/type_names.h"
#include "storage/base/escaped_text.h"

namespace rhizome {
inline namespace internal {
namespace {

std::uint64_t MiB(std::uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace

Status CheckGivenVertices(const IngestOptions& options) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  if (options.vertices.value_or(0) <= kMost) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("`vertices={}` is out of range [0, {}]", *options.vertices, kMost));
}

Status IngestContext::BadLine(const TableReader& reader, std::string_view reason) {
  constexpr std::size_t kMaxShown = 10;
  ++bad_lines_;
  if (skipped_.size() < kMaxShown)
    skipped_.push_back(fmt::format("skipped {}: {}", reader.Place(), Excerpt(reason, 120)));
  if (bad_lines_ <= options.max_bad_lines) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "{}: {}{}", reader.Place(), Excerpt(reason),
      bad_lines_ > 1
          ? fmt::format(" (bad line number {}, {} are allowed)", bad_lines_, options.max_bad_lines)
          : ""));
}

void IngestContext::NoteTexts(std::string_view a, std::string_view b) {
  if (std::exchange(texts_noted_, true) || table_ == nullptr) return;
  if (plan == nullptr || plan->ids.texts) return;
  const std::string_view id = ParseCanonicalInteger(a) ? b : a;
  texts_note_ = fmt::format("the ids are texts, because '{}' at {} is not an integer: {}",
                            Excerpt(id, 60), table_->Place(), WhyNoInteger(id));
}

void IngestContext::AddNotes(std::vector<std::string> notes) {
  std::move(notes.begin(), notes.end(), std::back_inserter(notes_));
}

void IngestContext::NoteTextColumn(std::string_view column, std::string_view text) {
  const std::string place = table_ == nullptr ? "" : fmt::format(" at {}", table_->Place());
  notes_.push_back(fmt::format(
      "the column '{}' has texts, because of '{}'{}; the values before it are texts, too", column,
      Excerpt(text, 60), place));
}

std::vector<std::string> IngestContext::Notes() const {
  std::vector<std::string> notes;
  if (plan != nullptr) notes = plan->notes;
  if (!texts_note_.empty()) notes.push_back(texts_note_);
  notes.insert(notes.end(), notes_.begin(), notes_.end());
  notes.insert(notes.end(), skipped_.begin(), skipped_.end());
  if (skipped_.size() < bad_lines_)
    notes.push_back(fmt::format("skipped {} more lines", bad_lines_ - skipped_.size()));
  return notes;
}

Result<std::unique_ptr<TableReader>> IngestContext::OpenTable(const Path& path,
                                                              const TextDialect& dialect,
                                                              bool header) {
  table_ = nullptr;
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  RHIZOME_ASSIGN_OR_RETURN(auto reader, TableReader::Open(std::move(stream), dialect, header));
  table_ = reader.get();
  return reader;
}

Status IngestContext::Progress(std::string_view phase, const InputProgress& file,
                               std::uint64_t own_bytes) {
  const std::uint64_t done = file.done;
  const std::uint64_t total = std::max(done, file.total);
  const double share =
      total == 0 || done == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  if (options.memory_bytes > 0 && held_bytes_ + own_bytes > options.memory_bytes) {
    const auto whole = static_cast<std::uint64_t>(static_cast<double>(own_bytes) / share);
    return CheckMemory(file.path.string(), std::max(whole, own_bytes));
  }
  const std::string name = file.path.filename().string();
  return control.Report({.phase = phase, .done = done, .total = total, .detail = name});
}

Status IngestContext::CheckMemory(std::string_view what, std::uint64_t own_bytes) const {
  std::uint64_t needed = 0;
  if (__builtin_add_overflow(held_bytes_, own_bytes, &needed)) needed = ~std::uint64_t{0};
  if (options.memory_bytes == 0 || needed <= options.memory_bytes) return Status::Ok();
  return Status::OutOfMemory(
      fmt::format("{}: about {} MiB of memory are needed, but the limit is {} MiB; nothing was "
                  "written; raise the memory limit, or divide the input",
                  what, MiB(needed), MiB(options.memory_bytes)));
}

std::optional<std::string> TypeNames::Refuse(std::string_view text) const {
  if (names_.Contains(text)) return std::nullopt;
  if (const Status named = CheckTypeName("type", text); !named.ok()) return named.message();
  if (names_.size() < kMaxTypes) return std::nullopt;
  return fmt::format("'{}' would be type number {}, but at most {} types are possible", text,
                     kMaxTypes + 1, kMaxTypes);
}

std::vector<std::string> TypeNames::All() const {
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < names_.size(); ++i) all.emplace_back(names_.keys().At(i));
  return all;
}

std::string WrongFieldCount(std::size_t found, std::size_t expected, std::string_view field) {
  return fmt::format("{} field{} found, {} expected ({} names them; '-' skips one)", found,
                     found == 1 ? "" : "s", expected, field);
}

}  // namespace internal
}  // namespace rhizome
