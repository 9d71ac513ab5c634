#pragma once

#include <optional>
#include <string>

#include "cli.h"
#include "rhizome/index/graph_builder.h"
#include "rhizome/index/ingest.h"

namespace rhizome {

/// What making a store takes besides what its input makes it take: the catalogue, and pages of code
/// that run for the first time. Measured: 5.9 to 6.2 MiB for a graph of one edge.
inline constexpr std::uint64_t kStoreMemoryBytes = std::uint64_t{6} << 20;

/// The least --memory: below, blocks of files and threads' stacks no longer shrink with it.
inline constexpr std::uint64_t kLeastMemoryBytes = std::uint64_t{20} << 20;

/// How a new store is laid out: what `ingest` and `import` share.
struct LayoutFlags {
  BuildOptions build;
  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};
  std::uint64_t chunk_rows = 0;
  std::uint64_t inner_rows = 0;
  std::uint64_t memory_bytes = 0;

  /// What of memory_bytes is for the input; 0: no limit.
  std::uint64_t input_memory_bytes() const {
    if (memory_bytes == 0) return 0;
    return memory_bytes > kStoreMemoryBytes ? memory_bytes - kStoreMemoryBytes : 1;
  }

  const CLI::Option* partitions_flag = nullptr;  ///< --partitions: was it given?
  std::optional<StoreId> store_id;
};

/// --partitioner, by name.
void AddPartitioner(CLI::App& verb, PartitionerKind& kind);

/// --spill, --scratch.
void AddSpill(CLI::App& verb, IngestOptions::Spill& spill, Path& scratch);

/// `flags` must live as long as `verb`.
void AddLayoutFlags(CLI::App& verb, LayoutFlags& flags);

/// --codec; `infer` has it too.
void AddCodecFlag(CLI::App& verb, Codec& codec);

/// The most rows that a chunk, or a part of one, is asked to have; far more than one may hold.
inline constexpr std::uint64_t kMostRows = std::uint64_t{1} << 40;

/// --chunk-rows; 0: chosen.
void AddChunkRowsFlag(CLI::App& verb, std::uint64_t& chunk_rows);

/// --inner-rows: 0, a number, or kChosenInnerRows.
void AddInnerRowsFlag(CLI::App& verb, std::uint64_t& inner_rows);

/// Prepares for the limit of `flags`, if there is one: memory that is let go is given back at once.
/// To be called before anything large is made. Returns what the bare process holds.
/// Errors: kOutOfMemory, the limit is less than kLeastMemoryBytes.
Result<std::uint64_t> StartLimited(Session& session, const LayoutFlags& flags);

/// The answer of `ingest` and `import`.
Answer IngestAnswer(const std::string& store, const IngestReport& report,
                    const PartitionOptions& partition, std::uint64_t base_memory_bytes);

}  // namespace rhizome
