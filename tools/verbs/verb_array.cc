#include <fmt/format.h>

#include "cache/job/process_memory.h"
#include "rhizome/array_add.h"
#include "rhizome/array_change.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "tools/cli/text.h"
#include "tools/import/ingest_flags.h"
#include "tools/output/row_files.h"
#include "tools/verbs/verbs.h"
#include "tools/verbs/vertex_array.h"

namespace rhizome {
namespace {

// --- list ----------------------------------------------------------------------------------------

struct ListFlags {
  std::string store;
};

std::uint64_t ArrayBytesOf(const Manifest& manifest, const std::string& stored) {
  std::uint64_t bytes = 0;
  const std::string sidecar = SidecarName(stored);
  for (const FileEntry& file : manifest.files) {
    const std::string_view owner = ArrayOfFile(file.path);
    if (owner == stored || owner == sidecar) bytes += file.size_bytes;
  }
  return bytes;
}

Json ArrayJson(const Manifest& manifest, const ArrayEntry& entry) {
  const auto version = SplitVersion(entry.name);
  const std::string name(version ? version->first : std::string_view(entry.name));
  Json aliases = Json::array();
  const ArraySeries* series = version ? manifest.FindSeries(name) : nullptr;
  if (series != nullptr) {
    for (const ArrayAlias& alias : series->aliases)
      if (alias.history.back() == version->second) aliases.push_back(alias.name);
  }
  return {{"name", name},
          {"version", version ? Json(version->second) : Json(nullptr)},
          {"stored", entry.name},
          {"rows", entry.rows},
          {"dim", entry.dim},
          {"dtype", DataTypeName(entry.dtype)},
          {"layout", ArrayLayoutName(entry.layout)},
          {"codec", CodecName(entry.codec.kind)},
          {"chunk_rows", entry.chunk_rows},
          {"inner_rows", entry.inner_rows},
          {"rows_given", RowsGiven(entry)},
          {"dimension", FirstDimension(entry)},
          {"vertex_type",
           BoundType(entry).empty() ? Json(nullptr) : Json(std::string(BoundType(entry)))},
          {"bytes", ArrayBytesOf(manifest, entry.name)},
          {"aliases", std::move(aliases)}};
}

Json AliasesJson(const Manifest& manifest) {
  Json aliases = Json::array();
  for (const ArraySeries& series : manifest.series) {
    for (const ArrayAlias& alias : series.aliases) {
      aliases.push_back({{"alias", series.name + "@" + alias.name},
                         {"version", alias.history.back()},
                         {"history", alias.history}});
    }
  }
  return aliases;
}

/// Returns the name of an array as users write it: "emb@3" or "feat".
std::string Shown(const Json& array) {
  const std::string name = array["name"].get<std::string>();
  if (array["version"].is_null()) return name;
  return fmt::format("{}@{}", name, array["version"].get<std::uint64_t>());
}

/// Returns "row", "chunk", or, for shards with inner chunks of 128 rows, "chunk, inner 128".
std::string LayoutOf(const Json& array) {
  const auto inner_rows = array["inner_rows"].get<std::uint64_t>();
  const std::string layout = array["layout"].get<std::string>();
  return inner_rows == 0 ? layout : fmt::format("{}, inner {}", layout, inner_rows);
}

std::string DescribeList(const Json& f) {
  TextTable table({2, 3, 7});
  bool bound = false;
  for (const Json& array : f["arrays"]) bound = bound || !array["vertex_type"].is_null();
  std::vector<std::string> head = {"array",  "type",  "rows",    "dim",
                                   "layout", "codec", "aliases", "bytes"};
  if (bound) head.emplace_back("vertex type");
  table.Add(std::move(head));
  for (const Json& array : f["arrays"]) {
    std::string aliases;
    for (const Json& alias : array["aliases"])
      aliases += (aliases.empty() ? "@" : " @") + alias.get<std::string>();
    const bool partial = array["rows_given"] != array["rows"];
    std::vector<std::string> line = {
        Shown(array),
        array["dtype"].get<std::string>(),
        partial
            ? fmt::format("{} of {}", WithCommas(array["rows_given"]), WithCommas(array["rows"]))
            : WithCommas(array["rows"]),
        array["dim"].dump(),
        LayoutOf(array),
        array["codec"].get<std::string>(),
        aliases,
        HumanBytes(array["bytes"])};
    const Json& type = array["vertex_type"];
    if (bound) line.push_back(type.is_null() ? std::string() : type.get<std::string>());
    table.Add(std::move(line));
  }
  return table.ToString();
}

Result<Answer> List(const ListFlags& flags, Session&) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), flags.store, Store::Mode::kRead));
  const Manifest& manifest = store->manifest();
  Json arrays = Json::array();
  for (const ArrayEntry& entry : manifest.arrays)
    if (!entry.name.ends_with(kSidecarSuffix)) arrays.push_back(ArrayJson(manifest, entry));
  return Answer{{{"store", flags.store},
                 {"generation", manifest.generation},
                 {"manifest_version", manifest.version},
                 {"arrays", std::move(arrays)},
                 {"aliases", AliasesJson(manifest)}},
                DescribeList,
                {}};
}

