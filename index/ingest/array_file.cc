// Array files in memory. ReadArrayFile reads rows (ReadDense) or triplets (ReadSparse), converts
// them to the requested dtype, and returns a LoadedArray; BindArray maps its rows to vertices.

#include "index/ingest/array_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "index/ingest/array_triplets.h"
#include "index/ingest/file_plan.h"
#include "index/ingest/row_sources.h"
#include "index/input/convert.h"
#include "index/input/number.h"
#include "rhizome/graph_types.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kReadArraysPhase = "read arrays";
constexpr std::uint64_t kReadBlockBytes = std::uint64_t{1} << 20;

class DenseArray final : public LoadedArray {
 public:
  void CopyRow(std::uint64_t row, std::span<std::byte> out) const override {
    if (row >= rows)
      FillMissingRows(MissingRowOfNewArray(name, dtype, dim), out);
    else
      std::memcpy(out.data(), data.data() + row * out.size(), out.size());
  }
  std::uint64_t memory_bytes() const override { return data.capacity(); }

  std::vector<std::byte> data;  // row-major
};

/// Triplets, sorted by row and column: row r has the triplets [ends[r - 1], ends[r]). Elements
/// without a triplet are zero. Values are floats, so missing rows need no other value than zero
/// (array_file.h).
class SparseArray final : public LoadedArray {
 public:
  void CopyRow(std::uint64_t row, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), std::byte{0});
    if (row >= rows) return;
    const std::size_t element = DataTypeBytes(dtype);
    for (std::uint64_t i = row == 0 ? 0 : ends[row - 1]; i < ends[row]; ++i)
      std::memcpy(out.data() + columns[i] * element, values.data() + i * element, element);
  }
  std::uint64_t memory_bytes() const override {
    return ends.capacity() * 8 + columns.capacity() * 8 + values.capacity();
  }

  std::vector<std::uint64_t> ends;
  std::vector<std::uint64_t> columns;
  std::vector<std::byte> values;
};

Status CheckDtype(const ArrayFile& file, DataType from, DataType to) {
  if (CanConvert(from, to)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{}: {} cannot become {} without loss; convert it "
                  "yourself, or leave the dtype as it is",
                  ArrayPlace(file), DataTypeName(from), DataTypeName(to)));
}

Status CheckDim(const ArrayFile& file, const RowSource& source) {
  if (source.dim == 0)
    return Status::InvalidArgument(fmt::format("{}: the array has no columns", ArrayPlace(file)));
  if (file.dim == 0 || file.dim == source.dim) return Status::Ok();
  return Status::InvalidArgument(fmt::format("{}: {} columns are requested, but the file has {}",
                                             ArrayPlace(file), file.dim, source.dim));
}

/// Returns the number of bytes to reserve: the bytes that the header declares, unless the file is
/// too small to hold that much.
std::uint64_t ReserveBytes(std::uint64_t data_bytes, std::uint64_t file_bytes) {
  constexpr std::uint64_t kMaxRatio = 64;  // highest plausible compression ratio
  return std::min(data_bytes, (file_bytes + kReadBlockBytes) * kMaxRatio);
}

// Opens the rows; checks shape, dtype and memory; then reads and converts them block by block.
Result<std::unique_ptr<LoadedArray>> ReadDense(IngestContext& context, const ArrayFile& file) {
  RHIZOME_ASSIGN_OR_RETURN(auto source, OpenRows(context.fs, file));
  auto array = std::make_unique<DenseArray>();
  array->rows = source->rows;
  array->exact_rows = true;
  array->dim = source->dim;
  array->dtype = file.dtype.value_or(source->dtype);
  RHIZOME_RETURN_IF_ERROR(CheckRows(file, *source, array->dtype));
  const std::size_t from_bytes = DataTypeBytes(source->dtype);
  const std::size_t to_bytes = DataTypeBytes(array->dtype);
  const std::uint64_t elements = source->rows * source->dim;
  RHIZOME_RETURN_IF_ERROR(
      context.CheckMemory(ArrayPlace(file), elements * to_bytes + source->memory_bytes()));
  array->data.reserve(ReserveBytes(elements * to_bytes, source->file_bytes()));

  std::vector<std::byte> block;
  for (std::uint64_t done = 0; done < elements;) {
    const std::uint64_t count = std::min(elements - done, kReadBlockBytes / from_bytes);
    block.resize(count * from_bytes);
    RHIZOME_RETURN_IF_ERROR(source->Read(block));
    array->data.resize((done + count) * to_bytes);
    const auto bad = ConvertElements(source->dtype, block, array->dtype,
                                     std::span(array->data).subspan(done * to_bytes));
    if (bad)
      return Fail(ValueDoesNotFit(file, (done + *bad) / array->dim, (done + *bad) % array->dim,
                                  array->dtype));
    done += count;
    RHIZOME_RETURN_IF_ERROR(context.Progress(kReadArraysPhase, {file.path, done, elements},
                                             array->memory_bytes() + source->memory_bytes()));
  }
  RHIZOME_RETURN_IF_ERROR(source->Finish());
  return array;
}

