#include "cache/lists/neighbor_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "index/delta/graph_parts.h"
#include "index/topology/adjacency.h"
#include "index/topology/section_struct.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"
#include "storage/section/section_file.h"

namespace rhizome {
namespace {

/// Sections of a dump; see storage/FORMAT.md, "Neighbour cache". Stored on disk: never renumber.
enum class CacheSection : std::uint32_t {
  kInvalid = 0,
  kHeader = 1,  // one CacheHeader
  kCounts = 2,  // [partitions] number of lists of each partition
  kLocals = 3,  // [lists] local ids, ascending within a partition
  kBytes = 4,   // the lists, each padded to a multiple of 4
};
constexpr std::uint32_t Kind(CacheSection section) { return static_cast<std::uint32_t>(section); }

/// The header of a dump, little-endian like every number on disk.
struct CacheHeader {
  std::uint64_t generation;
  std::uint32_t direction;  // 1 out, 2 in
  std::uint32_t partitions;
};
static_assert(sizeof(CacheHeader) == 16, "on-disk layout");

// Bytes per read while lists are loaded: long enough for the disk's full throughput.
constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;

/// A list that may be cached.
struct Candidate {
  double ratio;
  std::uint64_t degree;
  std::uint32_t partition;
  LocalId local;
};

std::uint64_t UnitsOf(std::uint64_t bytes) { return (bytes + 3) / 4; }

Direction Opposite(Direction direction) {
  return direction == Direction::kIn ? Direction::kOut : Direction::kIn;
}

/// Calls visit(local, bytes of its list) for each of `locals`, which must ascend. Reads many lists
/// at once, in pieces of at most kPieceBytes unless a single list is longer.
template <typename Visit>
Status ForEachList(const Adjacency& partition, Direction direction, std::span<const LocalId> locals,
                   const JobControl& control, Visit visit) {
  for (std::size_t begin = 0; begin < locals.size();) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    const Adjacency::Extent first = partition.ExtentOf(locals[begin], direction);
    std::uint64_t end_bytes = first.offset_bytes + first.size_bytes;
    std::size_t end = begin + 1;
    for (; end < locals.size(); ++end) {
      const Adjacency::Extent next = partition.ExtentOf(locals[end], direction);
      if (next.offset_bytes + next.size_bytes - first.offset_bytes > kPieceBytes) break;
      end_bytes = next.offset_bytes + next.size_bytes;
    }
    RHIZOME_ASSIGN_OR_RETURN(
        const auto bytes,
        partition.file().ReadBytes(first.offset_bytes, end_bytes - first.offset_bytes));
    for (; begin < end; ++begin) {
      const Adjacency::Extent extent = partition.ExtentOf(locals[begin], direction);
      RHIZOME_RETURN_IF_ERROR(
          visit(locals[begin], std::span<const std::byte>(bytes).subspan(
                                   extent.offset_bytes - first.offset_bytes, extent.size_bytes)));
    }
  }
  return Status::Ok();
}

std::vector<LocalId> AllLocals(const Adjacency& partition) {
  std::vector<LocalId> locals(partition.vertex_count());
  for (std::size_t i = 0; i < locals.size(); ++i) locals[i] = static_cast<LocalId>(i);
  return locals;
}

/// Counts how often each row appears in the lists of `direction`, saturating at UINT32_MAX.
Result<std::vector<std::uint32_t>> CountAppearances(const GraphSnapshot& graph, Direction direction,
                                                    const JobControl& control) {
  std::vector<std::uint32_t> counts(graph.vertex_count(), 0);
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    const std::vector<LocalId> locals = AllLocals(partition);
    std::vector<LocalId> list;
    RHIZOME_RETURN_IF_ERROR(ForEachList(
        partition, direction, locals, control,
        [&](LocalId local, std::span<const std::byte> bytes) {
          if (!partition.DecodeList(local, direction, bytes, list)) {
            return Status::Corruption(
                fmt::format("{}: the list of local vertex {} cannot be decoded",
                            partition.file().path().string(), local));
          }
          for (const LocalId neighbor : list) {
            std::uint32_t& count = counts[static_cast<std::size_t>(partition.RowOf(neighbor))];
            if (count < UINT32_MAX) ++count;
          }
          return Status::Ok();
        }));
  }
  return counts;
}

}  // namespace

