// Held-out edges. The readers of edge files ask SplitOf for each edge, and pass held-out ones to
// HoldOut, which adds their lines to the files. Their ids are collected with the ids of all edges,
// so that vertices have the same numbers as without holding out. Once ids are resolved to vertices,
// Remove drops the held-out edges from the ends. Commit writes the files.

#include "index/ingest/hold_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "index/base/counter_random.h"
#include "index/ingest/edge_file.h"
#include "index/input/value_column.h"
#include "storage/base/mix.h"
#include "storage/io/outside.h"
#include "storage/io/posix_place.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kTime = "time";
constexpr std::uint32_t kPairStream = 0x686F6C64;
constexpr std::uint64_t kLinesQueueBytes = std::uint64_t{1} << 20;

/// Returns a hash that is the same on every machine.
std::uint64_t HashOfId(std::string_view id) {
  std::uint64_t hash = Mix64(id.size());
  for (; id.size() >= 8; id.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, id.data(), sizeof(word));
    hash = Mix64(hash ^ word);
  }
  std::uint64_t rest = 0;
  if (!id.empty()) std::memcpy(&rest, id.data(), id.size());
  return Mix64(hash ^ rest);
}

Status CheckShares(const HoldOutOptions& hold_out) {
  for (const auto& [name, share] : {std::pair("valid", hold_out.valid), {"test", hold_out.test}})
    if (!(share >= 0) || share >= 1)
      return Status::InvalidArgument(
          fmt::format("`hold_out`: the share {} of '{}' is not in [0, 1)", share, name));
  if (hold_out.valid + hold_out.test < 1) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("`hold_out`: the shares {} of 'valid' and {} of 'test' leave no edges for the "
                  "store; their sum must be below 1",
                  hold_out.valid, hold_out.test));
}

bool HasTime(const IngestOptions& options) {
  const auto attributes = EdgeAttributesOf(options);
  return std::any_of(attributes.begin(), attributes.end(),
                     [](const EdgeAttribute& one) { return one.name() == kTime; });
}

/// Returns the names of the columns of the files.
std::vector<std::string> ColumnsOfFiles(const IngestOptions& options) {
  std::vector<std::string> names = {"src", "dst"};
  if (HasEdgeTypes(options)) names.emplace_back("type");
  const auto& columns = options.columns;
  if (std::find(columns.begin(), columns.end(), "weight") != columns.end())
    names.emplace_back("weight");
  for (const std::string& name : columns)
    if (name != "src" && name != "dst" && name != "type" && name != "weight" && name != "-")
      names.push_back(name);
  for (const EdgeArrayFile& array : options.edge_arrays)
    if (array.dim == 1) names.push_back(array.name);
  return names;
}

/// Checks that a new file can be written to `path`.
Status CheckFile(FileSystem& fs, const Path& path, bool overwrite) {
  RHIZOME_RETURN_IF_ERROR(CheckOutside(fs, path));
  const Result<FileInfo> info = fs.Stat(path);
  if (!info) return info.error().code() == StatusCode::kNotFound ? Status::Ok() : info.error();
  if (overwrite) return Status::Ok();
  return Status::AlreadyExists(
      fmt::format("'{}' exists already, and the edges that are held out would be written there; "
                  "remove it first, or give the store another path",
                  path.string()));
}

/// Returns the path without a trailing slash.
Path WithoutSlash(const Path& path) { return path.filename().empty() ? path.parent_path() : path; }

}  // namespace

Status CheckHoldOut(const IngestOptions& options) {
  const HoldOutOptions& hold_out = options.hold_out;
  RHIZOME_RETURN_IF_ERROR(CheckShares(hold_out));
  if (!hold_out.any()) {
    if (hold_out.relations.empty() && hold_out.inverse.empty() &&
        hold_out.by == HoldOutOptions::By::kRandom)
      return Status::Ok();
    return Status::InvalidArgument(
        "options of held-out edges are given, but no share of edges; give `hold_out`, such as "
        "valid=.05,test=.05");
  }
  if (options.edges.empty())
    return Status::InvalidArgument("`hold_out` needs edges, but the input has none");
  if (hold_out.by == HoldOutOptions::By::kRandom) return Status::Ok();
  if (!HasTime(options))
    return Status::InvalidArgument(fmt::format(
        "`hold_out_by=time` needs the time of each edge, but no column of the edges is 'time'; the "
        "columns are {}",
        fmt::join(options.columns, ",")));
  RHIZOME_ASSIGN_OR_RETURN(const auto type, ColumnTypeOf(options.types, std::string(kTime)));
  if (type && type->is_text)
    return Status::InvalidArgument("`hold_out_by=time` cannot sort by a column 'time' of texts");
  if (options.spill != IngestOptions::Spill::kNever) return Status::Ok();
  return Status::InvalidArgument(
      "`hold_out_by=time` sorts edges by time in scratch files, which this ingestion may not use; "
      "allow them, or hold out edges at random");
}