/// Parses a line of a triplet file. Returns the reason if it is malformed, otherwise nullopt.
std::optional<std::string> ParseTriplet(std::span<const std::string_view> fields, std::uint64_t dim,
                                        Triplet& triplet) {
  // Limit of row numbers; no graph has a vertex beyond it.
  constexpr std::int64_t kMaxRow = std::int64_t{1} << 40;
  if (fields.size() != 3)
    return fmt::format("{} fields found, 3 expected (row, column, value)", fields.size());
  const auto row = ParseCanonicalInteger(fields[0]);
  if (!row || *row < 0 || *row >= kMaxRow)
    return fmt::format("'{}' is not a row number", fields[0]);
  const auto column = ParseCanonicalInteger(fields[1]);
  if (!column || *column < 0) return fmt::format("'{}' is not a column number", fields[1]);
  if (static_cast<std::uint64_t>(*column) >= dim)
    return fmt::format("column {} is beyond the {} columns of the array", *column, dim);
  const auto value = ParseDouble(fields[2]);
  if (!value) return fmt::format("the value '{}' is not a number of float64", fields[2]);
  triplet = {static_cast<std::uint64_t>(*row), static_cast<std::uint64_t>(*column), *value};
  return std::nullopt;
}

bool Before(const Triplet& a, const Triplet& b) {
  return a.row != b.row ? a.row < b.row : a.column < b.column;
}

Status FillSparse(const ArrayFile& file, std::span<const Triplet> triplets, SparseArray& array) {
  const std::size_t element = DataTypeBytes(array.dtype);
  array.ends.assign(array.rows, 0);
  array.values.resize(triplets.size() * element);
  for (std::size_t i = 0; i < triplets.size(); ++i) {
    const Triplet& triplet = triplets[i];
    if (i > 0 && !Before(triplets[i - 1], triplet))
      return DuplicateTriplet(file, triplet.row, triplet.column);
    const auto out = std::span(array.values).subspan(i * element, element);
    if (!ConvertTriplet(triplet, array.dtype, out))
      return ValueDoesNotFit(file, triplet.row, triplet.column, array.dtype);
    array.columns.push_back(triplet.column);
    array.ends[triplet.row] = i + 1;
  }
  for (std::size_t row = 1; row < array.ends.size(); ++row)
    array.ends[row] = std::max(array.ends[row], array.ends[row - 1]);
  return Status::Ok();
}

Result<std::unique_ptr<LoadedArray>> ReadSparse(IngestContext& context, const ArrayFile& file) {
  auto array = std::make_unique<SparseArray>();
  array->dim = file.dim;
  array->dtype = file.dtype.value_or(DataType::kFloat32);
  RHIZOME_RETURN_IF_ERROR(CheckTripletFile(file, array->dtype));
  std::vector<Triplet> triplets;
  RHIZOME_RETURN_IF_ERROR(ReadTriplets(
      context, file,
      [&](const Triplet& triplet) {
        triplets.push_back(triplet);
        return Status::Ok();
      },
      [&] { return triplets.capacity() * sizeof(Triplet); }));
  if (!std::is_sorted(triplets.begin(), triplets.end(), Before))
    std::sort(triplets.begin(), triplets.end(), Before);
  array->rows = triplets.empty() ? 0 : triplets.back().row + 1;
  const std::uint64_t sparse_bytes = array->rows * 8 + triplets.size() * (sizeof(Triplet) + 12);
  RHIZOME_RETURN_IF_ERROR(context.CheckMemory(ArrayPlace(file), sparse_bytes));
  RHIZOME_RETURN_IF_ERROR(FillSparse(file, triplets, *array));
  return array;
}

}  // namespace

