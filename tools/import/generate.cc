#include "tools/import/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "index/input/npy.h"
#include "storage/base/mix.h"
#include "storage/io/outside.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kBlock = 1 << 14;  // edges or lines between two progress reports

/// Uses of random words. Each use has its own key, so that no two uses share words.
enum class Use : std::uint64_t { kEdge = 1, kPermute = 2, kSplit = 3, kNoise = 4, kMean = 5 };

/// Returns the `counter`-th random word of an object. The word depends only on the arguments, so
/// that the output does not depend on the order of the work.
std::uint64_t Word(std::uint64_t seed, Use use, std::uint64_t object, std::uint64_t counter) {
  return Mix64(Mix64(Mix64(seed ^ static_cast<std::uint64_t>(use) << 56) ^ object) + counter);
}

/// Maps a random word to a number in [0, 1).
double Unit(std::uint64_t word) { return static_cast<double>(word >> 11) * 0x1p-53; }

/// Returns noise of mean 0 and standard deviation 1: the scaled sum of eight uniform 16-bit
/// numbers.
float Noise(std::uint64_t seed, std::uint64_t row, std::uint64_t column) {
  std::int64_t sum = 0;
  for (const std::uint64_t half : {std::uint64_t{0}, std::uint64_t{1}}) {
    const std::uint64_t word = Word(seed, Use::kNoise, row, 2 * column + half);
    for (int shift = 0; shift < 64; shift += 16)
      sum += static_cast<std::int64_t>(word >> shift & 0xFFFF);
  }
  // Each summand is uniform in [0, 2^16): mean 32767.5, variance (2^32 - 1) / 12.
  constexpr double kMean = 8 * 32767.5;
  constexpr double kInverseDeviation = 1 / 53509.92;
  return static_cast<float>((static_cast<double>(sum) - kMean) * kInverseDeviation);
}

struct Edge {
  std::uint64_t src = 0;
  std::uint64_t dst = 0;
};

/// Draws the edges and vertices of one graph.
/// Threads: all const functions may be called concurrently.
class Generator {
 public:
  explicit Generator(const GenerateOptions& options)
      : options_(options), vertices_(std::uint64_t{1} << options.scale) {
    if (options.permute) Permute();
  }

  std::uint64_t vertices() const { return vertices_; }
  std::uint64_t edges() const { return vertices_ * options_.edge_factor; }

  Edge EdgeAt(std::uint64_t i) const {
    Edge edge = options_.kind == GraphKind::kRmat ? Rmat(i) : Planted(i);
    edge = {IdOf(edge.src), IdOf(edge.dst)};
    if (options_.undirected && edge.src > edge.dst) std::swap(edge.src, edge.dst);
    return edge;
  }

  std::uint64_t ClassOf(std::uint64_t id) const {
    return (inverse_.empty() ? id : inverse_[id]) * options_.classes / vertices_;
  }

 private:
  /// Draws an R-MAT edge: each of `scale` levels chooses one quarter of the adjacency matrix with
  /// 32 random bits.
  Edge Rmat(std::uint64_t i) const {
    constexpr auto kShare = [](double p) { return static_cast<std::uint64_t>(p * 0x1p32); };
    constexpr std::uint64_t kA = kShare(0.57);
    constexpr std::uint64_t kB = kShare(0.57 + 0.19);
    constexpr std::uint64_t kC = kShare(0.57 + 0.19 + 0.19);
    Edge edge;
    std::uint64_t word = 0;
    for (std::uint32_t level = 0; level < options_.scale; ++level) {
      word = level % 2 == 0 ? Word(options_.seed, Use::kEdge, i, level / 2) : word >> 32;
      const std::uint64_t draw = word & 0xFFFFFFFF;
      edge.src = edge.src << 1 | (draw >= kB ? 1 : 0);
      edge.dst = edge.dst << 1 | ((draw >= kA && draw < kB) || draw >= kC ? 1 : 0);
    }
    return edge;
  }

