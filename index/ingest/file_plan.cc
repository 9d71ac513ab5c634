// Plans of text files. PlanText finds the dialect (SniffText), decides whether the first row is a
// header (IsHeader), and gives each column a role: by its name (EdgeRoles, NodeRoles), or without a
// header by its position (RolesByPosition).

#include "index/ingest/file_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "index/ingest/column_roles.h"
#include "index/input/number.h"
#include "rhizome/graph_types.h"
#include "storage/base/escaped_text.h"

namespace rhizome {
inline namespace internal {
namespace {

bool IsNumber(std::string_view text) {
  if (ParseCanonicalInteger(text) || ParseFiniteFloat(text)) return true;
  if (!text.empty() && text.find_first_not_of("+-0123456789") == text.npos) return true;
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
  });
  if (small.starts_with('-') || small.starts_with('+')) small.erase(0, 1);
  return small == "nan" || small == "inf" || small == "infinity";
}

/// Returns whether a text begins like a date of ISO 8601: 2024-01-31.
bool IsTime(std::string_view text) {
  if (text.size() < 10 || text[4] != '-' || text[7] != '-') return false;
  for (const std::size_t i : {0, 1, 2, 3, 5, 6, 8, 9})
    if (text[i] < '0' || text[i] > '9') return false;
  return text.size() == 10 || text[10] == 'T' || text[10] == ' ';
}

ColumnType TypeOf(std::string_view text) {
  if (text.empty()) return ColumnType::kEmpty;
  if (ParseCanonicalInteger(text)) return ColumnType::kInteger;
  if (IsTime(text)) return ColumnType::kTime;
  return IsNumber(text) ? ColumnType::kNumber : ColumnType::kText;
}

/// Returns the type that has values of both types.
ColumnType Join(ColumnType a, ColumnType b) {
  if (a == b || b == ColumnType::kEmpty) return a;
  if (a == ColumnType::kEmpty) return b;
  const auto number = [](ColumnType type) {
    return type == ColumnType::kInteger || type == ColumnType::kNumber;
  };
  return number(a) && number(b) ? ColumnType::kNumber : ColumnType::kText;
}

std::set<std::string_view> Distinct(std::span<const SniffedRow> rows, std::size_t column) {
  std::set<std::string_view> values;
  for (const SniffedRow& row : rows)
    if (column < row.fields.size()) values.insert(row.fields[column]);
  return values;
}

/// Returns whether nearly all values of a column are numbers or times.
bool HasNumbers(std::span<const SniffedRow> rows, std::size_t column) {
  constexpr std::size_t kFewTexts = 10;  // one text among 10 numbers is tolerated
  std::size_t numbers = 0;
  std::size_t texts = 0;
  for (const SniffedRow& row : rows) {
    if (column >= row.fields.size() || row.fields[column].empty()) continue;
    ++(TypeOf(row.fields[column]) == ColumnType::kText ? texts : numbers);
  }
  return numbers > 0 && numbers >= kFewTexts * texts;
}

/// Returns whether a column may have ids: integers, texts, or digits with leading zeros.
bool AreIds(std::span<const SniffedRow> rows, std::size_t column) {
  const ColumnType type = TypeOfColumn(rows, column);
  if (type == ColumnType::kText || type == ColumnType::kInteger) return true;
  return std::all_of(rows.begin(), rows.end(), [column](const SniffedRow& row) {
    return column >= row.fields.size() ||
           row.fields[column].find_first_not_of("0123456789") == std::string::npos;
  });
}

bool ShareAValue(const std::set<std::string_view>& a, const std::set<std::string_view>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&b](std::string_view value) { return b.contains(value); });
}

/// Three columns without names: the ends of edges, and their relations.
struct Triples {
  std::array<std::set<std::string_view>, 2> ends;
  std::set<std::string_view> relations;

  Triples(std::span<const SniffedRow> rows, std::size_t type)
      : ends{Distinct(rows, 0), Distinct(rows, 3 - type)}, relations(Distinct(rows, type)) {}

  /// Returns whether relations are few, and no ids.
  bool Likely() const {
    const std::size_t most = std::max<std::size_t>({ends[0].size(), ends[1].size(), 2});
    return 2 * relations.size() <= most && !ShareAValue(relations, ends[0]) &&
           !ShareAValue(relations, ends[1]);
  }
};

