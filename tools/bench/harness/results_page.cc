#include "tools/bench/harness/results_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "storage/base/escaped_text.h"
#include "storage/io/files.h"
#include "storage/section/untrusted_json.h"
#include "tools/cli/flag_values.h"

// MakeResultsPage reads setup.json (ReadSetup) and every section (ReadSection), checks that no two
// sections share a position or a link (CheckDistinct), and formats the page (Head, SectionText).

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxResultsFileBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMaxResultsRows = 6;
constexpr const char* kSetupFile = "setup.json";

struct ResultsSetup {
  std::string title;
  std::string introduction;
  std::vector<std::string> setup;
  std::vector<std::string> studies;
};

struct ResultsSection {
  Path file;
  std::string title;
  std::uint64_t order = 0;
  std::vector<std::string> commands;
  std::string setup;  // empty: as on all of the page
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string notes;
  std::string date;
  std::string commit;  // empty: not recorded
};

/// Returns whether `value` is text without line breaks and other control characters.
bool IsLine(const nlohmann::json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20U; });
}

/// Returns why `text` is not a JSON object that ParseUntrustedJson accepts.
std::string WhyUnreadable(std::string_view text) {
  try {
    const nlohmann::json parsed = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    const std::string_view what = error.what();  // "[json.exception.parse_error.101] parse ..."
    const std::size_t id_end = what.find("] ");
    return std::string(id_end == what.npos ? what : what.substr(id_end + 2));
  }
  return fmt::format("its values are nested deeper than {}", kMaxJsonNesting);
}

/// The fields of a JSON object in a file. Each function returns one field; if the field is not as
/// requested, the error names the file and the field.
class ResultsFields {
 public:
  using Names = std::initializer_list<std::string_view>;