  Edge Planted(std::uint64_t i) const {
    Edge edge;
    edge.src = ScaleTo(Word(options_.seed, Use::kEdge, i, 0), vertices_);
    const std::uint64_t draw = Word(options_.seed, Use::kEdge, i, 2);
    if (Unit(Word(options_.seed, Use::kEdge, i, 1)) >= options_.homophily) {
      edge.dst = ScaleTo(draw, vertices_);
      return edge;
    }
    const std::uint64_t community = edge.src * options_.classes / vertices_;
    const std::uint64_t begin = FirstOf(community);
    edge.dst = begin + ScaleTo(draw, FirstOf(community + 1) - begin);
    return edge;
  }

  /// Returns the first vertex v, before permutation, with v * classes / vertices == community.
  std::uint64_t FirstOf(std::uint64_t community) const {
    return (community * vertices_ + options_.classes - 1) / options_.classes;
  }

  void Permute() {
    id_.resize(vertices_);
    for (std::uint64_t v = 0; v < vertices_; ++v) id_[v] = v;
    for (std::uint64_t v = vertices_ - 1; v > 0; --v)
      std::swap(id_[v], id_[ScaleTo(Word(options_.seed, Use::kPermute, v, 0), v + 1)]);
    if (options_.kind != GraphKind::kPlanted) return;
    inverse_.resize(vertices_);
    for (std::uint64_t v = 0; v < vertices_; ++v) inverse_[id_[v]] = v;
  }

  std::uint64_t IdOf(std::uint64_t vertex) const { return id_.empty() ? vertex : id_[vertex]; }

  const GenerateOptions& options_;
  const std::uint64_t vertices_;
  std::vector<std::uint64_t> id_;       // by vertex, if permuted
  std::vector<std::uint64_t> inverse_;  // by id, if permuted and communities matter
};

Status CheckOptions(const GenerateOptions& options) {
  const auto check = [](bool fine, std::string_view flag, auto value, std::string_view range) {
    if (fine) return Status::Ok();
    return Status::InvalidArgument(fmt::format("{} {} is out of range {}", flag, value, range));
  };
  RHIZOME_RETURN_IF_ERROR(
      check(options.scale >= 1 && options.scale <= 32, "--scale", options.scale, "[1, 32]"));
  RHIZOME_RETURN_IF_ERROR(check(options.edge_factor >= 1 && options.edge_factor <= 4096,
                                "--edge-factor", options.edge_factor, "[1, 4096]"));
  RHIZOME_RETURN_IF_ERROR(check(options.dim <= 65536, "--dim", options.dim, "[0, 65536]"));
  if (options.kind == GraphKind::kRmat) return Status::Ok();
  const std::uint64_t most = std::min<std::uint64_t>(4096, std::uint64_t{1} << options.scale);
  RHIZOME_RETURN_IF_ERROR(check(options.classes >= 2 && options.classes <= most, "--classes",
                                options.classes, fmt::format("[2, {}]", most)));
  RHIZOME_RETURN_IF_ERROR(check(options.homophily >= 0 && options.homophily <= 1, "homophily",
                                options.homophily, "[0, 1]"));
  return check(options.feature_signal >= 0 && options.feature_signal <= 1000, "feature signal",
               options.feature_signal, "[0, 1000]");
}

std::span<const std::byte> PairBytes(const std::array<std::int64_t, 2>& pair) {
  return std::as_bytes(std::span(pair));
}

/// A .npy file that is being written, and its description.
struct PendingArray {
  NpyWriter writer;
  GeneratedFile file;
};

Result<PendingArray> NewArray(const Path& path, DataType dtype, std::uint64_t rows,
                              std::uint64_t dim) {
  RHIZOME_ASSIGN_OR_RETURN(NpyWriter writer, NpyWriter::Create(path, dtype, rows, dim));
  return PendingArray{std::move(writer), {path, rows, dim, std::string(DataTypeName(dtype))}};
}

Result<PendingArray> WriteAllEdges(const Path& path, const Generator& generator,
                                   const JobControl& control) {
  const std::uint64_t edges = generator.edges();
  RHIZOME_ASSIGN_OR_RETURN(PendingArray array, NewArray(path, DataType::kInt64, edges, 2));
  for (std::uint64_t i = 0; i < edges; ++i) {
    if (i % kBlock == 0)
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "write edges", .done = i, .total = edges, .detail = {}}));
    const Edge edge = generator.EdgeAt(i);
    RHIZOME_RETURN_IF_ERROR(array.writer.Append(
        PairBytes({static_cast<std::int64_t>(edge.src), static_cast<std::int64_t>(edge.dst)})));
  }
  return array;
}

