#include "tools/import/input_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tools/cli/text.h"

namespace rhizome {
namespace {

Json ColumnJson(const ColumnPlan& column) {
  return {{"name", column.name}, {"role", column.role}, {"type", ColumnTypeName(column.type)}};
}

Json FileJson(const FilePlan& file, const std::string& array) {
  Json columns = Json::array();
  for (const ColumnPlan& column : file.columns) columns.push_back(ColumnJson(column));
  const bool text = file.format == InputFormat::kText;
  return {{"path", file.path.string()},
          {"kind", InputKindName(file.kind)},
          {"array", array.empty() ? Json() : Json(array)},
          {"format", InputFormatName(file.format)},
          {"compression", file.compression.empty() ? Json() : Json(file.compression)},
          {"delimiter", text ? Json(DelimiterName(file.dialect.delimiter)) : Json()},
          {"comments", file.dialect.comments},
          {"header", text ? Json(file.header) : Json()},
          {"columns", columns},
          {"rows", file.lines},
          {"comment_lines", file.comment_lines},
          {"bad_lines", file.bad_lines},
          {"whole", file.whole}};
}

std::vector<const FilePlan*> TextFiles(const InputPlan& plan) {
  std::vector<const FilePlan*> files;
  const auto add = [&](const FilePlan& file) {
    if (file.format == InputFormat::kText) files.push_back(&file);
  };
  for (const FilePlan& file : plan.edges) add(file);
  if (plan.nodes) add(*plan.nodes);
  for (const FilePlan& file : plan.arrays) add(file);
  return files;
}

/// Returns the command that says what was found. A property in which files differ is left out: it
/// is found again.
std::string CommandOf(const InputPlan& plan, const std::string& store) {
  const IngestOptions& options = plan.options;
  std::string command = fmt::format("rhizome ingest {}", ShellWord(store));
  const auto add = [&](std::string_view flag, const std::string& value) {
    command += fmt::format(" {} {}", flag, ShellWord(value));
  };
  if (!options.edges.empty()) command += " --edges";
  for (const EdgeFile& file : options.edges) command += " " + ShellWord(file.path.string());
  const auto roles_of = [](const FilePlan& file) {
    std::vector<std::string> roles;
    for (const ColumnPlan& column : file.columns) roles.push_back(column.role);
    return roles;
  };
  if (!plan.edges.empty() &&
      std::all_of(plan.edges.begin(), plan.edges.end(),
                  [&](const FilePlan& file) { return roles_of(file) == options.columns; }))
    add("--columns", fmt::format("{}", fmt::join(options.columns, ",")));
  if (options.nodes) {
    add("--nodes", options.nodes->string());
    add("--node-columns", fmt::format("{}", fmt::join(options.node_columns, ",")));
  }
  if (!options.split_column.empty()) add("--split-column", options.split_column);
  for (const ArrayFile& file : options.arrays)
    add("--array",
        fmt::format("{}={}{}", file.name, file.path.string(),
                    file.triplets.value_or(false) ? fmt::format(":coo:{}", file.dim) : ""));
  const auto texts = TextFiles(plan);
  const auto equal = [&](auto property) {
    return !texts.empty() && std::all_of(texts.begin(), texts.end(), [&](const FilePlan* file) {
      return property(*file) == property(*texts.front());
    });
  };
  if (equal([](const FilePlan& file) { return file.header; }))
    command += texts.front()->header ? " --header" : " --no-header";
  if (equal([](const FilePlan& file) { return file.dialect.delimiter; }))
    add("--delimiter", std::string(DelimiterName(texts.front()->dialect.delimiter)));
  if (!options.end_types.empty())
    add("--end-types", fmt::format("{}", fmt::join(options.end_types, ",")));
  else
    add("--id-type", plan.ids.texts ? "string" : "integer");
  if (options.undirected) command += " --undirected";
  if (options.vertices) add("--vertices", std::to_string(*options.vertices));
  return command;
}

std::string DescribeFile(const Json& file) {
  const auto text = [&](const char* key) { return file[key].get<std::string>(); };
  std::string line = fmt::format("{}: {}", text("path"), text("kind"));
  if (!file["array"].is_null()) line += fmt::format(" '{}'", text("array"));
  line += fmt::format(", {}", text("format"));
  if (!file["compression"].is_null()) line += fmt::format(" in {}", text("compression"));
  if (!file["delimiter"].is_null())
    line += fmt::format(", delimiter {}, {}", text("delimiter"),
                        file["header"].get<bool>() ? "header" : "no header");
  line += fmt::format(", {}{}", Plural(file["rows"], "row"),
                      file["whole"].get<bool>() ? "" : " in the first lines");
  if (file["comment_lines"] != 0)
    line += fmt::format(", {}", Plural(file["comment_lines"], "comment"));
  if (file["bad_lines"] != 0) line += fmt::format(", {}", Plural(file["bad_lines"], "bad line"));
  line += "\n";
  TextTable table;
  for (const Json& column : file["columns"])
    table.Add({column["role"].get<std::string>(), column["type"].get<std::string>(),
               column["name"].get<std::string>()});
  if (!file["delimiter"].is_null() && file["kind"] != "array") line += table.ToString("  ");
  return line;
}

}  // namespace

Json InputPlanJson(const InputPlan& plan, const std::string& store) {
  Json files = Json::array();
  for (const FilePlan& file : plan.edges) files.push_back(FileJson(file, ""));
  if (plan.nodes) files.push_back(FileJson(*plan.nodes, ""));
  for (std::size_t i = 0; i < plan.arrays.size(); ++i)
    files.push_back(FileJson(plan.arrays[i], plan.options.arrays[i].name));
  const IngestOptions& options = plan.options;
  return {{"store", store},
          {"files", files},
          {"columns", options.edges.empty() ? Json::array() : Json(options.columns)},
          {"node_columns", options.nodes ? Json(options.node_columns) : Json::array()},
          {"end_types", options.end_types},
          {"id_kind", plan.ids.texts ? "string" : "integer"},
          {"undirected", options.undirected},
          {"vertices", options.vertices ? Json(*options.vertices) : Json()},
          {"notes", plan.notes},
          {"command", CommandOf(plan, store)}};
}

std::string DescribeInputPlan(const Json& f) {
  std::string text;
  for (const Json& file : f["files"]) text += DescribeFile(file);
  text += fmt::format("ids: {}\n", f["id_kind"] == "string" ? "texts" : "integers");
  for (const Json& note : f["notes"]) text += fmt::format("note: {}\n", note.get<std::string>());
  return text + fmt::format("nothing was written; the same in full:\n  {}\n",
                            f["command"].get<std::string>());
}

}  // namespace rhizome