std::string ArrayPlace(const ArrayFile& file) {
  return fmt::format("array '{}': {}", ShownName(file.name), file.path.string());
}

bool ConvertTriplet(const Triplet& triplet, DataType dtype, std::span<std::byte> out) {
  if (dtype == DataType::kFloat32 && LostInFloat32(triplet.value)) return false;
  return !ConvertElements(DataType::kFloat64, std::as_bytes(std::span(&triplet.value, 1)), dtype,
                          out);
}

Status CheckRows(const ArrayFile& file, const RowSource& source, DataType dtype) {
  RHIZOME_RETURN_IF_ERROR(CheckDim(file, source));
  return CheckDtype(file, source.dtype, dtype);
}

Status CheckTripletFile(const ArrayFile& file, DataType dtype) {
  if (file.dim == 0)
    return Status::InvalidArgument(
        fmt::format("{}: a file of triplets does not contain the number of columns; give it in "
                    "`dim`",
                    ArrayPlace(file)));
  return CheckDtype(file, DataType::kFloat32, dtype);
}

Status ValueDoesNotFit(const ArrayFile& file, std::uint64_t row, std::uint64_t column,
                       DataType dtype) {
  return Status::InvalidArgument(fmt::format("{}: row {}, column {}: the value does not fit {}",
                                             ArrayPlace(file), row, column, DataTypeName(dtype)));
}

Status DuplicateTriplet(const ArrayFile& file, std::uint64_t row, std::uint64_t column) {
  return Status::InvalidArgument(
      fmt::format("{}: row {}, column {} is repeated", ArrayPlace(file), row, column));
}

Status ReadTriplets(IngestContext& context, const ArrayFile& file,
                    const std::function<Status(const Triplet&)>& take,
                    const std::function<std::uint64_t()>& held_bytes) {
  Status failed;
  RHIZOME_ASSIGN_OR_RETURN(const FileHead head, ReadHead(context.fs, file.path));
  RHIZOME_ASSIGN_OR_RETURN(
      const SniffedText text,
      SniffText(head, file.path, {.delimiter = context.options.delimiter, .fields = 3}));
  return context.ReadLines(
      file.path, text.dialect,
      context.options.header.value_or(IsHeader(text.rows, InputKind::kArray)), kReadArraysPhase,
      [&](const auto& fields) -> std::optional<std::string> {
        Triplet triplet;
        if (auto reason = ParseTriplet(fields, file.dim, triplet)) return reason;
        if (failed.ok()) failed = take(triplet);
        return std::nullopt;
      },
      held_bytes, [&](const TableReader&) { return failed; });
}

Result<std::unique_ptr<LoadedArray>> ReadArrayFile(IngestContext& context, const ArrayFile& file) {
  RHIZOME_ASSIGN_OR_RETURN(
      auto array, HasRows(context.fs, file) ? ReadDense(context, file) : ReadSparse(context, file));
  array->name = file.name;
  array->path = file.path.string();
  if (file.attributes) array->attributes = *file.attributes;
  context.Hold(array->memory_bytes());
  return array;
}

void SetMissing(ArrayInput& input) {
  const auto missing = MissingOfNewArray(input.name, input.dtype, input.dim);
  if (missing) input.attributes.emplace_back(kMissingAttribute, *missing);
  std::sort(input.attributes.begin(), input.attributes.end());
}

ArrayInput BindArray(const std::shared_ptr<const LoadedArray>& array,
                     const std::shared_ptr<const std::vector<std::int64_t>>& row_of_vertex) {
  ArrayInput input;
  input.name = array->name;
  input.dim = array->dim;
  input.dtype = array->dtype;
  input.attributes = array->attributes;
  SetMissing(input);
  input.read_rows = [array, row_of_vertex](std::span<const VertexId> vertices,
                                           std::span<std::byte> out) {
    const std::size_t row_bytes = array->row_bytes();
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const std::int64_t row = row_of_vertex->empty()
                                   ? vertices[i]
                                   : (*row_of_vertex)[static_cast<std::size_t>(vertices[i])];
      // The row -1 becomes the largest row, which no file has, so that it gets the values of
      // FillMissingRows.
      array->CopyRow(static_cast<std::uint64_t>(row), out.subspan(i * row_bytes, row_bytes));
    }
    return Status::Ok();
  };
  return input;
}

}  // namespace internal
}  // namespace rhizome
