#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "rhizome/ingest.h"
#include "testing/compressed.h"
#include "testing/store_contents.h"
#include "tools/import/dataset.h"

namespace rhizome::testing {

/// The vertices of one type of a random data set.
struct TypedVertices {
  std::string name;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// The edges between two types, by the numbers of their vertices within the types.
struct TypedEdges {
  std::size_t src_type = 0;
  std::string relation;
  std::size_t dst_type = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ends;
};

/// A random graph of several types, or of one without a name. Tests write files for the importers
/// from it, and compare the resulting store with it.
struct RandomDataset {
  RandomDataset(std::mt19937_64& random, bool typed) {
    const std::vector<std::string> names =
        typed ? std::vector<std::string>{"author", "field", "paper"} : std::vector<std::string>{""};
    for (const std::string& name : names) {
      types.push_back({name, total, 1 + random() % 30});
      total += types.back().count;
    }
    const std::size_t last = types.size() - 1;
    const auto draw = [&](std::size_t src, const std::string& relation, std::size_t dst) {
      TypedEdges edges{src, relation, dst, {}};
      for (std::uint64_t e = random() % 120; e > 0; --e)
        edges.ends.emplace_back(random() % types[src].count, random() % types[dst].count);
      relations.push_back(edges);
    };
    if (typed) {
      draw(0, "writes", last);
      draw(last, "cites", last);
      draw(last, "about", 1);
      draw(0, "about", 1);  // the same relation between other types
    } else {
      draw(0, "", 0);
    }
    for (std::uint64_t v = 0; v < total; ++v) {
      label.push_back(random() % 5 == 0 ? -1 : static_cast<std::int64_t>(random() % 40));
      split.push_back(random() % 4 == 3 ? 255 : static_cast<std::uint8_t>(random() % 3));
    }
  }

  std::string NameOf(const TypedEdges& edges) const {
    if (edges.relation.empty()) return "edge";
    const auto same = std::count_if(relations.begin(), relations.end(), [&](const TypedEdges& e) {
      return e.relation == edges.relation;
    });
    if (same == 1) return edges.relation;
    return types[edges.src_type].name + "__" + edges.relation + "__" + types[edges.dst_type].name;
  }

  /// Returns every edge of the store, sorted.
  std::vector<NamedEdge> Edges() const {
    std::vector<NamedEdge> all;
    for (const TypedEdges& edges : relations) {
      for (const auto& [src, dst] : edges.ends)
        all.emplace_back(types[edges.src_type].first + src, NameOf(edges),
                         types[edges.dst_type].first + dst);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  std::vector<TypedVertices> types;
  std::vector<TypedEdges> relations;
  std::uint64_t total = 0;
  std::vector<std::int64_t> label;  // by vertex, -1: none
  std::vector<std::uint8_t> split;  // by vertex, 255: none
};

/// The rows of an edge attribute: for each relation, one for each edge, or none at all.
template <typename T>
using EdgeValues = std::vector<std::vector<std::vector<T>>>;

/// Returns the expected result of EdgeRowsOf; relations without rows have zeros.
template <typename T>
std::vector<std::pair<NamedEdge, std::vector<T>>> ExpectedRows(const RandomDataset& data,
                                                               const EdgeValues<T>& values,
                                                               std::size_t dim) {
  std::vector<std::pair<NamedEdge, std::vector<T>>> all;
  for (std::size_t r = 0; r < data.relations.size(); ++r) {
    const TypedEdges& edges = data.relations[r];
    for (std::size_t e = 0; e < edges.ends.size(); ++e)
      all.emplace_back(
          NamedEdge(data.types[edges.src_type].first + edges.ends[e].first, data.NameOf(edges),
                    data.types[edges.dst_type].first + edges.ends[e].second),
          values[r].empty() ? std::vector<T>(dim) : values[r][e]);
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// Ingests a data set, in memory or through spill files, and opens the store.
inline Result<OpenGraph> MakeStore(Dataset dataset, const std::filesystem::path& path,
                                   bool spilled) {
  IngestOptions options = std::move(dataset.options);
  options.id_type = IdType::kInteger;
  options.build.partition.partitions = 3;
  options.build.partition.kind = PartitionerKind::kHdrf;
  options.spill = spilled ? IngestOptions::Spill::kAlways : IngestOptions::Spill::kNever;
  options.memory_bytes = spilled ? std::uint64_t{1} << 22 : 0;
  const JobControl control;
  RHIZOME_ASSIGN_OR_RETURN(const IngestReport report,
                           Ingest(FileSystem::Posix(), path, options, control));
  EXPECT_EQ(report.spilled, spilled);
  return OpenStoreGraph(path);
}

/// Compares vertices, types and edges with the store's.
inline void ExpectGraph(const RandomDataset& data, const OpenGraph& open) {
  ASSERT_EQ(open.graph->vertex_count(), data.total);
  EXPECT_EQ(AllEdges(open), data.Edges());
  const auto& names = open.store->manifest().info.vertex_types;
  for (const TypedVertices& type : data.types) {
    for (std::uint64_t v = type.first; v < type.first + type.count; ++v)
      EXPECT_EQ(names[*open.graph->TypeOf(static_cast<VertexId>(v))],
                type.name.empty() ? "vertex" : type.name);
  }
}

}  // namespace rhizome::testing
