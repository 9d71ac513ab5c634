#include "tools/import/wordnet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "storage/base/hash.h"
#include "tools/import/gloss_features.h"
#include "tools/import/wordnet_database.h"
#include "tools/import/wordnet_names.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxFeatureDim = 65536;

/// Index of synsets by file and offset.
class SynsetIndex {
 public:
  explicit SynsetIndex(const std::vector<Synset>& synsets) {
    vertices_.reserve(synsets.size());
    for (std::size_t i = 0; i < synsets.size(); ++i)
      vertices_.emplace(Key(synsets[i].file, synsets[i].offset), static_cast<VertexId>(i));
  }

  /// Returns the target of a link, or -1 if there is no such synset.
  VertexId Find(const WordNetLink& link) const {
    const auto found = vertices_.find(Key(link.file, link.offset));
    return found == vertices_.end() ? -1 : found->second;
  }

 private:
  static std::uint64_t Key(std::uint8_t file, std::uint32_t offset) {
    return std::uint64_t{file} << 32 | offset;
  }
  std::unordered_map<std::uint64_t, VertexId> vertices_;
};

/// Adds the edges of one synset. Pointers of equal type and target are merged into one edge.
Status AddEdges(const Synset& synset, VertexId src, const SynsetIndex& index, EdgeList& edges) {
  std::vector<std::pair<TypeId, VertexId>> targets;
  for (const WordNetLink& link : synset.links) {
    const VertexId dst = index.Find(link);
    if (dst < 0)
      return Status::InvalidArgument(fmt::format(
          "data.{}:{}: a pointer refers to offset {} of data.{}, where there is no synset",
          kWordNetFiles[synset.file], synset.line, link.offset, kWordNetFiles[link.file]));
    targets.emplace_back(link.type, dst);
  }
  std::sort(targets.begin(), targets.end());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (i > 0 && targets[i] == targets[i - 1]) {
      edges.weight.back() += 1;
      continue;
    }
    edges.src.push_back(src);
    edges.dst.push_back(targets[i].second);
    edges.type.push_back(targets[i].first);
    edges.weight.push_back(1);
  }
  return Status::Ok();
}

/// Returns the split, chosen by a hash of the external id: 60 % train, 20 % valid, 20 % test.
std::uint8_t SynsetSplitOf(std::string_view id) {
  const Hash128 hash = Xxh3(std::as_bytes(std::span(id)));
  std::uint32_t draw = 0;
  std::memcpy(&draw, hash.data(), sizeof(draw));
  const std::uint32_t tenth = draw % 10;
  return tenth < 6 ? 0 : tenth < 8 ? 1 : 2;
}

template <typename T>
ArrayInput MakeArray(std::string name, DataType dtype, std::uint64_t dim, std::vector<T> values,
                     const WordNetOptions& options) {
  ArrayInput array;
  array.name = std::move(name);
  array.dim = dim;
  array.dtype = dtype;
  array.layout = options.layout;
  if (options.layout == ArrayLayout::kChunk) array.codec = options.codec;
  array.codec.element_bytes = sizeof(T);
  array.chunk_rows = options.chunk_rows;
  array.inner_rows = options.inner_rows;
  // The values are shared because std::function copies its target.
  array.read_rows = [dim, rows = std::make_shared<const std::vector<T>>(std::move(values))](
                        std::span<const VertexId> vertices, std::span<std::byte> out) {
    const std::size_t row_bytes = dim * sizeof(T);
    for (std::size_t i = 0; i < vertices.size(); ++i)
      std::memcpy(out.data() + i * row_bytes,
                  rows->data() + static_cast<std::size_t>(vertices[i]) * dim, row_bytes);
    return Status::Ok();
  };
  return array;
}

void AddArrays(const std::vector<Synset>& synsets, const WordNetOptions& options,
               GraphInput& graph) {
  std::vector<std::string_view> glosses;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> splits;
  for (std::size_t i = 0; i < synsets.size(); ++i) {
    glosses.push_back(synsets[i].gloss);
    labels.push_back(synsets[i].label);
    splits.push_back(SynsetSplitOf(graph.string_ids[i]));
  }
  graph.arrays.push_back(MakeArray("feat", DataType::kFloat32, options.feature_dim,
                                   HashTexts(glosses, options.feature_dim), options));
  graph.arrays.push_back(MakeArray("label", DataType::kInt64, 1, std::move(labels), options));
  graph.arrays.push_back(MakeArray("split", DataType::kUint8, 1, std::move(splits), options));
}

}  // namespace

Result<GraphInput> ReadWordNet(FileSystem& fs, const WordNetOptions& options,
                               const JobControl& control) {
  if (options.feature_dim < 1 || options.feature_dim > kMaxFeatureDim)
    return Fail(Status::InvalidArgument(fmt::format("feature dimension {} is out of range [1, {}]",
                                                    options.feature_dim, kMaxFeatureDim)));
  RHIZOME_ASSIGN_OR_RETURN(const auto synsets, ReadSynsets(fs, options.folder, control));
  if (synsets.empty())
    return Fail(Status::InvalidArgument(
        fmt::format("{}: the database has no synsets", options.folder.string())));
  GraphInput graph;
  graph.vertex_count = synsets.size();
  graph.id_kind = ExternalIdKind::kString;
  for (const char letter : kWordNetLetters) graph.vertex_type_names.emplace_back(1, letter);
  for (const WordNetPointer& pointer : WordNetPointers())
    graph.edge_type_names.emplace_back(pointer.name);
  const SynsetIndex index(synsets);
  for (std::size_t i = 0; i < synsets.size(); ++i) {
    graph.string_ids.push_back(synsets[i].Id());
    graph.vertex_type.push_back(static_cast<TypeId>(kWordNetLetters.find(synsets[i].letter)));
    RHIZOME_RETURN_IF_ERROR(AddEdges(synsets[i], static_cast<VertexId>(i), index, graph.edges));
  }
  AddArrays(synsets, options, graph);
  return graph;
}

}  // namespace rhizome