/// Returns the roles of knowledge-graph triples, whose relations may be between the ends or after
/// them; nothing if both readings or none is likely.
std::optional<std::vector<std::string>> RolesOfTriples(std::span<const SniffedRow> rows) {
  std::vector<std::vector<std::string>> likely;
  std::vector<std::vector<std::string>> sharing;  // those whose sources and targets share an id
  for (const std::size_t type : {std::size_t{1}, std::size_t{2}}) {
    if (TypeOfColumn(rows, type) != ColumnType::kText || !AreIds(rows, 0) ||
        !AreIds(rows, 3 - type))
      continue;
    const Triples triples(rows, type);
    if (!triples.Likely()) continue;
    std::vector<std::string> roles = {"src", "dst"};
    roles.insert(roles.begin() + static_cast<std::ptrdiff_t>(type), "type");
    if (ShareAValue(triples.ends[0], triples.ends[1])) sharing.push_back(roles);
    likely.push_back(std::move(roles));
  }
  if (likely.size() > 1) likely = std::move(sharing);
  if (likely.size() != 1) return std::nullopt;
  return likely.front();
}

std::string FirstLine(std::span<const SniffedRow> rows) {
  return Excerpt(fmt::format("{}", fmt::join(rows.front().fields, " | ")), 120);
}

/// Refuses columns without names, and names the readings.
Status RefusePositions(const Path& path, std::span<const SniffedRow> rows, InputKind kind) {
  const std::size_t count = rows.front().fields.size();
  const std::string line = FirstLine(rows);
  if (kind == InputKind::kEdges && count == 1)
    return Status::InvalidArgument(
        fmt::format("{}:{}: an edge has two ends, but there is one field: {}; name its delimiter "
                    "(`delimiter`), or if it lists vertices, give it as the node file (`nodes`)",
                    path.string(), rows.front().line, line));
  std::string rest;
  for (std::size_t i = kind == InputKind::kEdges ? 3 : 2; i < count; ++i) rest += ",-";
  const bool texts = TypeOfColumn(rows, 2) == ColumnType::kText;
  const std::string readings =
      kind == InputKind::kEdges && texts
          ? fmt::format("`columns=src,type,dst{0}` or `columns=src,dst,type{0}`", rest)
      : kind == InputKind::kEdges ? fmt::format(
                                        "`columns=src,dst,weight{0}`, `columns=src,dst,time{0}` or "
                                        "`columns=src,type,dst{0}`",
                                        rest)
                                  : fmt::format(
                                        "`node_columns=id,label{0}`, `node_columns=id,split{0}` or "
                                        "`node_columns=id,-{0}`",
                                        rest);
  return Status::InvalidArgument(fmt::format(
      "{}: it has {} columns and no header, so their meaning is unclear; the first line "
      "is: {}; name them, for example {}",
      path.string(), count, line, readings));
}

/// Returns the roles of columns without names.
Result<std::vector<std::string>> RolesByPosition(const Path& path, std::span<const SniffedRow> rows,
                                                 InputKind kind) {
  const std::size_t fields = rows.empty() ? 0 : rows.front().fields.size();
  if (kind == InputKind::kNodes) {
    if (fields <= 1) return std::vector<std::string>{"id"};
    return Fail(RefusePositions(path, rows, kind));
  }
  if (fields == 0 || fields == 2) return std::vector<std::string>{"src", "dst"};
  if (fields == 3)
    if (auto roles = RolesOfTriples(rows)) return *std::move(roles);
  return Fail(RefusePositions(path, rows, kind));
}

Status RefuseNames(const Path& path, std::span<const std::string> names, InputKind kind,
                   std::string_view reason) {
  const std::string_view field = kind == InputKind::kEdges ? "columns" : "node_columns";
  return Status::InvalidArgument(fmt::format(
      "{}: {}; the header is: {}; name the columns by `{}` ('-' skips one), or give "
      "`header=false` if the first line is a row",
      path.string(), reason, Excerpt(fmt::format("{}", fmt::join(names, ", ")), 200), field));
}

/// Makes a plan of one file.
class TextPlanner {
 public:
  TextPlanner(const Path& path, const TextWish& wish) : path_(path), wish_(wish) {}

