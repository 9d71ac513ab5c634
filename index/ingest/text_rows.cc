#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "index/ingest/row_sources.h"
#include "index/input/convert.h"
#include "index/input/number.h"
#include "index/input/table_reader.h"
#include "rhizome/graph_types.h"
#include "storage/base/escaped_text.h"

namespace rhizome {
namespace {

class TextRows final : public RowSource {
 public:
  TextRows(std::unique_ptr<TableReader> reader, std::uint64_t row_count, DataType type,
           std::optional<std::int64_t> missing)
      : reader_(std::move(reader)), missing_(missing) {
    rows = row_count;
    dtype = type;
  }

  /// Reads the first line, which determines the number of columns.
  Status Begin() {
    RHIZOME_ASSIGN_OR_RETURN(const auto next, reader_->ReadLine());
    if (next == TableReader::Next::kMalformed) return Bad(reader_->reason());
    if (next == TableReader::Next::kEnd) {
      dim = 1;
      return rows == 0 ? Status::Ok() : Ended();
    }
    dim = reader_->fields().size();
    return rows == 0 ? Bad("the array has no row for it") : Take();
  }

  Status Read(std::span<std::byte> out) override {
    while (!out.empty()) {
      if (taken_ == row_.size()) {
        RHIZOME_ASSIGN_OR_RETURN(const auto next, reader_->ReadLine());
        if (next == TableReader::Next::kMalformed) return Bad(reader_->reason());
        if (next == TableReader::Next::kEnd) return Ended();
        RHIZOME_RETURN_IF_ERROR(Take());
      }
      const std::size_t bytes = std::min(out.size(), row_.size() - taken_);
      std::memcpy(out.data(), row_.data() + taken_, bytes);
      taken_ += bytes;
      out = out.subspan(bytes);
    }
    return Status::Ok();
  }

  Status Finish() override {
    RHIZOME_ASSIGN_OR_RETURN(const auto next, reader_->ReadLine());
    if (next == TableReader::Next::kEnd) return Status::Ok();
    return Bad(fmt::format("{} lines are expected, but there are more", rows));
  }
  std::uint64_t file_bytes() const override { return reader_->stream().total_bytes(); }
  std::uint64_t memory_bytes() const override { return 2 * kMaxLineBytes; }

 private:
  Status Bad(std::string_view reason) const {
    return Status::InvalidArgument(fmt::format("{}: {}", reader_->Place(), reason));
  }
  Status Ended() const {
    return Status::InvalidArgument(fmt::format("{}: {} lines are expected, but there are {}",
                                               reader_->stream().path().string(), rows, lines_));
  }

  /// Parses the reader's current line.
  Status Take() {
    const auto fields = reader_->fields();
    if (fields.size() != dim)
      return Bad(fmt::format("{} values found, {} expected", fields.size(), dim));
    row_.resize(dim * DataTypeBytes(dtype));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!TakeValue(fields[i], i))
        return Bad(fmt::format("'{}' is not a value of {}", fields[i], DataTypeName(dtype)));
    }
    taken_ = 0;
    ++lines_;
    return Status::Ok();
  }

  /// An integer array accepts 3.0 as 3, and `missing_` for nulls; among floats, nulls are NaN.
  bool TakeValue(std::string_view field, std::size_t i) {
    const auto out = std::span(row_).subspan(i * DataTypeBytes(dtype), DataTypeBytes(dtype));
    if (ParseElement(dtype, field, out)) return true;
    const auto number = ParseDouble(field);
    const bool null = IsNullWord(field) || (number && std::isnan(*number));
    if (IsFloat(dtype)) return null && ParseElement(dtype, "nan", out);
    std::optional<std::int64_t> value = null ? missing_ : std::nullopt;
    if (number && std::floor(*number) == *number && std::fabs(*number) <= 0x1p53)
      value = static_cast<std::int64_t>(*number);
    return value &&
           !ConvertElements(DataType::kInt64, std::as_bytes(std::span(&*value, 1)), dtype, out);
  }

  std::unique_ptr<TableReader> reader_;
  const std::optional<std::int64_t> missing_;
  std::vector<std::byte> row_;
  std::size_t taken_ = 0;  // bytes of row_ already returned
  std::uint64_t lines_ = 0;
};

Result<std::unique_ptr<TableReader>> OpenTable(FileSystem& fs, const Path& path,
                                               const TextDialect& dialect, bool header) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  return TableReader::Open(std::move(stream), dialect, header);
}

Result<std::unique_ptr<RowSource>> RowsOf(std::unique_ptr<TableReader> reader, std::uint64_t rows,
                                          DataType dtype, std::optional<std::int64_t> missing) {
  auto source = std::make_unique<TextRows>(std::move(reader), rows, dtype, missing);
  RHIZOME_RETURN_IF_ERROR(source->Begin());
  return source;
}

}  // namespace

Result<std::unique_ptr<RowSource>> OpenTextRows(FileSystem& fs, const Path& path,
                                                std::uint64_t rows, DataType dtype,
                                                std::optional<std::int64_t> missing) {
  RHIZOME_ASSIGN_OR_RETURN(auto reader, TableReader::Open(fs, path, /*header=*/false));
  return RowsOf(std::move(reader), rows, dtype, missing);
}

Result<TextShape> ShapeOfText(FileSystem& fs, const Path& path, const TextDialect& dialect,
                              bool header) {
  RHIZOME_ASSIGN_OR_RETURN(const auto reader, OpenTable(fs, path, dialect, header));
  const auto refuse = [&](std::string_view reason) {
    return Fail(Status::InvalidArgument(fmt::format("{}: {}", reader->Place(), Excerpt(reason))));
  };
  TextShape shape{.rows = 0, .dtype = DataType::kInt64};
  std::size_t columns = 0;
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto next, reader->ReadLine());
    if (next == TableReader::Next::kEnd) break;
    if (next == TableReader::Next::kMalformed) return refuse(reader->reason());
    const auto fields = reader->fields();
    if (shape.rows++ == 0) columns = fields.size();
    if (fields.size() != columns)
      return refuse(fmt::format("{} values found, {} expected", fields.size(), columns));
    for (const std::string_view field : fields) {
      if (shape.dtype == DataType::kInt64 && ParseCanonicalInteger(field)) continue;
      if (!ParseFiniteFloat(field))
        return refuse(
            fmt::format("'{}' is not a finite number, and a row of an array has numbers "
                        "only",
                        field));
      shape.dtype = DataType::kFloat32;
    }
  }
  if (shape.rows == 0) shape.dtype = DataType::kFloat32;
  return shape;
}

Result<std::unique_ptr<RowSource>> OpenTextRows(FileSystem& fs, const Path& path,
                                                const TextDialect& dialect, bool header,
                                                const TextShape& shape) {
  RHIZOME_ASSIGN_OR_RETURN(auto reader, OpenTable(fs, path, dialect, header));
  return RowsOf(std::move(reader), shape.rows, shape.dtype, std::nullopt);
}

}  // namespace rhizome
