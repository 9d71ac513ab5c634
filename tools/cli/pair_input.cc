#include "tools/cli/pair_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "index/input/npy.h"
#include "index/input/table_reader.h"
#include "rhizome/graph_scan.h"

namespace rhizome {
namespace {

constexpr std::size_t kCountedAtOnce = 65536;

class TextPairs {
 public:
  TextPairs(const GraphSnapshot& graph, std::unique_ptr<TableReader> reader)
      : graph_(graph), reader_(std::move(reader)) {}

  Result<std::size_t> Next(std::span<VertexPair> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, reader_->ReadLine());
      if (next == TableReader::Next::kEnd) return i;
      const Status taken = next == TableReader::Next::kMalformed
                               ? Status::InvalidArgument(reader_->reason())
                               : Take(reader_->fields(), out[i]);
      if (!taken.ok()) return Fail(taken.WithContext(reader_->Place()));
    }
    return out.size();
  }

 private:
  Status Take(std::span<const std::string_view> fields, VertexPair& pair) const {
    if (fields.size() != 2 && fields.size() != 3) {
      return Status::InvalidArgument(fmt::format(
          "{} fields, but a pair has two ids and optionally an edge type", fields.size()));
    }
    RHIZOME_ASSIGN_OR_RETURN(pair.src, graph_.FindText(fields[0]));
    RHIZOME_ASSIGN_OR_RETURN(pair.dst, graph_.FindText(fields[1]));
    pair.type = 0;
    if (fields.size() == 2) return Status::Ok();
    const auto found = std::find(types_.begin(), types_.end(), fields[2]);
    if (found == types_.end())
      return Status::NotFound(fmt::format("there is no edge type '{}'", fields[2]));
    pair.type = static_cast<TypeId>(found - types_.begin());
    return Status::Ok();
  }

  const GraphSnapshot& graph_;
  const std::vector<std::string> types_ = graph_.edge_types();
  std::unique_ptr<TableReader> reader_;
};

class NpyPairs {
 public:
  NpyPairs(const GraphSnapshot& graph, std::unique_ptr<NpyReader> reader)
      : graph_(graph), reader_(std::move(reader)) {}

  Result<std::size_t> Next(std::span<VertexPair> out) {
    const std::uint64_t count =
        std::min<std::uint64_t>(out.size(), reader_->header().rows() - taken_);
    ids_.resize(2 * count);
    RHIZOME_RETURN_IF_ERROR(reader_->Read(std::as_writable_bytes(std::span(ids_))));
    for (std::size_t i = 0; i < count; ++i) {
      const Status found = FindEnds(ids_[2 * i], ids_[2 * i + 1], out[i]);
      if (found.ok()) continue;
      return Fail(found.WithContext(
          fmt::format("{}, pair {}", reader_->stream().path().string(), taken_ + i)));
    }
    taken_ += count;
    if (count < out.size()) RHIZOME_RETURN_IF_ERROR(reader_->Finish());
    return count;
  }

 private:
  Status FindEnds(std::int64_t src, std::int64_t dst, VertexPair& pair) const {
    RHIZOME_ASSIGN_OR_RETURN(pair.src, graph_.Find(ExternalId(src)));
    RHIZOME_ASSIGN_OR_RETURN(pair.dst, graph_.Find(ExternalId(dst)));
    pair.type = 0;
    return Status::Ok();
  }

  const GraphSnapshot& graph_;
  std::unique_ptr<NpyReader> reader_;
  std::uint64_t taken_ = 0;
  std::vector<std::int64_t> ids_;
};

/// Wraps `pairs` in a PairSource whose copies share its state.
template <typename Pairs>
PairSource Shared(std::shared_ptr<Pairs> pairs) {
  return [pairs](std::span<VertexPair> out) { return pairs->Next(out); };
}

class ScannedEdges {
 public:
  explicit ScannedEdges(EdgeScan scan) : scan_(std::move(scan)) {}
  Result<std::size_t> Next(std::span<VertexPair> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      RHIZOME_ASSIGN_OR_RETURN(const auto edge, scan_.Next());
      if (!edge) return i;
      out[i] = {.src = edge->src, .dst = edge->dst, .type = edge->type};
    }
    return out.size();
  }

 private:
  EdgeScan scan_;
};

}  // namespace

Result<PairInput> OpenPairs(const GraphSnapshot& graph, const std::string& path) {
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::OpenOnce(fs, path));
  if (ContentExtension(path) != ".npy") {
    RHIZOME_ASSIGN_OR_RETURN(
        auto reader, TableReader::Open(std::move(stream), TableFormOf(path), /*header=*/false));
    return PairInput{Shared(std::make_shared<TextPairs>(graph, std::move(reader))), 0};
  }
  RHIZOME_ASSIGN_OR_RETURN(auto reader, NpyReader::Open(std::move(stream)));
  const NpyHeader& header = reader->header();
  if (header.dtype != DataType::kInt64 || header.shape.size() != 2 || header.dim() != 2) {
    return Fail(
        Status::InvalidArgument(fmt::format("{}: pairs must be int64 of shape [m, 2]", path)));
  }
  const std::uint64_t count = header.rows();
  return PairInput{Shared(std::make_shared<NpyPairs>(graph, std::move(reader))), count};
}

Result<PairInput> AllEdges(const GraphSnapshot& graph) {
  RHIZOME_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(graph, {.pairs_once = true}));
  return PairInput{Shared(std::make_shared<ScannedEdges>(std::move(scan))), 0};
}

Result<std::uint64_t> CountPairs(const PairInput& input, const JobControl& control) {
  std::vector<VertexPair> pairs(kCountedAtOnce);
  std::uint64_t all = 0;
  while (true) {
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "counting pairs", .done = all}));
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t count, input.next(pairs));
    all += count;
    if (count < pairs.size()) return all;
  }
}

}  // namespace rhizome