HeldOutTypes::HeldOutTypes(const HoldOutOptions& options)
    : options_(options), names_(options.relations.begin(), options.relations.end()) {
  if (names_.empty()) return;
  // A relation may have several inverses, and those again others.
  for (std::size_t before = 0; before != names_.size();) {
    before = names_.size();
    for (const auto& [one, other] : options.inverse) {
      if (names_.contains(one)) names_.insert(other);
      if (names_.contains(other)) names_.insert(one);
    }
  }
}

Status HeldOutTypes::Check(std::span<const std::string> types) const {
  const auto check = [&](std::string_view option, const std::string& name) {
    if (std::find(types.begin(), types.end(), name) != types.end()) return Status::Ok();
    return Status::InvalidArgument(fmt::format(
        "`{}` names the edge type '{}', but no edge has it; the types are {}", option, name,
        fmt::join(types.subspan(0, std::min<std::size_t>(types.size(), 20)), ", ")));
  };
  for (const std::string& name : options_.relations)
    RHIZOME_RETURN_IF_ERROR(check("hold_out_relations", name));
  for (const auto& [one, other] : options_.inverse) {
    RHIZOME_RETURN_IF_ERROR(check("inverse", one));
    RHIZOME_RETURN_IF_ERROR(check("inverse", other));
  }
  return Status::Ok();
}

std::uint64_t DrawOfPair(std::uint64_t seed, std::string_view src, std::string_view dst) {
  const auto [low, high] = std::minmax({HashOfId(src), HashOfId(dst)});
  return CounterRandom({.seed = seed, .batch = low, .vertex = high, .stream = kPairStream})
      .Next64();
}

HeldOutEdges::HeldOutEdges(FileSystem& fs, const IngestOptions& options)
    : fs_(fs),
      options_(options.hold_out),
      typed_(HasEdgeTypes(options)),
      seed_(options.build.partition.seed),
      types_(options.hold_out) {}

HeldOutEdges::~HeldOutEdges() = default;

Result<std::unique_ptr<HeldOutEdges>> HeldOutEdges::Create(FileSystem& fs,
                                                           const IngestOptions& options,
                                                           const Path& store,
                                                           const Spilled* spilled) {
  const HoldOutOptions& hold_out = options.hold_out;
  if (!hold_out.any()) return std::unique_ptr<HeldOutEdges>();
  std::unique_ptr<HeldOutEdges> edges(new HeldOutEdges(fs, options));
  if (spilled != nullptr) {
    edges->space_ = &spilled->space;
    RHIZOME_ASSIGN_OR_RETURN(edges->lines_space_, SpillSpace::Create(fs, spilled->scratch,
                                                                     "held-out", kLinesQueueBytes));
    RHIZOME_ASSIGN_OR_RETURN(edges->held_writer_,
                             EdgeSpoolWriter::Create(spilled->space, kSpoolBlockEdges));
  }
  const Path base = WithoutSlash(hold_out.files.empty() ? store : AbsolutePath(fs, hold_out.files));
  const std::vector<std::string> columns = ColumnsOfFiles(options);
  const std::vector<std::string_view> header(columns.begin(), columns.end());
  for (const EdgeSplit split : {EdgeSplit::kValid, EdgeSplit::kTest}) {
    Set& set = edges->SetOf(split);
    const bool valid = split == EdgeSplit::kValid;
    set.report.name = valid ? "valid" : "test";
    if ((valid ? hold_out.valid : hold_out.test) == 0) continue;
    set.report.path = base;
    set.report.path += fmt::format(".{}.tsv.zst", set.report.name);
    RHIZOME_RETURN_IF_ERROR(CheckFile(fs, set.report.path, hold_out.overwrite));
    RHIZOME_ASSIGN_OR_RETURN(set.file, HeldOutFile::Create(edges->lines_space_.get()));
    RHIZOME_RETURN_IF_ERROR(set.file->AddLine(header));
  }
  return edges;
}

