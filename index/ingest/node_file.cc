// The nodes file. For each line, the reader assigns each field to the role of its column (id, type,
// label, split, other), checks all fields, and then adds the id to the IdCollector and the values
// to their columns. Malformed lines are counted and leave a gap in NodeTable::accepted.

#include "index/ingest/node_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "index/ingest/edge_file.h"
#include "index/ingest/id_plan.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kReadNodesPhase = "read nodes";

enum class Role : std::uint8_t { kSkip, kId, kType, kLabel, kSplit, kText, kOther };

Role RoleOf(const std::string& name, const IngestOptions& options) {
  const std::string& split = options.split_column.empty() ? "split" : options.split_column;
  if (name == split) return Role::kSplit;
  if (name == "id") return Role::kId;
  if (name == "type" || name == "ntype") return Role::kType;
  if (name == "label") return Role::kLabel;
  // A column `split` in addition to the chosen split column would use the same array name.
  if (name == "-" || name == "split") return Role::kSkip;
  if (name == "name" && !options.types.contains(name)) return Role::kText;
  return Role::kOther;
}

bool IsValue(Role role) { return role != Role::kSkip && role != Role::kId && role != Role::kType; }

class NodeReader {
 public:
  NodeReader(IngestContext& context, IdCollector& ids) : context_(context), ids_(ids) {
    for (const std::string& type : context.options.vertex_types) table_.type_names.Add(type);
    for (const std::string& name : context.options.node_columns) {
      roles_.push_back(RoleOf(name, context.options));
      if (roles_.back() == Role::kSplit)
        table_.columns.emplace_back("split", NodeColumn::Kind::kSplit);
      if (roles_.back() == Role::kText) table_.columns.emplace_back(name, NodeColumn::Kind::kText);
      if (roles_.back() == Role::kLabel || roles_.back() == Role::kOther) {
        const auto type = ColumnTypeOf(context.options.types, name);  // CheckNodeColumns has passed
        table_.columns.emplace_back(
            name,
            roles_.back() == Role::kLabel ? NodeColumn::Kind::kLabel : NodeColumn::Kind::kOther,
            type ? *type : std::nullopt);
      }
    }
    // The types of ends have the first numbers, with or without a vertex in the node file.
    for (const std::string& type : context.options.end_types) table_.type_names.Add(type);
  }

  Status Read(const FilePlan& plan) {
    type_ = plan.type;
    RHIZOME_ASSIGN_OR_RETURN(const auto reader,
                             context_.OpenTable(plan.path, plan.dialect, plan.header));
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, reader->ReadLine());
      if (next == TableReader::Next::kEnd) break;
      ++table_.lines;
      const std::optional<std::string> reason =
          next == TableReader::Next::kMalformed ? reader->reason() : TakeLine(reader->fields());
      if (reason) RHIZOME_RETURN_IF_ERROR(context_.BadLine(*reader, *reason));
      NoteLine(!reason);
      if (table_.lines % kLinesPerReport == 0) RHIZOME_RETURN_IF_ERROR(Progress(reader->stream()));
    }
    return Progress(reader->stream());
  }

  // Adds the ids that are in memory, and their types, if any; each counts as a line.
  Status Read(const IdSpan& ids, std::span<const std::string_view> types, const Path& path) {
    std::vector<Role> expected{Role::kId};
    if (!types.empty()) expected.push_back(Role::kType);
    if (roles_ != expected || (!ids.integers.empty() && !ids.texts.empty()))
      return Status::InvalidArgument(fmt::format(
          "{}: ids in memory, and their types, must be the only columns of nodes, and of one kind",
          path.string()));
    if (!types.empty() && types.size() != ids.size())
      return Status::InvalidArgument(fmt::format("{}: there are {} ids, but {} types",
                                                 path.string(), ids.size(), types.size()));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::string number = ids.texts.empty() ? std::to_string(ids.integers[i]) : "";
      const std::array<std::string_view, 2> fields{ids.texts.empty() ? number : ids.texts[i],
                                                   types.empty() ? "" : types[i]};
      ++table_.lines;
      if (const auto reason = TakeLine(std::span(fields).first(expected.size())))
        return Status::InvalidArgument(fmt::format("{}: node {}: {}", path.string(), i, *reason));
      if (table_.lines % kLinesPerReport == 0 || table_.lines == ids.size())
        RHIZOME_RETURN_IF_ERROR(context_.Progress(kReadNodesPhase, {path, table_.lines, ids.size()},
                                                  ids_.memory_bytes() + table_.memory_bytes()));
    }
    return Status::Ok();
  }

  NodeTable&& TakeTable() && { return std::move(table_); }

 private:
  /// Adds the line's vertex. If the line is malformed, adds nothing and returns the reason.
  std::optional<std::string> TakeLine(std::span<const std::string_view> fields) {
    if (fields.size() != roles_.size())
      return WrongFieldCount(fields.size(), roles_.size(), "`node_columns`");
    std::string_view id;
    std::optional<std::string_view> type;
    auto column = table_.columns.begin();
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      if (roles_[i] == Role::kSkip) continue;
      if (roles_[i] == Role::kId) {
        id = fields[i];
        if (auto reason = ids_.Refuse(id)) return reason;
      } else if (roles_[i] == Role::kType) {
        type = fields[i];
        if (auto reason = table_.type_names.Refuse(*type)) return reason;
      } else if (auto reason = (column++)->Stage(fields[i])) {
        return reason;
      }
    }
    if (!type && !type_.empty()) type = type_;
    if (!context_.options.end_types.empty() && type) {
      JoinTypedId(*type, id, typed_id_);
      id = typed_id_;
    }
    if (!ids_.AddNode(id)) return fmt::format("the id '{}' is repeated", id);
    if (ids_.texts()) context_.NoteTexts(id, id);
    if (type) table_.type.push_back(table_.type_names.Add(*type));
    for (std::size_t i = 0, c = 0; i < roles_.size(); ++i) {
      if (!IsValue(roles_[i])) continue;
      NodeColumn& kept = table_.columns[c++];
      if (kept.Keep()) context_.NoteTextColumn(kept.name(), fields[i]);
    }
    return std::nullopt;
  }

  /// Records the map from lines to accepted lines, once the two differ.
  void NoteLine(bool accepted) {
    if (accepted && table_.accepted.empty()) return;
    if (table_.accepted.empty())
      for (std::uint64_t i = 0; i + 1 < table_.lines; ++i)
        table_.accepted.push_back(static_cast<std::int64_t>(i));
    const auto last = static_cast<std::int64_t>(ids_.node_count()) - 1;
    table_.accepted.push_back(accepted ? last : -1);
  }

  Status Progress(const InputStream& stream) {
    return context_.Progress(kReadNodesPhase, stream, ids_.memory_bytes() + table_.memory_bytes());
  }

  IngestContext& context_;
  IdCollector& ids_;
  std::vector<Role> roles_;  // by column of the file
  std::string type_;         // FilePlan::type
  std::string typed_id_;
  NodeTable table_;
};

}  // namespace

