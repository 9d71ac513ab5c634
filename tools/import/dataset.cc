#include "tools/import/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "index/generation/graph_builder.h"
#include "index/ingest/row_sources.h"
#include "index/input/convert.h"
#include "index/input/input_stream.h"
#include "index/input/npy.h"
#include "index/input/table_reader.h"
#include "rhizome/graph_types.h"
#include "storage/array/type_names.h"
#include "storage/io/files.h"

// Columns shared by the importers of data sets. Arrays of several vertex types or edge files are
// joined if dtype and columns agree (AddArray, AddEdgeArray). Labels and splits are read from lists
// of vertex numbers in blocks (LabelColumn, SplitColumn, IntegerReader).

namespace rhizome {
namespace {

// Upper bound of plausible vertex counts: a file of a few bytes can claim any number.
constexpr std::uint64_t kMaxVertices = std::uint64_t{1} << 40;

// Bytes per vertex of the columns `split` (1 byte) and `label` (8 bytes).
constexpr std::uint64_t kColumnBytesPerVertex = 9;

constexpr std::size_t kBlockIntegers = std::size_t{1} << 15;

class TextIntegers final : public IntegerReader {
 public:
  explicit TextIntegers(std::unique_ptr<TableReader> reader) : reader_(std::move(reader)) {}

 protected:
  Status Fill(std::size_t count, std::vector<std::int64_t>& block) override {
    while (block.size() < count) {
      RHIZOME_ASSIGN_OR_RETURN(const auto next, reader_->ReadLine());
      if (next == TableReader::Next::kEnd) break;
      if (next == TableReader::Next::kMalformed)
        return Status::InvalidArgument(fmt::format("{}: {}", reader_->Place(), reader_->reason()));
      const auto fields = reader_->fields();
      const auto number = fields.size() == 1 ? ParseCanonicalInteger(fields[0]) : std::nullopt;
      if (!number)
        return Status::InvalidArgument(fmt::format("{}: expected one integer", reader_->Place()));
      block.push_back(*number);
    }
    return Status::Ok();
  }

 private:
  std::unique_ptr<TableReader> reader_;
};

class NpyIntegers final : public IntegerReader {
 public:
  explicit NpyIntegers(std::unique_ptr<NpyReader> reader) : reader_(std::move(reader)) {}

 protected:
  Status Fill(std::size_t count, std::vector<std::int64_t>& block) override {
    const NpyHeader& header = reader_->header();
    block.resize(std::min<std::uint64_t>(count, header.rows() - done_));
    if (block.empty()) return reader_->Finish();
    bytes_.resize(block.size() * DataTypeBytes(header.dtype));
    RHIZOME_RETURN_IF_ERROR(reader_->Read(bytes_));
    static_cast<void>(ConvertElements(header.dtype, bytes_, DataType::kInt64,
                                      std::as_writable_bytes(std::span(block))));
    done_ += block.size();
    return Status::Ok();
  }

