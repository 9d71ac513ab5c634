#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "index/delta/delta_run.h"

namespace rhizome::testing {

/// Draws commits by number, in the form that a DeltaRunBuilder receives from a resolver, and
/// derives the expected contents of the delta from the plain list of all changes.
class DeltaHistory {
 public:
  struct Shape {
    bool symmetric = false;
    bool string_ids = false;
    std::uint32_t attribute_count = 0;
    std::uint64_t base_vertices = 5;
    std::uint64_t base_sequence = 0;
  };
  struct Edge {
    VertexId src = 0;
    VertexId dst = 0;
    TypeId type = 0;
    float weight = 1;
    std::vector<std::int64_t> attributes;
  };

  explicit DeltaHistory(const Shape& shape)
      : shape_(shape), vertices_(shape.base_vertices), sequence_(shape.base_sequence) {}

  std::uint64_t vertices() const { return vertices_; }
  std::uint64_t sequence() const { return sequence_; }
  TypeId edge_types() const { return edge_types_; }
  const std::vector<ExternalId>& ids() const { return ids_; }  ///< ids of new vertices
  const std::set<VertexId>& deleted() const { return deleted_; }
  const std::map<std::pair<std::uint64_t, VertexId>, std::uint64_t>& rows() const { return rows_; }
  const std::vector<Edge>& edges() const { return edges_; }
  const std::set<std::tuple<VertexId, TypeId, VertexId>>& erased() const { return erased_; }

  /// By dictionary, the texts that commits added, from code kFirstText on.
  static constexpr std::int64_t kFirstText = 3;
  const std::map<TextsId, std::vector<std::string>>& texts() const { return texts_; }
  std::map<TextsId, std::int64_t> text_ends() const {
    std::map<TextsId, std::int64_t> ends;
    for (const auto& [id, texts] : texts_)
      ends[id] = kFirstText + static_cast<std::int64_t>(texts.size());
    return ends;
  }

  /// Returns the next commit. It has between 1 and `most` changes.
  DeltaRun Commit(std::mt19937_64& rng, std::size_t most) {
    DeltaRunBuilder builder(shape_.symmetric, shape_.attribute_count,
                            static_cast<VertexId>(vertices_));
    ++sequence_;
    for (std::size_t changes = 1 + rng() % most; changes > 0; --changes) Change(rng, builder);
    return builder.Finish(sequence_);
  }

 private:
  void Change(std::mt19937_64& rng, DeltaRunBuilder& builder) {
    const auto vertex = [&] {
      return static_cast<VertexId>(std::min(rng() % vertices_, rng() % vertices_));
    };
    switch (rng() % 10) {
      case 0: {
        const std::string text = std::to_string(rng() % 50);
        ids_.push_back(shape_.string_ids ? ExternalId(std::string("é").append(text))
                                         : ExternalId(std::stoll(text)));
        builder.AddVertex(ids_.back(), static_cast<TypeId>(rng() % 2));
        ++vertices_;
        return;
      }
      case 1:
        if (rng() % 4 == 0) {
          builder.AddEdgeType(std::string("t").append(std::to_string(edge_types_++)));
        } else if (rng() % 3 == 0) {
          const VertexId gone = vertex();
          builder.DeleteVertex(gone);
          deleted_.insert(gone);
        }
        return;
      case 2: {
        const std::uint64_t array = 1 + rng() % 3;
        const VertexId of = vertex();
        builder.PutRow(array, of);
        rows_[{array, of}] = sequence_;
        return;
      }
      case 9: {
        auto& [id, texts] = *texts_.try_emplace(rng() % 3 == 0 ? kEdgeTexts : 1 + rng() % 2).first;
        const auto code = kFirstText + static_cast<std::int64_t>(texts.size());
        texts.push_back("é" + std::to_string(rng() % 100) + "." + std::to_string(code));
        builder.AddText(id, code, texts.back());
        return;
      }
      case 3:
      case 4:
        Erase(vertex(), vertex(), static_cast<TypeId>(rng() % edge_types_), builder);
        return;
      default:
        Add(rng, vertex(), vertex(), builder);
    }
  }

  void Add(std::mt19937_64& rng, VertexId src, VertexId dst, DeltaRunBuilder& builder) {
    Edge edge{
        src, dst, static_cast<TypeId>(rng() % edge_types_), static_cast<float>(rng() % 9), {}};
    for (std::uint32_t a = 0; a < shape_.attribute_count; ++a)
      edge.attributes.push_back(static_cast<std::int64_t>(rng() % 1000));
    builder.AddEdge(src, dst, edge.type, edge.weight, edge.attributes);
    edges_.push_back(edge);
    if (shape_.symmetric && src != dst) {
      std::swap(edge.src, edge.dst);
      edges_.push_back(edge);
    }
  }

  void Erase(VertexId src, VertexId dst, TypeId type, DeltaRunBuilder& builder) {
    builder.EraseEdges(src, dst, type);
    const auto drop = [&](VertexId from, VertexId to) {
      std::erase_if(edges_,
                    [&](const Edge& e) { return e.src == from && e.dst == to && e.type == type; });
      erased_.emplace(from, type, to);
    };
    drop(src, dst);
    if (shape_.symmetric) drop(dst, src);
  }

  const Shape shape_;
  std::uint64_t vertices_;
  std::uint64_t sequence_;
  TypeId edge_types_ = 1;
  std::vector<ExternalId> ids_;
  std::set<VertexId> deleted_;
  std::map<std::pair<std::uint64_t, VertexId>, std::uint64_t> rows_;
  std::map<TextsId, std::vector<std::string>> texts_;
  std::vector<Edge> edges_;  // existing edges, in the order in which they were added
  std::set<std::tuple<VertexId, TypeId, VertexId>> erased_;
};

}  // namespace rhizome::testing
