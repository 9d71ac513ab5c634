#include "index/partition/partitioner_table.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Assigns edges to partitions round-robin.
class StripePartitioner final : public StreamingPartitioner {
 public:
  StripePartitioner(std::uint64_t vertex_count, const PartitionOptions& options)
      : StreamingPartitioner(vertex_count, options.partitions, /*needs_degrees=*/false) {}

 private:
  PartitionId Choose(std::uint64_t position, std::uint64_t, std::uint64_t) override {
    return static_cast<PartitionId>(position % partitions());
  }
  std::uint64_t OwnBytes() const override { return 0; }
};

}  // namespace

std::unique_ptr<StreamingPartitioner> MakeStripePartitioner(std::uint64_t vertex_count,
                                                            std::uint64_t,
                                                            const PartitionOptions& options) {
  return std::make_unique<StripePartitioner>(vertex_count, options);
}

}  // namespace internal
}  // namespace rhizome