// Chooses the lists to cache: (1) if only one direction is stored, counts the degrees of the other
// direction; (2) collects every non-empty list with its ratio of accesses to length; (3) sorts them
// by descending ratio; (4) takes each list that still fits into the budget.
Result<NeighborCache::Chosen> NeighborCache::Choose(const GraphSnapshot& graph,
                                                    const NeighborCacheOptions& options,
                                                    const JobControl& control) {
  const bool stored = graph.partition_count() > 0 && graph.partition(0).has(Direction::kBoth);
  std::vector<std::uint32_t> appearances;
  if (!stored) {
    RHIZOME_ASSIGN_OR_RETURN(appearances, CountAppearances(graph, options.direction, control));
  }
  std::vector<Candidate> candidates;
  std::uint64_t table_bytes = 0;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    table_bytes += partition.vertex_count() * sizeof(std::uint32_t);
    for (std::uint64_t v = 0; v < partition.vertex_count(); ++v) {
      const auto local = static_cast<LocalId>(v);
      if (partition.Entries(local, options.direction).count == 0) continue;
      const std::uint64_t degree = partition.GlobalDegree(local, options.direction);
      const std::uint64_t asked =
          stored ? partition.GlobalDegree(local, Opposite(options.direction))
                 : appearances[static_cast<std::size_t>(partition.RowOf(local))];
      candidates.push_back(
          {static_cast<double>(asked) / static_cast<double>(degree), degree, p, local});
    }
  }
  if (table_bytes > options.budget_bytes) {
    return Fail(Status::InvalidArgument(
        fmt::format("a neighbour cache of {} bytes is too small for its table of {} bytes",
                    options.budget_bytes, table_bytes)));
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(b.ratio, b.degree, a.partition, a.local) <
           std::tie(a.ratio, a.degree, b.partition, b.local);
  });
  Chosen chosen;
  chosen.locals.resize(graph.partition_count());
  const std::uint64_t max_units =
      std::min<std::uint64_t>((options.budget_bytes - table_bytes) / kUnitBytes, kAbsent);
  for (const Candidate& candidate : candidates) {
    const std::uint64_t units = UnitsOf(graph.partition(candidate.partition)
                                            .ExtentOf(candidate.local, options.direction)
                                            .size_bytes);
    if (units > max_units - chosen.units) continue;  // a shorter list may still fit
    chosen.units += units;
    chosen.locals[candidate.partition].push_back(candidate.local);
  }
  for (auto& locals : chosen.locals) std::sort(locals.begin(), locals.end());
  return chosen;
}

/// Assigns an offset to each chosen list, in order of partition and local id.
void NeighborCache::Place(const GraphSnapshot& graph, const Chosen& chosen) {
  units_.resize(graph.partition_count());
  std::uint64_t unit = 0;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    units_[p].assign(partition.vertex_count(), kAbsent);
    for (const LocalId local : chosen.locals[p]) {
      units_[p][local] = static_cast<std::uint32_t>(unit);
      unit += UnitsOf(partition.ExtentOf(local, direction_).size_bytes);
    }
    list_count_ += chosen.locals[p].size();
  }
  RHIZOME_CHECK(unit == chosen.units);
}

Status NeighborCache::ReadLists(const GraphSnapshot& graph, const Chosen& chosen,
                                const JobControl& control) {
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "neighbour cache", .done = p, .total = graph.partition_count()}));
    RHIZOME_RETURN_IF_ERROR(ForEachList(
        graph.partition(p), direction_, chosen.locals[p], control,
        [&](LocalId local, std::span<const std::byte> list) {
          const auto place = built_.bytes().subspan(std::uint64_t{units_[p][local]} * kUnitBytes,
                                                    UnitsOf(list.size()) * kUnitBytes);
          std::fill(std::copy(list.begin(), list.end(), place.begin()), place.end(), std::byte{0});
          return Status::Ok();
        }));
  }
  return Status::Ok();
}

Result<std::shared_ptr<const NeighborCache>> NeighborCache::Build(
    const GraphSnapshot& graph, const NeighborCacheOptions& options,
    const JobControl& control) try {
  RHIZOME_RETURN_IF_ERROR(graph.parts()->CheckWhole("a neighbour cache"));
  const bool single = options.direction == Direction::kIn || options.direction == Direction::kOut;
  if (!single || (graph.partition_count() > 0 && !graph.partition(0).has(options.direction))) {
    return Fail(Status::InvalidArgument(
        "a neighbour cache can hold either in-lists or out-lists, which the store must keep"));
  }
  if (graph.partition_count() > 0 && graph.partition(0).resident()) {
    return Fail(
        Status::InvalidArgument("the lists are in memory already, so there is nothing to cache"));
  }
  std::shared_ptr<NeighborCache> cache(new NeighborCache());
  cache->direction_ = options.direction;
  RHIZOME_ASSIGN_OR_RETURN(const Chosen chosen, Choose(graph, options, control));
  RHIZOME_ASSIGN_OR_RETURN(cache->built_, AlignedBuffer::Allocate(chosen.units * kUnitBytes));
  cache->lists_ = cache->built_.bytes();
  cache->Place(graph, chosen);
  RHIZOME_RETURN_IF_ERROR(cache->ReadLists(graph, chosen, control));
  return cache;
} catch (...) {
  return Fail(StatusOfException());
}