  Result<SniffedFile> Plan(SniffedText text) {
    FilePlan& plan = file_.plan;
    plan.path = path_;
    plan.dialect = text.dialect;
    plan.comment_lines = text.comment_lines;
    plan.bad_lines = text.bad_lines;
    plan.whole = text.whole;
    TakeHeader(std::move(text));
    plan.lines = file_.rows.size();
    RHIZOME_RETURN_IF_ERROR(TakeRoles());
    for (const SniffedRow& row : file_.rows)
      plan.bad_lines += row.fields.size() == plan.columns.size() ? 0 : 1;
    for (std::size_t i = 0; i < plan.columns.size(); ++i)
      plan.columns[i].type = TypeOfColumn(file_.rows, i);
    if (plan.comment_lines > 0) NoteComments();
    return std::move(file_);
  }

 private:
  void TakeHeader(SniffedText text) {
    const std::size_t usual = wish_.columns.empty() ? text.fields : wish_.columns.size();
    const bool likely = !text.rows.empty() && text.rows.front().fields.size() == usual &&
                        IsHeader(text.rows, wish_.kind);
    const bool header = wish_.header.value_or(likely) && !text.rows.empty();
    file_.plan.header = wish_.header.value_or(likely);
    file_.rows = std::move(text.rows);
    if (!header) {
      if (likely)
        Note("its first line, {}, looks like a header, but is taken as a row",
             FirstLine(file_.rows));
      return;
    }
    if (!likely && wish_.header && HasNumber(file_.rows.front()))
      Note("its first line, {}, is taken as the header, though it looks like a row",
           FirstLine(file_.rows));
    names_ = std::move(file_.rows.front().fields);
    file_.rows.erase(file_.rows.begin());
  }

  static bool HasNumber(const SniffedRow& row) {
    return std::any_of(row.fields.begin(), row.fields.end(),
                       [](const std::string& field) { return IsNumber(field); });
  }

  Status TakeRoles() {
    FilePlan& plan = file_.plan;
    RHIZOME_ASSIGN_OR_RETURN(plan.kind, FindKind());
    std::vector<std::string> roles = wish_.columns;
    if (roles.empty() && names_.empty()) {
      RHIZOME_ASSIGN_OR_RETURN(roles, RolesByPosition(path_, file_.rows, plan.kind));
    } else if (roles.empty()) {
      auto found = plan.kind == InputKind::kEdges ? EdgeRoles(names_) : NodeRoles(names_);
      const std::size_t only = plan.kind == InputKind::kEdges ? 2 : 1;
      if (!found && (!wish_.header || names_.size() != only))
        return RefuseNames(path_, names_, plan.kind, found.error().message());
      // A header that was asked for may have any names, if the columns have one reading.
      if (!found && only == 2) roles = {"src", "dst"};
      if (!found && only == 1) roles = {"id"};
      if (found) roles = std::move(found->roles);
      if (found) file_.types = std::move(found->types);
    }
    // The name of the ids says their type also where the columns are given.
    if (!wish_.columns.empty() && !names_.empty() && plan.kind == InputKind::kNodes)
      if (auto found = NodeRoles(names_)) file_.types = std::move(found->types);
    if (!wish_.columns.empty() && plan.kind == InputKind::kEdges) TakeUnusedTypes();
    for (std::size_t i = 0; i < roles.size(); ++i)
      plan.columns.push_back({.name = i < names_.size() ? names_[i] : "", .role = roles[i]});
    NoteRoles();
    return Status::Ok();
  }

  /// Sets unused_types if the ends that the caller chose are those that the names show.
  void TakeUnusedTypes() {
    auto found = EdgeRoles(names_);
    if (!found || found->types.empty() || names_.size() != wish_.columns.size()) return;
    const auto is_end = [](const std::string& role) { return role == "src" || role == "dst"; };
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (is_end(found->roles[i]) != is_end(wish_.columns[i])) return;
    file_.unused_types = std::move(found->types);
  }

  Result<InputKind> FindKind() const {
    if (wish_.kind) return *wish_.kind;
    if (names_.empty()) {
      const bool nodes = !file_.rows.empty() && file_.rows.front().fields.size() == 1;
      return nodes ? InputKind::kNodes : InputKind::kEdges;
    }
    if (NamesEdges(names_)) return InputKind::kEdges;
    const auto edges = EdgeRoles(names_);
    if (NodeRoles(names_)) return InputKind::kNodes;
    return Fail(RefuseNames(
        path_, names_, InputKind::kEdges,
        fmt::format("{}, nor one for the ids of vertices (such as id, node, key, name), which a "
                    "file of vertices needs",
                    edges.error().message())));
  }

