#include "rhizome/index/partitioner.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "rhizome/index/expansion_partitioner.h"
#include "rhizome/index/streaming_partitioner.h"
#include "rhizome/storage/exceptions.h"
#include "rhizome/storage/name_table.h"

namespace rhizome {

namespace {

constexpr NameTable<PartitionerKind, 8> kNames = {{
    {PartitionerKind::kRefined, "refined"},
    {PartitionerKind::kAdaDne, "adadne"},
    {PartitionerKind::kDne, "dne"},
    {PartitionerKind::kHash2d, "hash2d"},
    {PartitionerKind::kDbh, "dbh"},
    {PartitionerKind::kHdrf, "hdrf"},
    {PartitionerKind::kRandom, "random"},
    {PartitionerKind::kRange, "range"},
}};

// Calls run.operator()<Index, Part>() with the smallest numbers that fit.
template <typename Run>
auto WithNumbersFor(std::uint64_t vertices, std::uint64_t edges, std::uint32_t partitions,
                    const Run& run) {
  if (HalfEdges<std::uint32_t, std::uint8_t>::Fits(vertices, edges, partitions))
    return run.template operator()<std::uint32_t, std::uint8_t>();
  if (HalfEdges<std::uint32_t, std::uint16_t>::Fits(vertices, edges, partitions))
    return run.template operator()<std::uint32_t, std::uint16_t>();
  return run.template operator()<std::uint64_t, std::uint16_t>();
}

constexpr std::string_view kStoredRefined = "adadne";
constexpr std::string_view kStoredAdaDne = "adadne-printed";

}  // namespace

std::string_view StoredPartitionerName(PartitionerKind kind) {
  return kind == PartitionerKind::kAdaDne ? kStoredAdaDne : PartitionerName(kind);
}

std::optional<PartitionerKind> ParseStoredPartitioner(std::string_view name) {
  if (name == kStoredRefined) return PartitionerKind::kRefined;
  if (name == kStoredAdaDne) return PartitionerKind::kAdaDne;
  return ParsePartitioner(name);
}

std::string_view PartitionerName(PartitionerKind kind) { return NameOf(kNames, kind); }

std::optional<PartitionerKind> ParsePartitioner(std::string_view name) {
  return KindOf(kNames, name);
}

Status CheckPartitionOptions(const PartitionOptions& options) try {
  if (options.partitions < 1 || options.partitions > kMaxPartitions) {
    return Status::InvalidArgument(fmt::format("{} partitions: the number must be in [1, {}]",
                                               options.partitions, kMaxPartitions));
  }
  // Written so that NaN fails, too.
  if (!(options.max_edge_balance >= 1) || !(options.max_vertex_balance >= 1)) {
    return Status::InvalidArgument(
        fmt::format("max_edge_balance {} and max_vertex_balance {}: each must be at least 1",
                    options.max_edge_balance, options.max_vertex_balance));
  }
  if (!(options.hdrf_lambda >= 0) || !std::isfinite(options.hdrf_lambda)) {
    return Status::InvalidArgument(
        fmt::format("hdrf_lambda {}: it must be finite and at least 0", options.hdrf_lambda));
  }
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Result<std::vector<PartitionId>> PartitionEdges(const PartitionInput& input,
                                                const PartitionOptions& options,
                                                const JobControl& control) try {
  RHIZOME_RETURN_IF_ERROR(CheckPartitionOptions(options));
  RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
  if (options.partitions == 1) {
    RHIZOME_RETURN_IF_ERROR(input.ForEach([](std::uint64_t, std::uint64_t, std::uint64_t) {}));
    return std::vector<PartitionId>(static_cast<std::size_t>(input.edge_count()), 0);
  }
  if (StreamingPartitioner::Supports(options.kind)) return PartitionStream(input, options, control);
  return WithNumbersFor(input.vertex_count(), input.edge_count(), options.partitions,
                        [&]<typename Index, typename Part>() {
                          return PartitionByExpansion<Index, Part>(input, options, control);
                        });
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