  /// Reads the file. Errors: kInvalidArgument, it is not a JSON object or has a field that is not
  /// in `known`; errors of the file system.
  static Result<ResultsFields> Read(FileSystem& fs, const Path& file, Names known) {
    RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadWholeFile(fs, file, kMaxResultsFileBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::optional<std::string> repeated;
    nlohmann::json object = ParseUntrustedJson(text, &repeated);
    ResultsFields fields(file, "", std::move(object));
    if (repeated) return Fail(fields.Wrong(*repeated, "is set twice"));
    if (fields.object_.is_discarded()) {
      return Fail(Status::InvalidArgument(
          fmt::format("{} is not valid JSON: {}", file.string(), WhyUnreadable(text))));
    }
    if (!fields.object_.is_object())
      return Fail(Status::InvalidArgument(file.string() + " is not a JSON object"));
    RHIZOME_RETURN_IF_ERROR(fields.CheckNames(known));
    return fields;
  }

  Result<ResultsFields> Object(const std::string& name, Names known) const {
    ResultsFields inner(file_, prefix_ + name + ".", Value(name));
    if (!inner.object_.is_object()) return Fail(Wrong(name, "must be an object"));
    RHIZOME_RETURN_IF_ERROR(inner.CheckNames(known));
    return inner;
  }

  bool Has(const std::string& name) const { return object_.contains(name); }

  Result<std::string> Line(const std::string& name) const {
    const nlohmann::json value = Value(name);
    if (!IsLine(value) || value == "") return Fail(Wrong(name, "must be one line of text"));
    return value.get<std::string>();
  }

  Result<std::uint64_t> Integer(const std::string& name) const {
    const nlohmann::json value = Value(name);
    if (!value.is_number_unsigned()) return Fail(Wrong(name, "must be an integer from 0"));
    return value.get<std::uint64_t>();
  }

  /// Returns a list of lines that has at least one; lines may be empty if `may_be_empty`.
  Result<std::vector<std::string>> Lines(const std::string& name, bool may_be_empty) const {
    const nlohmann::json list = Value(name);
    if (!list.is_array() || list.empty())
      return Fail(Wrong(name, "must be a list with at least one text"));
    return LinesOf(list, name, may_be_empty);
  }

  /// Returns the rows of a table with `columns` columns.
  Result<std::vector<std::vector<std::string>>> Rows(const std::string& name,
                                                     std::size_t columns) const {
    const nlohmann::json list = Value(name);
    if (!list.is_array() || list.empty() || list.size() > kMaxResultsRows) {
      return Fail(
          Wrong(name, fmt::format("must be a list of 1 to {} rows{}", kMaxResultsRows,
                                  list.is_array() ? fmt::format(", not {}", list.size()) : "")));
    }
    std::vector<std::vector<std::string>> rows;
    for (const nlohmann::json& row : list) {
      const std::string place = fmt::format("{}[{}]", name, rows.size());
      if (!row.is_array()) return Fail(Wrong(place, "must be a list of texts"));
      if (row.size() != columns) {
        return Fail(Wrong(
            place, fmt::format("has {} texts, but there are {} columns", row.size(), columns)));
      }
      RHIZOME_ASSIGN_OR_RETURN(auto cells, LinesOf(row, place, /*may_be_empty=*/true));
      rows.push_back(std::move(cells));
    }
    return rows;
  }

  /// Returns the error "FILE: "FIELD" WHAT".
  Status Wrong(std::string_view name, std::string_view what) const {
    return Status::InvalidArgument(
        fmt::format("{}: \"{}{}\" {}", file_.string(), prefix_, name, what));
  }

 private:
  ResultsFields(Path file, std::string prefix, nlohmann::json object)
      : file_(std::move(file)), prefix_(std::move(prefix)), object_(std::move(object)) {}

  Status CheckNames(Names known) const {
    for (const auto& [name, _] : object_.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      return Wrong(name, fmt::format("is not one of the fields {}", fmt::join(known, ", ")));
    }
    return Status::Ok();
  }

  /// Returns the field, or null if it is missing.
  nlohmann::json Value(const std::string& name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nlohmann::json() : *found;
  }

  Result<std::vector<std::string>> LinesOf(const nlohmann::json& list, const std::string& name,
                                           bool may_be_empty) const {
    std::vector<std::string> lines;
    for (const nlohmann::json& line : list) {
      if (!IsLine(line) || (!may_be_empty && line == "")) {
        return Fail(Wrong(fmt::format("{}[{}]", name, lines.size()), "must be one line of text"));
      }
      lines.push_back(line.get<std::string>());
    }
    return lines;
  }

  Path file_;
  std::string prefix_;  // "measured." for the fields of the object `measured`
  nlohmann::json object_;
};

/// Returns whether `text` is a date such as "2026-11" or "2026-11-30".
bool IsDate(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (text.size() != 7 && text.size() != kForm.size()) return false;
  return std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
    return form == 'd' ? c >= '0' && c <= '9' : c == form;
  });
}

Result<ResultsSetup> ReadSetup(FileSystem& fs, const Path& file) {
  RHIZOME_ASSIGN_OR_RETURN(
      const auto fields,
      ResultsFields::Read(fs, file, {"title", "introduction", "setup", "studies"}));
  ResultsSetup setup;
  RHIZOME_ASSIGN_OR_RETURN(setup.title, fields.Line("title"));
  RHIZOME_ASSIGN_OR_RETURN(setup.introduction, fields.Line("introduction"));
  RHIZOME_ASSIGN_OR_RETURN(setup.setup, fields.Lines("setup", /*may_be_empty=*/false));
  RHIZOME_ASSIGN_OR_RETURN(setup.studies, fields.Lines("studies", /*may_be_empty=*/false));
  return setup;
}

