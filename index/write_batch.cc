#include "rhizome/index/write_batch.h"

#include <utility>

namespace rhizome {

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
  operations_.push_back({.kind = Kind::kPutRow,
                         .id = std::move(id),
                         .name = std::string(array),
                         .row = {row.begin(), row.end()}});
}

}  // namespace rhizome