 private:
  std::unique_ptr<NpyReader> reader_;
  std::uint64_t done_ = 0;
  std::vector<std::byte> bytes_;
};

/// Returns whether two parts can be joined into one array.
bool Alike(const RowSource& a, const RowSource& b) { return a.dim == b.dim && a.dtype == b.dtype; }

/// Adds one array from parts with the same dtype and number of columns.
Status AddJoined(const std::string& name, const std::vector<ArrayPart>& parts,
                 const std::vector<std::byte>& fill, Dataset& dataset) {
  struct Opened {
    std::uint64_t first_row;
    OpenRowsOf open;
  };
  std::vector<Opened> opened;
  for (const ArrayPart& part : parts) {
    RHIZOME_ASSIGN_OR_RETURN(const IdRange range, dataset.RangeOf(part.type, part.path));
    opened.push_back({range.first, part.open});
  }
  std::sort(opened.begin(), opened.end(),
            [](const Opened& a, const Opened& b) { return a.first_row < b.first_row; });
  ArrayFile file;
  file.name = name;
  file.path = parts.front().path;
  file.open = [opened = std::move(opened), fill, rows = dataset.vertex_count()](
                  FileSystem& fs) -> Result<std::unique_ptr<RowSource>> {
    std::vector<RowPiece> pieces;
    for (const Opened& part : opened) {
      RHIZOME_ASSIGN_OR_RETURN(auto source, part.open(fs));
      pieces.push_back({part.first_row, std::move(source)});
    }
    return JoinRows(std::move(pieces), rows, fill);
  };
  dataset.options.arrays.push_back(std::move(file));
  return Status::Ok();
}

template <typename T>
void AddColumn(const std::string& name, std::shared_ptr<const std::vector<T>> values,
               Dataset& dataset) {
  ArrayFile file;
  file.name = name;
  file.path = name;
  dataset.held_bytes += values->size() * sizeof(T);
  file.open = [values = std::move(values)](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
    return ColumnRows(values);
  };
  dataset.options.arrays.push_back(std::move(file));
}

Status OutOfRange(const Path& path, std::size_t i, std::int64_t number, const IdRange& range) {
  return Status::InvalidArgument(
      fmt::format("{}: entry {}: vertex {} does not exist; the number of vertices is {}",
                  path.string(), i, number, range.count));
}

bool InRange(std::int64_t number, const IdRange& range) {
  return number >= 0 && static_cast<std::uint64_t>(number) < range.count;
}

/// Adds one edge attribute from parts with the same dtype and number of columns.
void AddEdgeRows(EdgeArrayFile array, const std::vector<EdgePart>& parts, Dataset& dataset) {
  array.files.resize(dataset.options.edges.size());
  for (const EdgePart& part : parts) {
    ArrayFile& file = array.files[part.file];
    file.name = array.name;
    file.path = part.path;
    file.open = part.open;
  }
  dataset.options.edge_arrays.push_back(std::move(array));
}

/// Returns the name of the array with the rows of one type: "feat.paper". Arrays are folders, so
/// characters that only a type may have become '_'.
std::string NameOfPart(const std::string& name, std::string type) {
  std::ranges::replace_if(
      type, [](char c) { return !CheckName("array", std::string("x") + c).ok(); }, '_');
  return name + "." + type;
}

/// Returns whether array.name is not yet used, so that an edge attribute of this dtype and number
/// of columns may have it.
bool IsFree(const EdgeArrayFile& array, const Dataset& dataset) {
  for (const char* reserved : {"src", "dst", "type", "weight", "id"})
    if (array.name == reserved) return false;
  if (array.name == "time" && (array.dim != 1 || array.dtype != DataType::kInt64)) return false;
  const auto& arrays = dataset.options.arrays;
  return std::none_of(arrays.begin(), arrays.end(), [&](const ArrayFile& other) {
    return other.name == array.name || other.name.starts_with(array.name + ".p");
  });
}

}  // namespace

std::string NameOfTriple(const std::string& src, const std::string& relation,
                         const std::string& dst) {
  return fmt::format("{}__{}__{}", src, relation, dst);
}

std::uint64_t Dataset::vertex_count() const {
  std::uint64_t count = 0;
  for (const VertexRange& range : vertices) count += range.count;
  return count;
}

Result<IdRange> Dataset::RangeOf(const std::string& type, const Path& where) const {
  std::uint64_t first = 0;
  for (const VertexRange& range : vertices) {
    if (range.type == type) return IdRange{first, range.count};
    first += range.count;
  }
  return Fail(Status::InvalidArgument(
      fmt::format("{}: there is no vertex type '{}'", where.string(), type)));
}

Status Dataset::SetVertices(std::uint64_t memory_bytes) {
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const VertexRange& range = vertices[i];
    const bool unnamed = vertices.size() == 1 && range.type.empty();
    if (!unnamed) RHIZOME_RETURN_IF_ERROR(CheckTypeName("vertex type", range.type));
    if (range.count > kMaxVertices / vertices.size())
      return Status::InvalidArgument(
          fmt::format("{} vertices of type '{}' are too many", range.count, range.type));
    for (std::size_t j = 0; j < i; ++j)
      if (vertices[j].type == range.type)
        return Status::InvalidArgument(
            fmt::format("the vertex type '{}' appears twice", range.type));
  }
  options.vertices = vertex_count();
  const std::uint64_t needed = vertex_count() * (kBuildBytesPerVertex + kColumnBytesPerVertex);
  if (memory_bytes > 0 && needed > memory_bytes)
    return Status::OutOfMemory(fmt::format(
        "{} vertices alone need about {} MiB of memory, but the limit is {} MiB; raise the limit",
        vertex_count(), (needed >> 20) + 1, memory_bytes >> 20));
  if (vertices.size() > 1 || !vertices.front().type.empty()) options.vertex_ranges = vertices;
  return Status::Ok();
}