// --- path ----------------------------------------------------------------------------------------

struct PathFlags {
  std::string store;
  std::string array;
};

std::string DescribePath(const Json& f) { return f["path"].get<std::string>() + "\n"; }

/// Prints the path of the current generation's arrays, or of one array, for use by other programs.
Result<Answer> PrintPath(const PathFlags& flags, Session&) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), flags.store, Store::Mode::kRead));
  Path path = store->GenerationFolder() / "arrays";
  if (!flags.array.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(const auto array, store->OpenArray(flags.array));
    path = store->GenerationFolder() / ArrayFolder(array->entry().name, array->entry().form);
  }
  return Answer{{{"store", flags.store},
                 {"generation", store->manifest().generation},
                 {"path", path.string()}},
                DescribePath,
                {}};
}

// --- add, append ---------------------------------------------------------------------------------

struct AddFlags {
  std::string store;
  std::string array;
  std::string ids;
  std::optional<DataType> dtype;
  std::uint64_t empty_columns = 0;  ///< with --empty: columns of the array; 0: rows are in a file
  AddArrayOptions options{.file = {}};
};

struct AppendFlags {
  std::string store;
  std::string array;
  std::string file;
  AddArrayOptions options{.file = {}};
};

std::string DescribeAdded(const Json& f) {
  std::string text = fmt::format("{}: {} rows of {} {}, layout {}; in {}\n",
                                 f["array"].get<std::string>(), WithCommas(f["rows"]),
                                 f["dim"].get<std::uint64_t>(), f["dtype"].get<std::string>(),
                                 f["layout"].get<std::string>(), HumanSeconds(f["seconds"]));
  if (!f["vertex_type"].is_null())
    text += fmt::format("  bound to the {} vertices of type '{}'\n", WithCommas(f["vertices"]),
                        f["vertex_type"].get<std::string>());
  if (f["rows_given"] != (f["vertex_type"].is_null() ? f["rows"] : f["vertices"])) {
    text += fmt::format("  {} vertices have rows, the others {}\n", WithCommas(f["rows_given"]),
                        f["other_rows"].get<std::string>());
  }
  if (f.contains("ids") && !f["ids"].is_null())
    text += fmt::format("  ids of the rows: {}\n", f["ids"].get<std::string>());
  if (f["new_vertices"] != 0)
    text += fmt::format(
        "  {} vertices were added by updates and have no row yet: add rows with array append or "
        "put\n",
        WithCommas(f["new_vertices"]));
  if (!f["dropped_versions"].empty())
    text += fmt::format("  dropped versions: {}\n", f["dropped_versions"].dump());
  return text;
}

/// Returns, as text, the value of vertices for which a file has no row.
std::string_view OtherRows(const ArrayEntry& array) {
  switch (MissingRowOf(array)) {
    case MissingRow::kNoLabel:
      return "-1 (no label)";
    case MissingRow::kNoSplit:
      return "255 (in no set)";
    default:
      return "zeros";
  }
}

Answer AddedAnswer(const std::string& store, const AddArrayReport& report) {
  const auto version = SplitVersion(report.array.name);
  return {{{"store", store},
           {"array", ShownName(report.array.name)},
           {"stored", report.array.name},
           {"version", version ? Json(version->second) : Json(nullptr)},
           {"rows", report.array.rows},
           {"dim", report.array.dim},
           {"dtype", DataTypeName(report.array.dtype)},
           {"layout", ArrayLayoutName(report.array.layout)},
           {"rows_given", report.rows_given},
           {"vertices", report.vertices},
           {"vertex_type", BoundType(report.array).empty()
                               ? Json(nullptr)
                               : Json(std::string(BoundType(report.array)))},
           {"other_rows", OtherRows(report.array)},
           {"rows_read", report.rows_read},
           {"new_vertices", report.new_vertices},
           {"dropped_versions", report.dropped_versions},
           {"seconds", report.seconds},
           {"peak_memory_bytes", PeakResidentBytes()}},
          DescribeAdded,
          {}};
}