std::uint64_t NodeTable::memory_bytes() const {
  std::uint64_t bytes = accepted.capacity() * 8 + type.capacity() * 2;
  for (const NodeColumn& column : columns) bytes += column.memory_bytes();
  return bytes;
}

bool HasVertexTypes(const IngestOptions& options) {
  if (!options.vertex_ranges.empty()) return true;
  return options.nodes && std::ranges::any_of(options.node_columns, [&](const std::string& name) {
           return RoleOf(name, options) == Role::kType;
         });
}

std::vector<std::string> NodeArrayNames(const IngestOptions& options) {
  std::vector<std::string> names;
  for (const std::string& name : options.node_columns) {
    const Role role = RoleOf(name, options);
    if (role == Role::kSplit) names.emplace_back("split");
    if (role == Role::kLabel || role == Role::kText || role == Role::kOther) names.push_back(name);
  }
  const auto& features = options.feature_columns;
  std::erase_if(names, [&](const std::string& name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  });
  if (!features.empty()) names.emplace_back("feat");
  if (!options.random_split.empty()) names.emplace_back("split");
  return names;
}

std::vector<std::string> TypedNodeColumns(const IngestOptions& options) {
  std::vector<std::string> names;
  for (const std::string& name : options.node_columns)
    if (const Role role = RoleOf(name, options);
        role == Role::kLabel || role == Role::kText || role == Role::kOther)
      names.push_back(name);
  return names;
}

Status CheckNodeColumns(const IngestOptions& options) {
  const auto count = [&](Role role) {
    return std::count_if(options.node_columns.begin(), options.node_columns.end(),
                         [&](const std::string& name) { return RoleOf(name, options) == role; });
  };
  if (count(Role::kId) != 1)
    return Status::InvalidArgument("`node_columns` must name the column id exactly once");
  if (count(Role::kType) > 1)
    return Status::InvalidArgument("`node_columns` names more than one type column (type, ntype)");
  if (!options.split_column.empty() && count(Role::kSplit) == 0)
    return Status::InvalidArgument(
        fmt::format("`split_column` '{}' is not in `node_columns`", options.split_column));
  for (const std::string& name : TypedNodeColumns(options)) {
    RHIZOME_ASSIGN_OR_RETURN(const auto type, ColumnTypeOf(options.types, name));
    if (RoleOf(name, options) != Role::kLabel || !type || type->is_text) continue;
    if (type->dtype != DataType::kInt64 || type->is_timestamp)
      return Status::InvalidArgument(
          fmt::format("`types`: the column label has classes; its type is int64 or text, not {}",
                      options.types.at(name)));
  }
  return Status::Ok();
}

Result<NodeTable> ReadNodes(IngestContext& context, IdCollector& ids) {
  NodeReader reader(context, ids);
  const IngestOptions& options = context.options;
  RHIZOME_RETURN_IF_ERROR(options.node_ids
                              ? reader.Read(*options.node_ids, options.node_types, *options.nodes)
                              : reader.Read(*context.plan->nodes));
  NodeTable table = std::move(reader).TakeTable();
  for (const NodeColumn& column : table.columns) context.AddNotes(column.Notes());
  if (!options.end_types.empty()) RHIZOME_RETURN_IF_ERROR(CheckTypedIds(table.type_names.All()));
  if (!options.node_lines || *options.node_lines == table.lines) return table;
  return Fail(Status::InvalidArgument(fmt::format("{}: {} lines are expected, but there are {}",
                                                  options.nodes->string(), *options.node_lines,
                                                  table.lines)));
}

}  // namespace internal
}  // namespace rhizome
