#include "index/topology/column.h"

#include <algorithm>
#include <vector>

#include "index/topology/bound_search.h"

namespace rhizome {
inline namespace internal {
namespace {

std::uint32_t BytesFor(std::uint64_t largest) {
  if (largest <= UINT8_MAX) return 1;
  if (largest <= UINT16_MAX) return 2;
  return largest <= UINT32_MAX ? 4 : 8;
}

// Converts piece by piece, so that a huge column is never copied as a whole.
template <typename T>
Status AppendTyped(SectionFileWriter& writer, std::span<const std::uint64_t> values) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::vector<T> narrow(std::min(kPiece, values.size()));
  for (std::size_t begin = 0; begin < values.size(); begin += kPiece) {
    const auto piece = values.subspan(begin, std::min(kPiece, values.size() - begin));
    std::transform(piece.begin(), piece.end(), narrow.begin(),
                   [](std::uint64_t value) { return static_cast<T>(value); });
    RHIZOME_RETURN_IF_ERROR(
        writer.Append(std::as_bytes(std::span<const T>(narrow).first(piece.size()))));
  }
  return Status::Ok();
}

Status AppendAs(SectionFileWriter& writer, std::uint32_t element_bytes,
                std::span<const std::uint64_t> values) {
  switch (element_bytes) {
    case 1:
      return AppendTyped<std::uint8_t>(writer, values);
    case 2:
      return AppendTyped<std::uint16_t>(writer, values);
    case 4:
      return AppendTyped<std::uint32_t>(writer, values);
    default:
      return AppendTyped<std::uint64_t>(writer, values);
  }
}

}  // namespace

template <typename T>
Result<Column> Column::ReadAs(const SectionFile& file, std::uint32_t kind,
                              std::uint64_t expected_count) {
  RHIZOME_ASSIGN_OR_RETURN(auto elements, file.Section<T>(kind, expected_count));
  Column column;
  column.data_ = elements.data();
  column.size_ = elements.size();
  column.element_bytes_ = sizeof(T);
  return column;
}

Result<Column> Column::Read(const SectionFile& file, std::uint32_t kind,
                            std::uint64_t expected_count, std::uint64_t limit) {
  if (!file.paged()) return Load(file, kind, expected_count);
  Column column;
  RHIZOME_ASSIGN_OR_RETURN(column.data_, file.Page(kind, expected_count, limit));
  column.size_ = expected_count;
  column.element_bytes_ = kPaged;
  return column;
}

Result<Column> Column::Load(const SectionFile& file, std::uint32_t kind,
                            std::uint64_t expected_count) {
  switch (file.ElementBytes(kind)) {
    case 1:
      return ReadAs<std::uint8_t>(file, kind, expected_count);
    case 2:
      return ReadAs<std::uint16_t>(file, kind, expected_count);
    case 4:
      return ReadAs<std::uint32_t>(file, kind, expected_count);
    default:
      return ReadAs<std::uint64_t>(file, kind, expected_count);
  }
}

const void* Column::PagedBytes(std::size_t first, std::size_t count) const {
  return static_cast<const PagedSection*>(data_)->Elements(first, count);
}

std::size_t Column::LowerBound(std::size_t begin, std::size_t end, std::uint64_t value) const {
  return FirstNot(begin, end, [&](std::size_t i) { return (*this)[i] < value; });
}

std::size_t Column::UpperBound(std::size_t begin, std::size_t end, std::uint64_t value) const {
  return FirstNot(begin, end, [&](std::size_t i) { return (*this)[i] <= value; });
}

Status WriteColumn(SectionFileWriter& writer, std::uint32_t kind,
                   std::span<const std::uint64_t> values, std::uint32_t min_bytes) {
  const std::uint64_t largest =
      values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  const std::uint32_t element_bytes = std::max(min_bytes, BytesFor(largest));
  RHIZOME_RETURN_IF_ERROR(writer.BeginSection(kind, element_bytes));
  return AppendAs(writer, element_bytes, values);
}

Result<ColumnWriter> ColumnWriter::Begin(SectionFileWriter& writer, std::uint32_t kind,
                                         std::uint64_t largest, std::uint32_t min_bytes) {
  const std::uint32_t element_bytes = std::max(min_bytes, BytesFor(largest));
  RHIZOME_RETURN_IF_ERROR(writer.BeginSection(kind, element_bytes));
  return ColumnWriter(writer, element_bytes);
}

Status ColumnWriter::Flush() {
  RHIZOME_RETURN_IF_ERROR(AppendAs(*writer_, element_bytes_, piece_));
  piece_.clear();
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