NeighborCache::Needs NeighborCache::NeedsOf(const GraphSnapshot& graph, Direction direction) {
  Needs needs;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    const std::uint64_t vertices = partition.vertex_count();
    needs.table_bytes += vertices * sizeof(std::uint32_t);
    needs.build_bytes += vertices * (sizeof(Candidate) + sizeof(LocalId));
    if (!partition.has(Direction::kBoth)) needs.build_bytes += vertices * sizeof(std::uint32_t);
    for (std::uint64_t v = 0; v < vertices; ++v) {
      needs.full_bytes +=
          UnitsOf(partition.ExtentOf(static_cast<LocalId>(v), direction).size_bytes) * kUnitBytes;
    }
  }
  needs.full_bytes += needs.table_bytes;
  needs.build_bytes += kPieceBytes;
  return needs;
}

Status NeighborCache::Dump(ByteSink& sink, const GraphSnapshot& graph) const try {
  SectionFileWriter writer(sink, FileKind::kNeighborCache, graph.store().id());
  const CacheHeader header{graph.store().manifest().generation,
                           static_cast<std::uint32_t>(direction_),
                           static_cast<std::uint32_t>(units_.size())};
  RHIZOME_RETURN_IF_ERROR(
      WriteStructs<CacheHeader>(writer, Kind(CacheSection::kHeader), std::span(&header, 1)));
  std::vector<std::uint64_t> counts;
  std::vector<std::uint32_t> locals;
  for (const auto& units : units_) {
    const std::size_t before = locals.size();
    for (std::size_t v = 0; v < units.size(); ++v)
      if (units[v] != kAbsent) locals.push_back(static_cast<std::uint32_t>(v));
    counts.push_back(locals.size() - before);
  }
  RHIZOME_RETURN_IF_ERROR(
      writer.AddSection(Kind(CacheSection::kCounts), std::span<const std::uint64_t>(counts)));
  RHIZOME_RETURN_IF_ERROR(
      writer.AddSection(Kind(CacheSection::kLocals), std::span<const std::uint32_t>(locals)));
  RHIZOME_RETURN_IF_ERROR(writer.AddSection(Kind(CacheSection::kBytes), lists_));
  return writer.Finish();
} catch (...) {
  return StatusOfException();
}

Result<std::shared_ptr<const NeighborCache>> NeighborCache::Load(FileSystem& fs, const Path& path,
                                                                 const GraphSnapshot& graph,
                                                                 Direction direction) try {
  RHIZOME_RETURN_IF_ERROR(graph.parts()->CheckWhole("a neighbour cache"));
  RHIZOME_ASSIGN_OR_RETURN(
      SectionFile file, SectionFile::Load(fs, path, FileKind::kNeighborCache, graph.store().id()));
  const auto corrupt = [&](std::string_view what) {
    return Fail(Status::Corruption(fmt::format("{}: {}", path.string(), what)));
  };
  RHIZOME_ASSIGN_OR_RETURN(const auto headers,
                           ReadStructs<CacheHeader>(file, Kind(CacheSection::kHeader), 1));
  if (headers[0].generation != graph.store().manifest().generation ||
      headers[0].partitions != graph.partition_count() ||
      headers[0].direction != static_cast<std::uint32_t>(direction)) {
    return Fail(Status::InvalidArgument(fmt::format(
        "{}: the neighbour cache belongs to another generation or direction; build it again",
        path.string())));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      const auto counts,
      file.Section<std::uint64_t>(Kind(CacheSection::kCounts), graph.partition_count()));
  RHIZOME_ASSIGN_OR_RETURN(const auto locals,
                           file.Section<std::uint32_t>(Kind(CacheSection::kLocals)));
  Chosen chosen;
  std::size_t next = 0;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    if (counts[p] > locals.size() - next) return corrupt("it has more lists than local ids");
    const auto mine = locals.subspan(next, counts[p]);
    next += counts[p];
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (mine[i] >= partition.vertex_count() || (i > 0 && mine[i] <= mine[i - 1]))
        return corrupt("its local ids are out of range or order");
      chosen.units += UnitsOf(partition.ExtentOf(mine[i], direction).size_bytes);
    }
    chosen.locals.emplace_back(mine.begin(), mine.end());
  }
  if (next != locals.size()) return corrupt("it has fewer lists than local ids");
  if (chosen.units >= kAbsent ||
      file.Count(Kind(CacheSection::kBytes)) != chosen.units * kUnitBytes)
    return corrupt("its bytes do not match its lists");
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, file.Section<std::byte>(Kind(CacheSection::kBytes)));
  std::shared_ptr<NeighborCache> cache(new NeighborCache());
  cache->direction_ = direction;
  cache->lists_ = bytes;
  cache->loaded_ =
      std::make_shared<const SectionFile>(std::move(file));  // lists_ points into its section
  cache->Place(graph, chosen);
  return cache;
} catch (...) {
  return Fail(StatusOfException());
}

std::uint64_t NeighborCache::memory_bytes() const {
  std::uint64_t bytes = lists_.size();
  for (const auto& units : units_) bytes += units.size() * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace rhizome