Status HeldOutEdges::SetChoices(EdgeSpool choices) {
  choices_ = std::move(choices);
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader reader, EdgeSpoolReader::Open(*choices_));
  choices_reader_.emplace(std::move(reader));
  return Status::Ok();
}

Result<EdgeSplit> HeldOutEdges::SplitOf(const ExternalEdge& edge) {
  if (!types_.Has(edge.type)) return EdgeSplit::kTrain;
  if (options_.by == HoldOutOptions::By::kTime) return ChoiceOfTime();
  const double draw = static_cast<double>(DrawOfPair(seed_, edge.src, edge.dst) >> 11) * 0x1p-53;
  if (draw < options_.test) return EdgeSplit::kTest;
  return draw < options_.test + options_.valid ? EdgeSplit::kValid : EdgeSplit::kTrain;
}

Result<EdgeSplit> HeldOutEdges::ChoiceOfTime() {
  const auto number = static_cast<VertexId>(begun_ - 1);
  while (true) {
    for (; next_choice_ < choice_block_.size(); ++next_choice_) {
      if (choice_block_.src[next_choice_] == number)
        return static_cast<EdgeSplit>(choice_block_.dst[next_choice_]);
      if (choice_block_.src[next_choice_] > number) return EdgeSplit::kTrain;
    }
    if (!choices_reader_) return EdgeSplit::kTrain;
    next_choice_ = 0;
    ClearEdges(choice_block_);
    RHIZOME_ASSIGN_OR_RETURN(const bool more, choices_reader_->Next(choice_block_));
    if (!more) choices_reader_.reset();
  }
}

Status HeldOutEdges::HoldOut(EdgeSplit split, const ExternalEdge& edge,
                             std::span<const std::string> values) {
  Set& set = SetOf(split);
  line_.assign({edge.src, edge.dst});
  if (typed_) line_.push_back(edge.type);
  line_.insert(line_.end(), values.begin(), values.end());
  RHIZOME_RETURN_IF_ERROR(set.file->AddLine(line_));
  ++set.report.edges;
  const auto counted = set.by_type.find(edge.type);
  if (counted != set.by_type.end())
    ++counted->second;
  else
    set.by_type.emplace(edge.type, 1);
  EdgeList& held = held_writer_ ? held_writer_->edges : held_;
  held.src.push_back(static_cast<VertexId>(edges_++));
  held.dst.push_back(static_cast<VertexId>(split));
  return held_writer_ ? held_writer_->FlushIfFull(held.size()) : Status::Ok();
}

std::uint64_t HeldOutEdges::memory_bytes() const {
  std::uint64_t bytes = (held_.src.capacity() + held_.dst.capacity()) * sizeof(VertexId);
  for (const Set& set : sets_)
    if (set.file) bytes += set.file->memory_bytes();
  return bytes;
}

Status HeldOutEdges::EndEdges(std::span<const std::string> types) {
  if (held_writer_) {
    RHIZOME_ASSIGN_OR_RETURN(held_spool_, held_writer_->Finish(held_writer_->edges.size()));
    held_writer_.reset();
  }
  choices_reader_.reset();
  choices_.reset();
  return types_.Check(types);
}

void HeldOutEdges::CountUnseen(const EdgeList& ends, const std::vector<bool>& seen) {
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (!seen[static_cast<std::size_t>(ends.src[i])] ||
        !seen[static_cast<std::size_t>(ends.dst[i])])
      ++SetOf(static_cast<EdgeSplit>(ends.type[i])).report.unseen_ends;
}

