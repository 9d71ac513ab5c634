#include "rhizome/write_batch.h"

#include <utility>

#include "index/input/convert.h"

namespace rhizome {

std::optional<std::int64_t> EdgeValue::BitsAs(DataType dtype) const {
  if (kind_ == Kind::kTooLarge || kind_ == Kind::kText) return std::nullopt;
  const bool floats = dtype != DataType::kInt64;
  if (floats == (kind_ == Kind::kFloat)) return bits_;
  if (!floats || !IsExact(bits_, dtype)) return std::nullopt;
  return std::bit_cast<std::int64_t>(static_cast<double>(bits_));
}

std::string_view EdgeValue::type_name() const {
  switch (kind_) {
    case Kind::kInteger:
      return "int64";
    case Kind::kFloat:
      return "float64";
    case Kind::kText:
      return "text";
    default:
      return "uint64";
  }
}

void WriteBatch::PutVertex(ExternalId id, std::string_view type) {
  operations_.push_back({.kind = Kind::kPutVertex, .id = std::move(id), .name = std::string(type)});
}

void WriteBatch::DeleteVertex(ExternalId id) {
  operations_.push_back({.kind = Kind::kDeleteVertex, .id = std::move(id)});
}

void WriteBatch::PutEdge(ExternalId src, ExternalId dst, EdgeFields fields) {
  operations_.push_back({.kind = Kind::kPutEdge,
                         .id = std::move(src),
                         .dst = std::move(dst),
                         .name = std::move(fields.type),
                         .weight = fields.weight,
                         .attributes = std::move(fields.attributes)});
}

void WriteBatch::UpsertEdge(ExternalId src, ExternalId dst, EdgeFields fields) {
  PutEdge(std::move(src), std::move(dst), std::move(fields));
  operations_.back().kind = Kind::kUpsertEdge;
}

void WriteBatch::DeleteEdge(ExternalId src, ExternalId dst, std::string_view type) {
  operations_.push_back({.kind = Kind::kDeleteEdge,
                         .id = std::move(src),
                         .dst = std::move(dst),
                         .name = std::string(type)});
}

void WriteBatch::PutRow(ExternalId id, std::string_view array, std::span<const std::byte> row) {
  AddRow(std::move(id), array, {row.begin(), row.end()}, {});
}

void WriteBatch::PutTexts(ExternalId id, std::string_view array, std::vector<std::string> texts) {
  operations_.push_back({.kind = Kind::kPutTexts,
                         .id = std::move(id),
                         .name = std::string(array),
                         .texts = std::move(texts)});
}

void WriteBatch::PutRows(std::span<const ExternalId> ids, std::string_view array,
                         std::span<const std::byte> rows, std::string_view type) {
  const std::size_t row_bytes = ids.empty() ? 0 : rows.size() / ids.size();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool last = i + 1 == ids.size();
    const auto row = rows.subspan(i * row_bytes, last ? std::dynamic_extent : row_bytes);
    AddRow(ids[i], array, {row.begin(), row.end()}, type);
  }
}

void WriteBatch::AddRow(ExternalId id, std::string_view array, std::vector<std::byte> row,
                        std::string_view row_type) {
  operations_.push_back({.kind = Kind::kPutRow,
                         .id = std::move(id),
                         .name = std::string(array),
                         .row = std::move(row),
                         .row_type = std::string(row_type)});
}

}  // namespace rhizome
