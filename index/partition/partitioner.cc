#include "index/partition/partitioner.h"

#include <fmt/format.h>

#include <cmath>

#include "index/partition/expansion_partitioner.h"
#include "index/partition/partitioner_table.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
// Each is defined in the file of its class.
MakeStreaming MakeHash2dPartitioner;
MakeStreaming MakeDbhPartitioner;
MakeStreaming MakeHdrfPartitioner;
MakeStreaming MakeRandomPartitioner;
MakeStreaming MakeRangePartitioner;
}  // namespace internal
}  // namespace rhizome

namespace rhizome {

namespace {

// Calls run.operator()<Index, Part>() with the smallest types that fit.
template <typename Run>
auto WithNumbersFor(std::uint64_t vertices, std::uint64_t edges, std::uint32_t partitions,
                    const Run& run) {
  if (HalfEdges<std::uint32_t, std::uint8_t>::Fits(vertices, edges, partitions))
    return run.template operator()<std::uint32_t, std::uint8_t>();
  if (HalfEdges<std::uint32_t, std::uint16_t>::Fits(vertices, edges, partitions))
    return run.template operator()<std::uint32_t, std::uint16_t>();
  return run.template operator()<std::uint64_t, std::uint16_t>();
}

Result<DividedEdges> DivideByExpansion(const PartitionInput& input, const PartitionOptions& options,
                                       const JobControl& control) {
  return WithNumbersFor(input.vertex_count(), input.edge_count(), options.partitions,
                        [&]<typename Index, typename Part>() {
                          return PartitionByExpansion<Index, Part>(input, options, control);
                        });
}

constexpr std::uint64_t kDegreeBytes = 4;

/// To add a partitioner: add a value to PartitionerKind, define its function, and add a row here.
constexpr std::array<PartitionerEntry, 8> kPartitioners = {{
    {PartitionerKind::kRefined, "refined", DivideByExpansion, nullptr, 0},
    {PartitionerKind::kAdaDne, "adadne", DivideByExpansion, nullptr, 0},
    {PartitionerKind::kDne, "dne", DivideByExpansion, nullptr, 0},
    {PartitionerKind::kHash2d, "hash2d", PartitionStream, MakeHash2dPartitioner, 0},
    {PartitionerKind::kDbh, "dbh", PartitionStream, MakeDbhPartitioner, kDegreeBytes},
    {PartitionerKind::kHdrf, "hdrf", PartitionStream, MakeHdrfPartitioner, kDegreeBytes},
    {PartitionerKind::kRandom, "random", PartitionStream, MakeRandomPartitioner, 0},
    {PartitionerKind::kRange, "range", PartitionStream, MakeRangePartitioner, kDegreeBytes},
}};

constexpr std::string_view kStoredRefined = "adadne";
constexpr std::string_view kStoredAdaDne = "adadne-printed";

// Checks the options and runs the partitioner, which may leave owners and metrics to others.
Result<DividedEdges> Divide(const PartitionInput& input, const PartitionOptions& options,
                            const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckPartitionOptions(options));
  RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
  if (options.partitions == 1) {
    RHIZOME_RETURN_IF_ERROR(input.ForEach([](std::uint64_t, std::uint64_t, std::uint64_t) {}));
    const auto vertices = static_cast<std::size_t>(input.vertex_count());
    return DividedEdges{{}, std::vector<PartitionId>(vertices), {1, 1, 1, 1, 1, 1}};
  }
  const PartitionerEntry* const known = FindPartitioner(options.kind);
  if (known != nullptr) return known->divide(input, options, control);
  return Fail(Status::InvalidArgument(
      fmt::format("unknown partitioner number {}", static_cast<int>(options.kind))));
}

}  // namespace

std::span<const PartitionerEntry> internal::AllPartitioners() { return kPartitioners; }

const PartitionerEntry* internal::FindPartitioner(PartitionerKind kind) {
  for (const PartitionerEntry& entry : kPartitioners) {
    if (entry.kind == kind) return &entry;
  }
  return nullptr;
}

std::string_view StoredPartitionerName(PartitionerKind kind) {
  return kind == PartitionerKind::kAdaDne ? kStoredAdaDne : PartitionerName(kind);
}

std::optional<PartitionerKind> ParseStoredPartitioner(std::string_view name) {
  if (name == kStoredRefined) return PartitionerKind::kRefined;
  if (name == kStoredAdaDne) return PartitionerKind::kAdaDne;
  return ParsePartitioner(name);
}

std::vector<PartitionerKind> Partitioners() {
  std::vector<PartitionerKind> kinds;
  for (const PartitionerEntry& entry : kPartitioners) kinds.push_back(entry.kind);
  return kinds;
}

std::string_view PartitionerName(PartitionerKind kind) {
  const PartitionerEntry* const known = FindPartitioner(kind);
  return known == nullptr ? "unknown" : known->name;
}

std::optional<PartitionerKind> ParsePartitioner(std::string_view name) {
  for (const PartitionerEntry& entry : kPartitioners) {
    if (entry.name == name) return entry.kind;
  }
  return std::nullopt;
}

Status CheckPartitionOptions(const PartitionOptions& options) try {
  if (options.partitions < 1 || options.partitions > kMaxPartitions) {
    return Status::InvalidArgument(fmt::format("{} partitions: the number must be in [1, {}]",
                                               options.partitions, kMaxPartitions));
  }
  // The conditions are negated so that NaN fails.
  if (!(options.max_edge_balance >= 1) || !(options.max_vertex_balance >= 1)) {
    return Status::InvalidArgument(
        fmt::format("max_edge_balance is {} and max_vertex_balance is {}; each must be at least 1",
                    options.max_edge_balance, options.max_vertex_balance));
  }
  if (!(options.hdrf_lambda >= 0) || !std::isfinite(options.hdrf_lambda)) {
    return Status::InvalidArgument(
        fmt::format("hdrf_lambda is {}; it must be finite and at least 0", options.hdrf_lambda));
  }
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Result<std::vector<PartitionId>> PartitionEdges(const PartitionInput& input,
                                                const PartitionOptions& options,
                                                const JobControl& control) try {
  RHIZOME_ASSIGN_OR_RETURN(DividedEdges divided, Divide(input, options, control));
  if (options.partitions == 1)
    divided.partition_of_edge.resize(static_cast<std::size_t>(input.edge_count()));
  return std::move(divided.partition_of_edge);
} catch (...) {
  return Fail(StatusOfException());
}

Result<DividedEdges> DivideEdges(const PartitionInput& input, const PartitionOptions& options,
                                 const JobControl& control) try {
  RHIZOME_ASSIGN_OR_RETURN(DividedEdges divided, Divide(input, options, control));
  if (divided.owners.size() == input.vertex_count()) return divided;
  RHIZOME_ASSIGN_OR_RETURN(divided.metrics,
                           MeasurePartition(input, divided.partition_of_edge, options.partitions));
  RHIZOME_ASSIGN_OR_RETURN(divided.owners,
                           ChooseOwners(input, divided.partition_of_edge, options.partitions));
  return divided;
} catch (...) {
  return Fail(StatusOfException());
}

std::uint64_t ExpansionBytes(std::uint64_t vertex_count, std::uint64_t edge_count,
                             std::uint32_t partitions) {
  return WithNumbersFor(vertex_count, edge_count, partitions, [&]<typename Index, typename Part>() {
    return ExpansionBytesOf<Index, Part>(vertex_count, edge_count, partitions);
  });
}

}  // namespace rhizome