void HeldOutEdges::Remove(std::uint64_t vertices, std::vector<VertexId>& src,
                          std::vector<VertexId>& dst) {
  std::vector<bool> seen(vertices);
  EdgeList held;
  std::size_t next = 0;
  std::size_t kept = 0;
  for (std::size_t e = 0; e < src.size(); ++e) {
    if (next < held_.size() && held_.src[next] == static_cast<VertexId>(e)) {
      held.src.push_back(src[e]);
      held.dst.push_back(dst[e]);
      held.type.push_back(static_cast<TypeId>(held_.dst[next++]));
      continue;
    }
    seen[static_cast<std::size_t>(src[e])] = true;
    seen[static_cast<std::size_t>(dst[e])] = true;
    src[kept] = src[e];
    dst[kept++] = dst[e];
  }
  src.resize(kept);
  dst.resize(kept);
  held_ = {};
  CountUnseen(held, seen);
}

Result<EdgeSpool> HeldOutEdges::Remove(std::uint64_t vertices, const EdgeSpool& ends) {
  std::vector<bool> seen(vertices);
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader reader, EdgeSpoolReader::Open(ends));
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader numbers, EdgeSpoolReader::Open(held_spool_));
  RHIZOME_ASSIGN_OR_RETURN(auto kept, EdgeSpoolWriter::Create(*space_, kSpoolBlockEdges));
  RHIZOME_ASSIGN_OR_RETURN(auto held, EdgeSpoolWriter::Create(*space_, kSpoolBlockEdges));
  EdgeList block;
  EdgeList number_block;
  bool more_numbers = true;
  std::size_t next = 0;
  VertexId edge = 0;
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const bool more, reader.Next(block));
    if (!more) break;
    for (std::size_t i = 0; i < block.size(); ++i, ++edge) {
      if (next == number_block.size() && more_numbers) {
        next = 0;
        ClearEdges(number_block);
        RHIZOME_ASSIGN_OR_RETURN(more_numbers, numbers.Next(number_block));
      }
      const bool is_held = next < number_block.size() && number_block.src[next] == edge;
      if (is_held) held.edges.type.push_back(static_cast<TypeId>(number_block.dst[next++]));
      EdgeSpoolWriter& writer = is_held ? held : kept;
      writer.edges.src.push_back(block.src[i]);
      writer.edges.dst.push_back(block.dst[i]);
      RHIZOME_RETURN_IF_ERROR(writer.FlushIfFull(writer.edges.size()));
      if (is_held) continue;
      seen[static_cast<std::size_t>(block.src[i])] = true;
      seen[static_cast<std::size_t>(block.dst[i])] = true;
    }
  }
  held_spool_ = {};
  RHIZOME_ASSIGN_OR_RETURN(const EdgeSpool held_ends, held.Finish(held.edges.size()));
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader again, EdgeSpoolReader::Open(held_ends));
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const bool more, again.Next(block));
    if (!more) break;
    CountUnseen(block, seen);
  }
  return kept.Finish(kept.edges.size());
}

// The order is such that the files exist if the store does.
Status HeldOutEdges::Commit(GenerationWriter& writer, const GenerationInfo& info) {
  for (Set& set : sets_) {
    if (!set.file) continue;
    set.written = !options_.overwrite;  // a file that existed remains if the new one fails
    RHIZOME_RETURN_IF_ERROR(set.file->Write(set.report.path));
    set.written = true;
    set.file.reset();
  }
  if (lines_space_) RHIZOME_RETURN_IF_ERROR(lines_space_->Clear());
  return writer.Commit(info);
}

void HeldOutEdges::RemoveFiles() {
  for (Set& set : sets_)
    if (std::exchange(set.written, false)) static_cast<void>(fs_.RemoveFile(set.report.path));
}

std::vector<HeldOutSet> HeldOutEdges::Report() const {
  std::vector<HeldOutSet> report;
  for (const Set& set : sets_) {
    if (set.report.path.empty()) continue;
    report.push_back(set.report);
    report.back().by_type.assign(set.by_type.begin(), set.by_type.end());
  }
  return report;
}

BuildHooks HooksOf(HeldOutEdges* held_out) {
  if (held_out == nullptr) return {};
  return {.commit = [held_out](GenerationWriter& writer, const GenerationInfo& info) {
    return held_out->Commit(writer, info);
  }};
}

}  // namespace internal
}  // namespace rhizome