Result<ResultsSection> ReadSection(FileSystem& fs, const Path& file) {
  RHIZOME_ASSIGN_OR_RETURN(const auto fields,
                           ResultsFields::Read(fs, file,
                                               {"title", "order", "commands", "setup", "columns",
                                                "rows", "notes", "measured"}));
  ResultsSection section;
  section.file = file;
  RHIZOME_ASSIGN_OR_RETURN(section.title, fields.Line("title"));
  RHIZOME_ASSIGN_OR_RETURN(section.order, fields.Integer("order"));
  RHIZOME_ASSIGN_OR_RETURN(section.commands, fields.Lines("commands", /*may_be_empty=*/false));
  if (fields.Has("setup")) {
    RHIZOME_ASSIGN_OR_RETURN(section.setup, fields.Line("setup"));
  }
  RHIZOME_ASSIGN_OR_RETURN(section.columns, fields.Lines("columns", /*may_be_empty=*/true));
  RHIZOME_ASSIGN_OR_RETURN(section.rows, fields.Rows("rows", section.columns.size()));
  RHIZOME_ASSIGN_OR_RETURN(section.notes, fields.Line("notes"));
  RHIZOME_ASSIGN_OR_RETURN(const auto measured, fields.Object("measured", {"date", "commit"}));
  RHIZOME_ASSIGN_OR_RETURN(section.date, measured.Line("date"));
  if (!IsDate(section.date))
    return Fail(measured.Wrong("date", "must be a date such as 2026-11 or 2026-11-30"));
  if (measured.Has("commit")) {
    RHIZOME_ASSIGN_OR_RETURN(section.commit, measured.Line("commit"));
  }
  return section;
}

/// Returns the fragment by which GitHub links to a heading: lower case, hyphens for spaces, no
/// punctuation.
std::string AnchorOf(std::string_view title) {
  std::string anchor;
  for (const char c : title) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                      static_cast<unsigned char>(c) >= 0x80U;
    if (upper) anchor += static_cast<char>(c - 'A' + 'a');
    if (c == ' ') anchor += '-';
    if (kept) anchor += c;
  }
  return anchor;
}

/// Checks that every section has an order and an anchor of its own.
Status CheckDistinct(const std::vector<ResultsSection>& sections) {
  std::map<std::string, const ResultsSection*> users;
  for (const ResultsSection& section : sections) {
    const std::pair<const char*, std::string> fields[] = {
        {"order", fmt::format("{}", section.order)},
        {"title", fmt::format("#{}", AnchorOf(section.title))}};
    for (const auto& [field, value] : fields) {
      const auto [user, added] = users.emplace(value, &section);
      if (added) continue;
      return Status::InvalidArgument(fmt::format("{}: \"{}\" ({}) is already used by {}",
                                                 section.file.string(), field, value,
                                                 user->second->file.string()));
    }
  }
  return Status::Ok();
}

/// Reads all sections, in the order of the page.
Result<std::vector<ResultsSection>> ReadSections(FileSystem& fs, const Path& folder) {
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(folder));
  std::vector<ResultsSection> sections;
  for (const DirectoryEntry& entry : entries) {
    const bool json = entry.kind == DirectoryEntry::Kind::kFile && entry.name.ends_with(".json");
    if (!json || entry.name == kSetupFile) continue;
    RHIZOME_ASSIGN_OR_RETURN(auto section, ReadSection(fs, folder / entry.name));
    sections.push_back(std::move(section));
  }
  if (sections.empty()) {
    return Fail(Status::InvalidArgument(
        fmt::format("{} has no results: no .json file except {}", folder.string(), kSetupFile)));
  }
  RHIZOME_RETURN_IF_ERROR(CheckDistinct(sections));
  std::sort(sections.begin(), sections.end(),
            [](const auto& a, const auto& b) { return a.order < b.order; });
  return sections;
}

std::string TableLine(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) {
    line += cell.empty() ? "" : " ";
    for (const char c : cell) {
      if (c == '|') line += '\\';
      line += c;
    }
    line += " |";
  }
  return line + "\n";
}