// Opens each part once, to check its number of rows against the vertices of its type and to compare
// dtypes and columns. Equal parts are joined into one array; otherwise each becomes an array of its
// own.
Status AddArray(FileSystem& fs, const std::string& name, std::vector<ArrayPart> parts,
                const std::vector<std::byte>& fill, Dataset& dataset) {
  bool alike = true;
  std::unique_ptr<RowSource> first;
  for (const ArrayPart& part : parts) {
    RHIZOME_ASSIGN_OR_RETURN(const IdRange range, dataset.RangeOf(part.type, part.path));
    RHIZOME_ASSIGN_OR_RETURN(auto source, part.open(fs));
    if (source->rows != range.count)
      return Status::InvalidArgument(fmt::format("{}: {} rows for {} vertices", part.path.string(),
                                                 source->rows, range.count));
    if (!first)
      first = std::move(source);
    else
      alike = alike && Alike(*first, *source);
  }
  if (parts.empty()) return Status::Ok();
  const bool whole = dataset.vertices.size() == 1 || parts.size() > 1 || !fill.empty();
  if (alike && whole) return AddJoined(name, parts, fill, dataset);
  for (const ArrayPart& part : parts)
    dataset.options.arrays.push_back({.name = alike ? name : NameOfPart(name, part.type),
                                      .path = part.path,
                                      .vertex_type = part.type,
                                      .open = part.open});
  return Status::Ok();
}

Status AddEdgeArray(FileSystem& fs, std::string name, std::vector<EdgePart> parts,
                    Dataset& dataset) {
  std::vector<EdgeArrayFile> shapes;
  bool alike = true;
  for (const EdgePart& part : parts) {
    RHIZOME_ASSIGN_OR_RETURN(const auto source, part.open(fs));
    shapes.push_back({.name = name, .dim = source->dim, .dtype = EdgeDtypeOf(source->dtype)});
    alike = alike && shapes.back().dim == shapes.front().dim &&
            shapes.back().dtype == shapes.front().dtype;
  }
  if (parts.empty()) return Status::Ok();
  const bool whole = parts.size() == dataset.options.edges.size();
  if (name == "weight" && whole && alike && shapes.front().dim == 1) {
    shapes.front().dtype = DataType::kFloat32;
    AddEdgeRows(shapes.front(), parts, dataset);
    return Status::Ok();
  }
  if (std::any_of(shapes.begin(), shapes.end(),
                  [&](const EdgeArrayFile& shape) { return !IsFree(shape, dataset); }))
    name = "edge_" + name;
  for (EdgeArrayFile& shape : shapes) shape.name = name;
  if (alike) {
    AddEdgeRows(shapes.front(), parts, dataset);
    return Status::Ok();
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    shapes[i].name = NameOfPart(shapes[i].name, dataset.options.edges[parts[i].file].type);
    AddEdgeRows(shapes[i], {parts[i]}, dataset);
  }
  return Status::Ok();
}

Status SplitColumn::Read(FileSystem& fs, const Path& path, const IdRange& range,
                         std::uint8_t split) {
  RHIZOME_ASSIGN_OR_RETURN(const auto reader, IntegerReader::Open(fs, path));
  for (std::size_t entry = 0;;) {
    RHIZOME_ASSIGN_OR_RETURN(const auto numbers, reader->Next());
    if (numbers.empty()) return Status::Ok();
    for (const std::int64_t number : numbers) {
      if (!InRange(number, range)) return OutOfRange(path, entry, number, range);
      std::uint8_t& value = (*values_)[range.first + static_cast<std::uint64_t>(number)];
      if (value != kNone && value != split)
        return Status::InvalidArgument(fmt::format(
            "{}: entry {}: vertex {} is already in another split", path.string(), entry, number));
      value = split;
      ++entry;
    }
  }
}

