#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "storage/section/section_salvage.h"

namespace rhizome {
inline namespace internal {

/// Derives the bytes of a damaged partition file from the intact parts of its lists and from the
/// other partitions.
class PartitionDeriver {
 public:
  /// Returns the current bytes of a partition's file, with the length in the manifest; nullopt if
  /// they cannot be read.
  using ReadImage = std::function<std::optional<std::vector<std::byte>>(std::uint32_t partition)>;

  /// Returns whether these are the committed bytes.
  using Accept = std::function<bool(std::uint32_t partition, std::span<const std::byte> bytes)>;

  /// `order` and `info` must outlive it.
  PartitionDeriver(const VertexOrder& order, const GenerationInfo& info, const StoreId& store_id,
                   ReadImage read, Accept accept, const JobControl& control)
      : order_(order),
        info_(info),
        store_id_(store_id),
        read_(std::move(read)),
        accept_(std::move(accept)),
        control_(control) {}

  struct Derived {
    std::vector<std::byte> bytes;
    const char* from = "";
  };
  /// Returns nullopt if neither direction's lists are complete, or if weights are lost.
  /// Errors: kInterrupted.
  Result<std::optional<Derived>> Derive(std::uint32_t partition);

 private:
  struct View;
  std::optional<Adjacency> Sound(std::uint32_t partition) const;
  std::optional<View> ViewOf(std::uint32_t partition, const SectionSalvage& file, bool out,
                             bool own_mirrors);
  template <typename Visit>
  bool AnyView(std::uint32_t partition, const Visit& take);
  std::optional<std::vector<std::byte>> WriteWhole(std::uint32_t partition, const View& view);
  std::optional<std::vector<std::uint64_t>> MirrorsOf(std::uint32_t partition);
  Result<bool> SumOthers(std::uint32_t but);
  void Sum(const EdgesOfPartition& edges, std::uint32_t partition);

  const VertexOrder& order_;
  const GenerationInfo& info_;
  const StoreId store_id_;
  const ReadImage read_;
  const Accept accept_;
  const JobControl& control_;

  // Sums over the whole graph, by row.
  Degrees out_degree_;
  Degrees in_degree_;
  std::vector<std::uint8_t> sets_;
};

}  // namespace internal
}  // namespace rhizome