  /// Says what was found, unless the name of the file and its only reading say it.
  void NoteRoles() {
    const FilePlan& plan = file_.plan;
    const std::vector<std::string> roles = RolesOf(plan);
    if (!names_.empty() && !wish_.columns.empty() && !wish_.header)
      Note("its first line is a header: {}",
           Excerpt(fmt::format("{}", fmt::join(names_, ", ")), 120));
    if (!names_.empty() && wish_.columns.empty())
      Note("the columns of its header, {}, are read as {}",
           Excerpt(fmt::format("{}", fmt::join(names_, ", ")), 120), fmt::join(roles, ","));
    if (names_.empty() && wish_.columns.empty() && roles.size() > 2)
      Note("its columns are taken as {}", fmt::join(roles, ","));
    const Delimiter by_name =
        ContentExtension(path_) == ".csv" ? Delimiter::kComma : Delimiter::kTab;
    if (!wish_.delimiter && plan.columns.size() > 1 && plan.dialect.delimiter != by_name)
      Note("its fields are separated by {}", PluralOf(plan.dialect.delimiter));
  }

  static std::string_view PluralOf(Delimiter delimiter) {
    switch (delimiter) {
      case Delimiter::kComma:
        return "commas";
      case Delimiter::kSemicolon:
        return "semicolons";
      case Delimiter::kPipe:
        return "pipes";
      case Delimiter::kBlanks:
        return "blanks";
      case Delimiter::kTab:
      case Delimiter::kNone:
        break;
    }
    return "tabs";
  }

  void NoteComments() {
    const FilePlan& plan = file_.plan;
    Note("lines that begin with {} are comments ({} so far)",
         fmt::join(plan.dialect.comments, " or "), plan.comment_lines);
  }

  template <typename... Arguments>
  void Note(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    file_.notes.push_back(fmt::format("{}: {}", path_.string(),
                                      fmt::format(text, std::forward<Arguments>(arguments)...)));
  }

  const Path& path_;
  const TextWish& wish_;
  std::vector<std::string> names_;  // the header
  SniffedFile file_;
};

}  // namespace

ColumnType TypeOfColumn(std::span<const SniffedRow> rows, std::size_t column) {
  ColumnType type = ColumnType::kEmpty;
  for (const SniffedRow& row : rows)
    if (column < row.fields.size()) type = Join(type, TypeOf(row.fields[column]));
  return type;
}

bool IsHeader(std::span<const SniffedRow> rows, std::optional<InputKind> kind) {
  if (rows.empty()) return false;
  const std::vector<std::string>& names = rows.front().fields;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (IsNumber(names[i]) || IsTime(names[i])) return false;
    // An index column, which pandas writes, has no name.
    if (names[i].empty() && i > 0) return false;
  }
  const auto below = rows.subspan(1);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (HasNumbers(below, i)) return true;
  const bool edges = kind.value_or(InputKind::kEdges) == InputKind::kEdges && NamesEdges(names);
  const bool nodes = kind.value_or(InputKind::kNodes) == InputKind::kNodes && NodeRoles(names);
  if (!edges && !nodes) return false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto values = Distinct(below, i);
    if (std::any_of(names.begin(), names.end(),
                    [&](const std::string& name) { return values.contains(name); }))
      return false;
  }
  return true;
}

std::vector<std::string> RolesOf(const FilePlan& plan) {
  std::vector<std::string> roles;
  for (const ColumnPlan& column : plan.columns) roles.push_back(column.role);
  return roles;
}

Result<SniffedFile> PlanText(const FileHead& head, const Path& path, const TextWish& wish) {
  RHIZOME_ASSIGN_OR_RETURN(SniffedText text,
                           SniffText(head, path,
                                     {.delimiter = wish.delimiter,
                                      .fields = wish.columns.size(),
                                      .may_be_one_field = wish.kind == InputKind::kNodes}));
  RHIZOME_ASSIGN_OR_RETURN(SniffedFile file, TextPlanner(path, wish).Plan(std::move(text)));
  file.plan.compression = CompressionName(head.compression);
  return file;
}

}  // namespace internal
}  // namespace rhizome