/// Returns the file of ids: the given one, otherwise the one that `export` wrote next to a file of
/// rows, if it exists.
std::optional<Path> IdsOf(const Path& rows, const std::string& given) {
  if (!given.empty()) return given;
  const bool beside =
      rows.extension() == ".npy" && FileSystem::Posix().Stat(IdsBeside(rows)).has_value();
  return beside ? std::optional<Path>(IdsBeside(rows)) : std::nullopt;
}

/// Returns an array without rows, for --empty.
Result<ArrayFile> EmptyArray(const AddFlags& flags) {
  if (flags.array.find('=') != std::string::npos || !flags.ids.empty())
    return Fail(Status::InvalidArgument(fmt::format(
        "--empty adds an array without rows: give a NAME without a file and without --ids, not "
        "'{}'",
        flags.array)));
  ArrayFile file;
  RHIZOME_RETURN_IF_ERROR(SetArrayName(flags.array, file));
  file.path = "--empty";
  file.dim = flags.empty_columns;
  file.open = EmptyRows(flags.dtype.value_or(DataType::kFloat32), flags.empty_columns);
  return file;
}

Result<Answer> Add(const AddFlags& flags, Session& session) {
  AddArrayOptions options = flags.options;
  if (flags.empty_columns > 0) {
    RHIZOME_ASSIGN_OR_RETURN(options.file, EmptyArray(flags));
  } else {
    RHIZOME_ASSIGN_OR_RETURN(options.file, ParseArrayFlag(flags.array, flags.dtype));
    options.ids = IdsOf(options.file.path, flags.ids);
  }
  RHIZOME_ASSIGN_OR_RETURN(const AddArrayReport report,
                           AddArray(FileSystem::Posix(), flags.store, options, session.control));
  Answer answer = AddedAnswer(flags.store, report);
  answer.fields["ids"] = options.ids ? Json(options.ids->string()) : Json(nullptr);
  return answer;
}

Result<Answer> Append(const AppendFlags& flags, Session& session) {
  // Parsed like the flag of `add`, which also accepts files of triplets. The name is not used.
  AddArrayOptions options = flags.options;
  RHIZOME_ASSIGN_OR_RETURN(options.file, ParseArrayFlag("rows=" + flags.file, {}));
  options.ids = IdsOf(options.file.path, "");
  RHIZOME_ASSIGN_OR_RETURN(
      const AddArrayReport report,
      AppendRows(FileSystem::Posix(), flags.store, flags.array, options, session.control));
  return AddedAnswer(flags.store, report);
}

// --- drop, rename, alias, rollback, keep -------------------------------------------------------

struct ChangeFlags {
  std::string store;
  std::string array;
  std::string to;
  std::uint64_t number = 0;
  bool flag = false;
  double wait = 0;
};

std::string DescribeChange(const Json& f) { return f["done"].get<std::string>() + "\n"; }

/// Applies one change to the arrays of the store and answers with the fields that `step` returns.
Result<Answer> ChangeArrays(const ChangeFlags& flags, const Session& session,
                            const std::function<Result<Json>(ArrayChange&)>& step) {
  Json fields = {{"store", flags.store}};
  RHIZOME_RETURN_IF_ERROR(
      ArrayChange::Run(FileSystem::Posix(), flags.store, {.wait = WaitFor(flags.wait, session)},
                       [&](ArrayChange& change) -> Status {
                         RHIZOME_ASSIGN_OR_RETURN(const Json made, step(change));
                         fields.update(made);
                         return Status::Ok();
                       }));
  return Answer{std::move(fields), DescribeChange, {}};
}

Result<Answer> Drop(const ChangeFlags& flags, Session& session) {
  return ChangeArrays(flags, session, [&](ArrayChange& change) -> Result<Json> {
    const std::size_t before = change.manifest().arrays.size();
    RHIZOME_RETURN_IF_ERROR(change.Drop(flags.array, flags.flag));
    return Json{{"array", flags.array},
                {"arrays_dropped", before - change.manifest().arrays.size()},
                {"done", fmt::format("dropped {}", flags.array)}};
  });
}