void SplitColumn::AddTo(Dataset& dataset) && {
  AddColumn<std::uint8_t>("split", std::move(values_), dataset);
}

Status LabelColumn::Read(FileSystem& fs, const Path& numbers_path, const Path& labels_path,
                         const IdRange& range) {
  RHIZOME_ASSIGN_OR_RETURN(const auto all_numbers, IntegerReader::Open(fs, numbers_path));
  RHIZOME_ASSIGN_OR_RETURN(const auto all_labels, IntegerReader::Open(fs, labels_path));
  for (std::size_t entry = 0;;) {
    RHIZOME_ASSIGN_OR_RETURN(const auto numbers, all_numbers->Next());
    RHIZOME_ASSIGN_OR_RETURN(const auto labels, all_labels->Next());
    // Blocks of both lists have the same length, except for the last.
    if (numbers.size() != labels.size())
      return Status::InvalidArgument(
          fmt::format("{}: {} labels{} for {} vertices{}", labels_path.string(),
                      entry + labels.size(), labels.size() == kBlockIntegers ? " at least" : "",
                      entry + numbers.size(), numbers.size() == kBlockIntegers ? " at least" : ""));
    if (numbers.empty()) return Status::Ok();
    for (std::size_t i = 0; i < numbers.size(); ++i, ++entry) {
      if (!InRange(numbers[i], range)) return OutOfRange(numbers_path, entry, numbers[i], range);
      std::int64_t& value = (*values_)[range.first + static_cast<std::uint64_t>(numbers[i])];
      if (value != -1 && value != labels[i])
        return Status::InvalidArgument(
            fmt::format("{}: entry {}: vertex {} already has another label", labels_path.string(),
                        entry, numbers[i]));
      value = labels[i];
    }
  }
}

void LabelColumn::AddTo(Dataset& dataset) && {
  AddColumn<std::int64_t>("label", std::move(values_), dataset);
}

Result<std::unique_ptr<IntegerReader>> IntegerReader::Open(FileSystem& fs, const Path& path) {
  if (ContentExtension(path) != ".npy") {
    RHIZOME_ASSIGN_OR_RETURN(auto reader, TableReader::Open(fs, path, /*header=*/false));
    return std::make_unique<TextIntegers>(std::move(reader));
  }
  RHIZOME_ASSIGN_OR_RETURN(auto reader, NpyReader::Open(fs, path));
  const NpyHeader& header = reader->header();
  if (header.dim() != 1 || !CanConvert(header.dtype, DataType::kInt64))
    return Fail(Status::InvalidArgument(
        fmt::format("{}: expected a list of integers, but found {} of shape [{}]", path.string(),
                    DataTypeName(header.dtype), fmt::join(header.shape, ", "))));
  return std::make_unique<NpyIntegers>(std::move(reader));
}

Result<std::span<const std::int64_t>> IntegerReader::Next() {
  block_.clear();
  RHIZOME_RETURN_IF_ERROR(Fill(kBlockIntegers, block_));
  return std::span<const std::int64_t>(block_);
}

Result<std::vector<std::int64_t>> ReadIntegers(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto reader, IntegerReader::Open(fs, path));
  RHIZOME_ASSIGN_OR_RETURN(const auto block, reader->Next());
  std::vector<std::int64_t> numbers(block.begin(), block.end());
  RHIZOME_ASSIGN_OR_RETURN(const auto more, reader->Next());
  if (more.empty()) return numbers;
  return Fail(Status::InvalidArgument(
      fmt::format("{}: more than {} numbers", path.string(), numbers.size())));
}

bool Exists(FileSystem& fs, const Path& path) {
  std::error_code unresolved;
  const Path real = std::filesystem::canonical(path, unresolved);
  return !unresolved && fs.Stat(real).has_value();
}

}  // namespace rhizome