/// Draws all edges and returns the distinct ones without self-loops, sorted. An edge is packed into
/// one 64-bit word (ids have 32 bits).
Result<std::vector<std::uint64_t>> DrawSimpleEdges(const Generator& generator,
                                                   const JobControl& control) {
  std::vector<std::uint64_t> packed;
  packed.reserve(generator.edges());
  for (std::uint64_t i = 0; i < generator.edges(); ++i) {
    if (i % kBlock == 0)
      RHIZOME_RETURN_IF_ERROR(control.Report(
          {.phase = "draw edges", .done = i, .total = generator.edges(), .detail = {}}));
    const Edge edge = generator.EdgeAt(i);
    if (edge.src != edge.dst) packed.push_back(edge.src << 32 | edge.dst);
  }
  std::sort(packed.begin(), packed.end());
  packed.erase(std::unique(packed.begin(), packed.end()), packed.end());
  return packed;
}

Result<PendingArray> WriteSimpleEdges(const Path& path, const Generator& generator,
                                      const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto packed, DrawSimpleEdges(generator, control));
  RHIZOME_ASSIGN_OR_RETURN(PendingArray array, NewArray(path, DataType::kInt64, packed.size(), 2));
  for (std::size_t i = 0; i < packed.size(); ++i) {
    if (i % kBlock == 0)
      RHIZOME_RETURN_IF_ERROR(control.Report(
          {.phase = "write edges", .done = i, .total = packed.size(), .detail = {}}));
    RHIZOME_RETURN_IF_ERROR(
        array.writer.Append(PairBytes({static_cast<std::int64_t>(packed[i] >> 32),
                                       static_cast<std::int64_t>(packed[i] & 0xFFFFFFFF)})));
  }
  return array;
}

std::string_view VertexSplitOf(std::uint64_t seed, std::uint64_t id) {
  const std::uint64_t draw = ScaleTo(Word(seed, Use::kSplit, id, 0), 10);
  return draw < 6 ? "train" : draw < 8 ? "valid" : "test";
}

Result<OutputFile> WriteNodes(const Path& path, const GenerateOptions& options,
                              const Generator& generator, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  std::string text;
  for (std::uint64_t id = 0; id < generator.vertices(); ++id) {
    if (options.kind == GraphKind::kRmat)
      fmt::format_to(std::back_inserter(text), "{}\n", id);
    else
      fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\n", id, generator.ClassOf(id),
                     VertexSplitOf(options.seed, id));
    if ((id + 1) % kBlock != 0 && id + 1 < generator.vertices()) continue;
    RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(text))));
    text.clear();
    RHIZOME_RETURN_IF_ERROR(control.Report(
        {.phase = "write nodes", .done = id + 1, .total = generator.vertices(), .detail = {}}));
  }
  return file;
}

/// Writes noise of shape [rows, dim]; `mean_of(row, column)` is added to each element.
template <typename MeanOf>
Result<PendingArray> WriteFeatures(const Path& path, std::uint64_t rows, std::uint64_t dim,
                                   std::uint64_t seed, const JobControl& control, MeanOf mean_of) {
  RHIZOME_ASSIGN_OR_RETURN(PendingArray array, NewArray(path, DataType::kFloat32, rows, dim));
  std::vector<float> row(dim);
  const std::uint64_t rows_per_report = std::max<std::uint64_t>(1, kBlock / dim);
  for (std::uint64_t r = 0; r < rows; ++r) {
    if (r % rows_per_report == 0)
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "write features", .done = r, .total = rows, .detail = {}}));
    for (std::uint64_t c = 0; c < dim; ++c) row[c] = Noise(seed, r, c) + mean_of(r, c);
    RHIZOME_RETURN_IF_ERROR(array.writer.Append(std::as_bytes(std::span(row))));
  }
  return array;
}