Result<Answer> Rename(const ChangeFlags& flags, Session& session) {
  return ChangeArrays(flags, session, [&](ArrayChange& change) -> Result<Json> {
    RHIZOME_RETURN_IF_ERROR(change.Rename(flags.array, flags.to));
    return Json{{"from", flags.array},
                {"to", flags.to},
                {"done", fmt::format("{} is now {}", flags.array, flags.to)}};
  });
}

Result<ArrayReference> ParseAlias(const std::string& text) {
  RHIZOME_ASSIGN_OR_RETURN(ArrayReference reference, ParseArrayReference(text));
  if (!reference.selector.empty() && CheckAlias(reference.selector).ok()) return reference;
  return Fail(Status::InvalidArgument(
      fmt::format("'{}' is not an alias: write ARRAY@WORD, such as emb@live", text)));
}

Result<Answer> Alias(const ChangeFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayReference alias, ParseAlias(flags.array));
  if (flags.flag == (flags.number != 0))
    return Fail(Status::InvalidArgument("give either a version or --drop"));
  return ChangeArrays(flags, session, [&](ArrayChange& change) -> Result<Json> {
    if (flags.flag) {
      RHIZOME_RETURN_IF_ERROR(change.DropAlias(alias.name, alias.selector));
      return Json{{"alias", flags.array}, {"done", fmt::format("dropped {}", flags.array)}};
    }
    RHIZOME_RETURN_IF_ERROR(change.SetAlias(alias.name, alias.selector, flags.number));
    return Json{{"alias", flags.array},
                {"version", flags.number},
                {"done", fmt::format("{} is now {}@{}", flags.array, alias.name, flags.number)}};
  });
}

Result<Answer> RollBack(const ChangeFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayReference alias, ParseAlias(flags.array));
  return ChangeArrays(flags, session, [&](ArrayChange& change) -> Result<Json> {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t version,
                             change.RollBack(alias.name, alias.selector));
    return Json{{"alias", flags.array},
                {"version", version},
                {"done", fmt::format("{} is {}@{} again", flags.array, alias.name, version)}};
  });
}

Result<Answer> Keep(const ChangeFlags& flags, Session& session) {
  return ChangeArrays(flags, session, [&](ArrayChange& change) -> Result<Json> {
    RHIZOME_ASSIGN_OR_RETURN(const auto dropped, change.KeepNewest(flags.array, flags.number));
    return Json{
        {"array", flags.array},
        {"dropped_versions", dropped},
        {"done", fmt::format("dropped {} of {}", Plural(dropped.size(), "version"), flags.array)}};
  });
}

// --- Flags ------------------------------------------------------------------------------------

void AddStore(CLI::App& verb, std::string& store) {
  verb.add_option("STORE", store, "The store's folder")->required();
}

CLI::App* AddChange(CLI::App& array, Session& session, const std::string& name,
                    const std::string& description, const std::string& example,
                    const std::shared_ptr<ChangeFlags>& flags,
                    Result<Answer> (*run)(const ChangeFlags&, Session&), const std::string& what) {
  CLI::App* verb = AddVerb(array, session, name, description, example, flags, run);
  AddStore(*verb, flags->store);
  verb->add_option(what, flags->array, "Name of the array")->required();
  AddWait(*verb, flags->wait);
  return verb;
}

void AddAdd(CLI::App& array, Session& session) {
  auto flags = std::make_shared<AddFlags>();
  AddArrayOptions& options = flags->options;
  CLI::App* verb =
      AddVerb(array, session, "add", "Add an array, or a new version of one, from a file",
              "rhizome array add demo.rz feat2=demo/features.npy", flags, Add);
  AddStore(*verb, flags->store);
  verb->add_option("ARRAY", flags->array,
                   "NAME=F: .npy, a Zarr v3 folder, or text with one row a line; NAME=F:coo:DIM: "
                   "lines 'row column value'; TYPE:NAME=F: rows of the vertices of one type only; "
                   "rows in the order of export, or of the ids in F.ids.tsv next to F.npy; with "
                   "--empty: NAME or TYPE:NAME")
      ->required();
  verb->add_option("--empty", flags->empty_columns,
                   "Add an array of DIM columns without rows, which put adds later; --dtype is "
                   "float32 by default")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 31))
      ->type_name("DIM");
  verb->add_option(
          "--ids", flags->ids,
          "File with the external id of each row, one per line; default: F.ids.tsv, if it exists")
      ->type_name("F");
  verb->add_flag("--new-version", options.new_version, "If the array exists, add its next version");
  verb->add_option("--keep", options.keep,
                   "Afterwards drop all versions except the newest N and those with an alias")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->type_name("N");
  verb->add_flag("--live", options.live, "Let the alias NAME@live refer to the new version");
  AddDtypeFlag(*verb, flags->dtype);
  AddChoice<ArrayLayout>(*verb, "--layout", options.layout,
                         {{"row", ArrayLayout::kRow}, {"chunk", ArrayLayout::kChunk}},
                         "row: fast random reads, for training; chunk: compressed, for scans");
  AddChunkRowsFlag(*verb, options.chunk_rows);
  AddInnerRowsFlag(*verb, options.inner_rows);
  AddCodecFlag(*verb, options.codec);
  AddSize(*verb, "--memory", options.memory_bytes, "Memory for sorting rows")->default_str("1G");
  AddScratch(*verb, options.scratch);
  AddWait(*verb, options.wait_seconds);
}

