#include "tools/import/ingest_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "index/ingest/row_sources.h"
#include "index/input/convert.h"
#include "storage/array/array_facts.h"
#include "storage/io/files.h"
#include "tools/import/homes_json.h"

namespace rhizome {
namespace {

void AddTypes(CLI::App& verb, std::map<std::string, std::string>& types) {
  verb.add_option_function<std::vector<std::string>>(
          "--types",
          [&types](const std::vector<std::string>& given) {
            for (const std::string& one : given) {
              const std::size_t colon = one.rfind(':');
              if (colon == one.npos || colon == 0 || colon + 1 == one.size())
                throw CLI::ValidationError("--types", "'" + one + "': write NAME:TYPE");
              if (!types.emplace(one.substr(0, colon), one.substr(colon + 1)).second)
                throw CLI::ValidationError("--types", "'" + one + "': the column has two types");
            }
          },
          "Types of columns that become arrays or edge attributes, instead of the type of their "
          "values: bool, int8, int16, int32, int64, uint8, uint32, float32, float64, timestamp")
      ->delimiter(',')
      ->type_name("NAME:TYPE,...");
}

void AddInputFlags(CLI::App& verb, IngestFlags& flags) {
  IngestOptions& options = flags.options;
  verb.add_option("--edges", flags.edges,
                  "Edge files: text, Matrix Market, or .npy (integers [m, 2] or [2, m]); plain or "
                  "compressed (gzip, zstd, bzip2, xz)")
      ->type_name("F...");
  verb.add_option("--nodes", flags.nodes, "Node file with one line per vertex")->type_name("F");
  verb.add_option("--array", flags.arrays,
                  "Array with one row per vertex: .npy, F.npz:MEMBER, a Zarr v3 folder, or text "
                  "with one row a line; F:coo:DIM: lines 'row column value' of an array with DIM "
                  "columns; TYPE:NAME: an array of one vertex type, with a row per vertex of the "
                  "type")
      ->allow_extra_args(false)
      ->type_name("[TYPE:]NAME=F[:coo:DIM]");
  verb.add_option("--edge-array", flags.edge_arrays,
                  "Edge attribute: .npy or a Zarr v3 folder with one row per edge, in the order of "
                  "--edges; NAME weight: edge weights")
      ->allow_extra_args(false)
      ->type_name("NAME=F");
  AddList(verb, "--columns", options.columns,
          "Columns of the edge files: src, dst, type, weight; - skips a column; others, such as "
          "time, become edge attributes; default: by the names in the header, or src,dst");
  AddList(verb, "--node-columns", options.node_columns,
          "Columns of the node file: id, label, split, type; others become arrays: of texts, "
          "numbers, or of splits, one letter (t, v, e, n) for each; default: by the names in "
          "the header, or id");
  AddTypes(verb, options.types);
  AddList(
      verb, "--feature-columns", options.feature_columns,
      "Columns of the node file that become one array, feat, for training; or all: every column "
      "of numbers");
  verb.add_option("--random-split", options.random_split,
                  "Assign labelled vertices to training, validation and test at random, in these "
                  "shares, such as 0.8,0.1,0.1")
      ->delimiter(',')
      ->expected(3)
      ->type_name("TRAIN,VALID,TEST");
  verb.add_option("--split-column", options.split_column,
                  "Split column to use if there are several")
      ->type_name("NAME");
  auto* header = verb.add_flag_callback(
      "--header", [&options] { options.header = true; },
      "The first line of every text file is a header; default: found in each file");
  verb.add_flag_callback(
          "--no-header", [&options] { options.header = false; }, "No text file has a header")
      ->excludes(header);
  verb.add_option_function<std::string>(
          "--delimiter",
          [&options](const std::string& given) {
            options.delimiter = ParseDelimiter(given);
            if (!options.delimiter)
              throw CLI::ValidationError(
                  "--delimiter", "'" + given + "' is not one of tab|comma|semicolon|pipe|blanks");
          },
          "What separates the fields of text files; default: found in each file")
      ->type_name("tab|comma|semicolon|pipe|blanks");
  AddList(verb, "--end-types", options.end_types,
          "Types of the sources and of the destinations of edges, if these are two kinds of "
          "vertices with overlapping ids: id 7 becomes user:7; default: by names such as userId "
          "and movieId")
      ->type_name("TYPE,TYPE");
  AddChoice<IdType>(
      verb, "--id-type", options.id_type,
      {{"auto", IdType::kAuto}, {"integer", IdType::kInteger}, {"string", IdType::kString}},
      "Type of external ids; auto: integer if all ids are integers");
  verb.add_flag("--undirected", options.undirected,
                "Treat each line as an edge in both directions");
  verb.add_option("--vertices", options.vertices,
                  "Number of vertices, with ids 0..N-1; larger ids are refused")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->type_name("N");
  verb.add_option("--max-bad-lines", options.max_bad_lines,
                  "Skip and count up to N malformed lines")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

Status SetArrayName(const std::string& given, ArrayFile& array) {
  // The name of a type may contain colons, the name of an array cannot.
  const std::size_t colon = given.rfind(':');
  if (colon == 0)
    return Status::InvalidArgument(
        fmt::format("array '{}': the vertex type before the colon is missing", given));
  if (colon != given.npos) array.vertex_type = given.substr(0, colon);
  array.name = colon == given.npos ? given : given.substr(colon + 1);
  return CheckName("array", array.name);
}

Result<ArrayFile> ParseArrayFlag(const std::string& given, std::optional<DataType> dtype) {
  const std::size_t equals = given.find('=');
  if (equals == given.npos || equals + 1 == given.size()) {
    return Fail(Status::InvalidArgument(fmt::format(
        "--array '{}': write NAME=FILE, TYPE:NAME=FILE for the vertices of one type, or "
        "NAME=FILE:coo:DIM for triplets",
        given)));
  }
  ArrayFile array;
  RHIZOME_RETURN_IF_ERROR(SetArrayName(given.substr(0, equals), array));
  array.dtype = dtype;
  std::string file = given.substr(equals + 1);
  const std::size_t colon = file.rfind(':');
  const bool npz = colon != file.npos && std::string_view(file).substr(0, colon).ends_with(".npz");
  if (colon != file.npos && !npz) {
    const char* const end = file.data() + file.size();
    const auto [rest, error] = std::from_chars(file.data() + colon + 1, end, array.dim);
    // A colon may be part of the file's name; only digits after it are a dimension.
    if (error == std::errc() && rest == end) {
      if (array.dim == 0) {
        return Fail(Status::InvalidArgument(
            fmt::format("--array '{}': the dimension must be at least 1", given)));
      }
      file.resize(colon);
      if (file.ends_with(":coo")) {
        array.triplets = true;
        file.resize(file.size() - 4);
      }
    } else {
      array.dim = 0;
    }
  }
  array.path = file;
  return array;
}

namespace {

/// Parses --edge-array and reads the header of the file, which determines the dtype.
Result<EdgeArrayFile> ParseEdgeArrayFlag(const std::string& given) {
  RHIZOME_ASSIGN_OR_RETURN(ArrayFile file, ParseArrayFlag(given, std::nullopt));
  if (!file.vertex_type.empty())
    return Fail(Status::InvalidArgument(fmt::format(
        "--edge-array '{}': '{}:' names a vertex type, but the array has rows for edges", given,
        file.vertex_type)));
  FileSystem& fs = FileSystem::Posix();
  if (file.dim != 0 || !HasRows(fs, file))
    return Fail(Status::InvalidArgument(fmt::format(
        "--edge-array '{}': write NAME=FILE, a .npy file or the folder of a Zarr v3 array",
        given)));
  RHIZOME_ASSIGN_OR_RETURN(const auto rows, OpenRows(fs, file));
  EdgeArrayFile array{
      .name = file.name, .dim = rows->dim, .dtype = EdgeDtypeOf(rows->dtype), .files = {file}};
  if (file.name == "weight") array.dtype = DataType::kFloat32;
  if (rows->dtype == DataType::kBool && file.name != "weight")
    array.attributes = {{std::string(kTypeAttribute), std::string(kTypeBool)}};
  return array;
}

}  // namespace

void AddDtypeFlag(CLI::App& verb, std::optional<DataType>& dtype) {
  verb.add_option_function<std::string>(
          "--dtype",
          [&dtype](const std::string& given) {
            dtype = ParseDataType(given);
            if (!dtype) {
              throw CLI::ValidationError(
                  "--dtype",
                  "'" + given +
                      "' is not one of float64|float32|float16|bfloat16|int64|int32|int16|int8|"
                      "uint32|uint8|bool");
            }
          },
          "Convert array files to this type; default: keep the type of the file")
      ->type_name("NAME");
}

Result<IngestOptions> IngestFlags::ToOptions() const {
  IngestOptions result = options;
  for (const std::string& path : inputs) result.inputs.emplace_back(path);
  for (const std::string& path : edges) result.edges.emplace_back(path);
  if (!nodes.empty()) result.nodes = nodes;
  for (const std::string& given : arrays) {
    RHIZOME_ASSIGN_OR_RETURN(ArrayFile array, ParseArrayFlag(given, dtype));
    result.arrays.push_back(std::move(array));
  }
  for (const std::string& given : edge_arrays) {
    RHIZOME_ASSIGN_OR_RETURN(EdgeArrayFile array, ParseEdgeArrayFlag(given));
    result.edge_arrays.push_back(std::move(array));
  }
  SetLayout(result);
  return result;
}

void IngestFlags::SetLayout(IngestOptions& result) const {
  result.layout = layout.layout;
  result.codec = layout.codec;
  result.chunk_rows = layout.chunk_rows;
  result.inner_rows = layout.inner_rows;
  result.memory_bytes = layout.input_memory_bytes();
  result.build = layout.build;
  SetHomes(layout.homes, result);
  result.store_id = layout.store_id;
  result.choose_partitions = layout.partitions_flag->count() == 0;
  result.spill = options.spill;
  result.scratch = options.scratch;
}

void AddIngestFlags(CLI::App& verb, IngestFlags& flags) {
  AddInputFlags(verb, flags);
  AddDtypeFlag(verb, flags.dtype);
  AddLayoutFlags(verb, flags.layout);
  AddSpill(verb, flags.options.spill, flags.options.scratch);
}

}  // namespace rhizome