std::string Head(const ResultsSetup& setup, const std::vector<ResultsSection>& sections) {
  std::string text = fmt::format("# {}\n", setup.title);
  text +=
      "<!-- Generated by `rhizome bench report` from docs/results/*.json. Change those files. -->\n"
      "\n";
  text += setup.introduction + "\n\n";
  for (const std::string& line : setup.setup) text += fmt::format("- {}\n", line);
  std::vector<std::string> contents;
  for (const ResultsSection& section : sections)
    contents.push_back(fmt::format("[{}](#{})", section.title, AnchorOf(section.title)));
  text += fmt::format("\nContents: {}\n", fmt::join(contents, " · "));
  text += fmt::format("\nStudies: {}\n", fmt::join(setup.studies, " · "));
  return text;
}

std::string SectionText(const ResultsSection& section) {
  std::string text = fmt::format("\n## {}\n\n", section.title);
  if (!section.setup.empty()) text += section.setup + " ";
  text += fmt::format("{} Measured {}{}.\n\n", section.notes, section.date,
                      section.commit.empty() ? "" : " at " + section.commit);
  for (const std::string& command : section.commands) text += fmt::format("    {}\n", command);
  text += fmt::format("\n{}|", TableLine(section.columns));
  for (std::size_t i = 0; i < section.columns.size(); ++i) text += "---|";
  text += "\n";
  for (const std::vector<std::string>& row : section.rows) text += TableLine(row);
  return text;
}

/// Returns the part of `line` from shortly before byte `at`, for a message.
std::string PartAround(std::string_view line, std::size_t at) {
  constexpr std::size_t kBefore = 24;
  constexpr std::size_t kMaxBytes = 80;
  std::size_t begin = at < kBefore ? 0 : at - kBefore;
  while (begin > 0 && (static_cast<unsigned char>(line[begin]) & 0xC0U) == 0x80U) --begin;
  return fmt::format("{}{}", begin == 0 ? "" : "... ", Excerpt(line.substr(begin), kMaxBytes));
}

}  // namespace

Result<ResultsPage> MakeResultsPage(FileSystem& fs, const Path& folder) {
  if (const auto info = fs.Stat(folder); !info && info.error().code() == StatusCode::kNotFound) {
    return Fail(Status::NotFound(
        fmt::format("there is no folder '{}'; docs/results in the source tree has the results",
                    folder.string())));
  }
  RHIZOME_ASSIGN_OR_RETURN(const ResultsSetup setup, ReadSetup(fs, folder / kSetupFile));
  RHIZOME_ASSIGN_OR_RETURN(const auto sections, ReadSections(fs, folder));
  ResultsPage page{.text = Head(setup, sections), .sections = sections.size()};
  for (const ResultsSection& section : sections) page.text += SectionText(section);
  return page;
}

Status CompareResultsPages(const Path& path, std::string_view there, const Path& folder,
                           std::string_view generated) {
  if (there == generated) return Status::Ok();
  const std::vector<std::string> old_lines = SplitList(there, '\n');
  const std::vector<std::string> new_lines = SplitList(generated, '\n');
  const auto [old_end, new_end] =
      std::mismatch(old_lines.begin(), old_lines.end(), new_lines.begin(), new_lines.end());
  const std::string old_line = old_end == old_lines.end() ? "" : *old_end;
  const std::string new_line = new_end == new_lines.end() ? "" : *new_end;
  const auto byte =
      std::mismatch(old_line.begin(), old_line.end(), new_line.begin(), new_line.end());
  const auto at = static_cast<std::size_t>(byte.first - old_line.begin());
  return Status::InvalidArgument(
      fmt::format("{}:{} is \"{}\", but {} says \"{}\"; `rhizome bench report` updates the page",
                  path.string(), old_end - old_lines.begin() + 1, PartAround(old_line, at),
                  folder.string(), PartAround(new_line, at)));
}

}  // namespace rhizome