void AddAppend(CLI::App& array, Session& session) {
  auto flags = std::make_shared<AppendFlags>();
  CLI::App* verb =
      AddVerb(array, session, "append",
              "Append rows, by vertex id, to an array that has fewer rows than there are vertices",
              "rhizome array append demo.rz part rest.npy", flags, Append);
  AddStore(*verb, flags->store);
  verb->add_option("ARRAY", flags->array, "Name of the array, or of a version of it")->required();
  verb->add_option(
          "F", flags->file,
          "Rows: .npy, a Zarr v3 folder, or text with one row a line; F:coo:DIM: lines 'row "
          "column value'")
      ->required();
  AddSize(*verb, "--memory", flags->options.memory_bytes, "Memory for sorting rows")
      ->default_str("1G");
  AddScratch(*verb, flags->options.scratch);
  AddWait(*verb, flags->options.wait_seconds);
}

void AddChanges(CLI::App& array, Session& session) {
  auto drop = std::make_shared<ChangeFlags>();
  AddChange(array, session, "drop", "Drop an array, a version of one, or an edge attribute",
            "rhizome array drop demo.rz emb@1", drop, Drop, "ARRAY")
      ->add_flag("--all-versions", drop->flag, "Drop all versions and aliases");
  auto rename = std::make_shared<ChangeFlags>();
  AddChange(array, session, "rename", "Rename an array with all its versions",
            "rhizome array rename demo.rz feat2 x", rename, Rename, "FROM")
      ->add_option("TO", rename->to, "New name")
      ->required();
  auto alias = std::make_shared<ChangeFlags>();
  CLI::App* verb = AddChange(array, session, "alias", "Let an alias refer to a version",
                             "rhizome array alias demo.rz emb@live 2", alias, Alias, "ALIAS");
  verb->add_option("VERSION", alias->number, "Version that the alias refers to");
  verb->add_flag("--drop", alias->flag, "Remove the alias");
  auto back = std::make_shared<ChangeFlags>();
  AddChange(array, session, "rollback", "Let an alias refer to its previous version again",
            "rhizome array rollback demo.rz emb@live", back, RollBack, "ALIAS");
  auto keep = std::make_shared<ChangeFlags>();
  AddChange(array, session, "keep", "Drop all versions except the newest and those with an alias",
            "rhizome array keep demo.rz emb 2", keep, Keep, "ARRAY")
      ->add_option("N", keep->number, "Number of newest versions to keep")
      ->required();
}

}  // namespace

void AddArrayVerb(CLI::App& root, Session& session) {
  CLI::App* array =
      root.add_subcommand("array", "Add, extend, drop, rename and list arrays and their versions");
  array->require_subcommand(1);
  array->footer("Example: rhizome array list demo.rz");
  auto list = std::make_shared<ListFlags>();
  AddStore(*AddVerb(*array, session, "list", "List arrays, their versions and aliases",
                    "rhizome array list demo.rz", list, List),
           list->store);
  auto path = std::make_shared<PathFlags>();
  CLI::App* verb = AddVerb(
      *array, session, "path",
      "Print the folder of the current generation's arrays, or of one array, for Zarr readers",
      "rhizome array path demo.rz feat", path, PrintPath);
  AddStore(*verb, path->store);
  verb->add_option("ARRAY", path->array,
                   "Array, such as emb or emb@live; default: the group of all arrays");
  AddAdd(*array, session);
  AddAppend(*array, session);
  AddChanges(*array, session);
}

}  // namespace rhizome