Result<PendingArray> WriteGraphFeatures(const Path& path, const GenerateOptions& options,
                                        const Generator& generator, const JobControl& control) {
  const bool planted = options.kind == GraphKind::kPlanted;
  const auto step =
      static_cast<float>(options.feature_signal / std::sqrt(static_cast<double>(options.dim)));
  // The mean of a class is +step or -step in each column.
  const auto mean_of = [&](std::uint64_t row, std::uint64_t column) {
    if (!planted) return 0.0F;
    const std::uint64_t word = Word(options.seed, Use::kMean, generator.ClassOf(row), column);
    return (word & 1) != 0 ? step : -step;
  };
  return WriteFeatures(path, generator.vertices(), options.dim, options.seed, control, mean_of);
}

/// Returns the output files that do not exist in `out` yet.
std::vector<Path> MissingFiles(FileSystem& fs, const Path& out) {
  std::vector<Path> missing;
  for (const char* name : {"edges.npy", "nodes.tsv", "features.npy"}) {
    const auto info = fs.Stat(out / name);
    if (!info && info.error().code() == StatusCode::kNotFound) missing.push_back(out / name);
  }
  return missing;
}

// Generates a graph: (1) draws the edges and writes them, with `simple` after sorting them and
// dropping duplicates; (2) writes the vertices with class and split; (3) writes features, if
// requested; (4) commits all files, so that none appears if a step fails.
Result<std::vector<GeneratedFile>> WriteGraph(FileSystem& fs, const Path& out,
                                              const GenerateOptions& options,
                                              const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, out));
  const Generator generator(options);
  const Path edges_path = out / "edges.npy";
  RHIZOME_ASSIGN_OR_RETURN(PendingArray edges,
                           options.simple ? WriteSimpleEdges(edges_path, generator, control)
                                          : WriteAllEdges(edges_path, generator, control));
  RHIZOME_ASSIGN_OR_RETURN(OutputFile nodes,
                           WriteNodes(out / "nodes.tsv", options, generator, control));
  std::optional<PendingArray> features;
  if (options.dim > 0) {
    RHIZOME_ASSIGN_OR_RETURN(PendingArray written,
                             WriteGraphFeatures(out / "features.npy", options, generator, control));
    features.emplace(std::move(written));
  }
  // All files are complete: commit them.
  RHIZOME_RETURN_IF_ERROR(edges.writer.Commit());
  RHIZOME_RETURN_IF_ERROR(nodes.Commit());
  const std::uint64_t node_columns = options.kind == GraphKind::kRmat ? 1 : 3;
  std::vector<GeneratedFile> files = {edges.file,
                                      {out / "nodes.tsv", generator.vertices(), node_columns, ""}};
  if (features) {
    RHIZOME_RETURN_IF_ERROR(features->writer.Commit());
    files.push_back(features->file);
  }
  return files;
}

}  // namespace

Result<std::vector<GeneratedFile>> GenerateGraph(FileSystem& fs, const Path& out,
                                                 const GenerateOptions& options,
                                                 const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  RHIZOME_RETURN_IF_ERROR(CheckFolderOutside(fs, out));
  const std::vector<Path> folders = MissingFolders(fs, out);
  const std::vector<Path> files = MissingFiles(fs, out);
  auto written = WriteGraph(fs, out, options, control);
  if (written) return written;
  // The disk may have become full after the first file was committed: remove the files and folders
  // that did not exist before.
  for (const Path& file : files) static_cast<void>(fs.RemoveFile(file));
  RemoveEmptyFolders(fs, folders);
  return written;
}

Result<GeneratedFile> GenerateFeatures(const Path& out, std::uint64_t rows, std::uint64_t dim,
                                       std::uint64_t seed, const JobControl& control) {
  if (dim == 0) return Fail(Status::InvalidArgument("--dim must be at least 1"));
  RHIZOME_ASSIGN_OR_RETURN(PendingArray array,
                           WriteFeatures(out, rows, dim, seed, control,
                                         [](std::uint64_t, std::uint64_t) { return 0.0F; }));
  RHIZOME_RETURN_IF_ERROR(array.writer.Commit());
  return array.file;
}

}  // namespace rhizome
