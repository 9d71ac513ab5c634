#pragma once

#include <optional>
#include <string>

#include "index/generation/graph_builder.h"
#include "rhizome/ingest.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Memory for creating a store in addition to the memory for its input: the catalogue, and code
/// pages that are loaded on first use. Measured: 5.9 to 6.2 MiB for a graph of one edge.
inline constexpr std::uint64_t kStoreMemoryBytes = std::uint64_t{6} << 20;

/// Smallest accepted --memory. Below it, file blocks and thread stacks no longer shrink with the
/// limit.
inline constexpr std::uint64_t kMinMemoryBytes = std::uint64_t{20} << 20;

/// Flags for the layout of a new store, shared by `ingest` and `import`.
struct LayoutFlags {
  BuildOptions build;
  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};
  std::uint64_t chunk_rows = 0;
  std::uint64_t inner_rows = 0;
  std::uint64_t memory_bytes = 0;

  /// Returns the part of memory_bytes that is left for the input; 0: no limit.
  std::uint64_t input_memory_bytes() const {
    if (memory_bytes == 0) return 0;
    return memory_bytes > kStoreMemoryBytes ? memory_bytes - kStoreMemoryBytes : 1;
  }

  std::string homes;                             ///< --homes (SetHomes)
  const CLI::Option* partitions_flag = nullptr;  ///< for checking whether --partitions was given
  std::optional<StoreId> store_id;
};

/// Adds --partitioner, which selects a partitioner by name.
void AddPartitioner(CLI::App& verb, PartitionerKind& kind);

/// Adds --spill and --scratch.
void AddSpill(CLI::App& verb, IngestOptions::Spill& spill, Path& scratch);

/// Adds all flags of LayoutFlags. `flags` must outlive `verb`.
void AddLayoutFlags(CLI::App& verb, LayoutFlags& flags);

/// Adds --codec, which `infer` also has.
void AddCodecFlag(CLI::App& verb, Codec& codec);

/// Largest number of rows that a flag may request for a chunk or inner chunk; far more than one can
/// hold.
inline constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 40;

/// Adds --chunk-rows; 0 means that the number is chosen automatically.
void AddChunkRowsFlag(CLI::App& verb, std::uint64_t& chunk_rows);

/// Adds --inner-rows, which accepts 0, a number, or "auto" (kChosenInnerRows).
void AddInnerRowsFlag(CLI::App& verb, std::uint64_t& inner_rows);

/// Prepares the process for the memory limit of `flags`, if there is one: freed memory is returned
/// to the system at once. Call it before any large allocation. Returns the memory that the process
/// uses before the job, in bytes.
/// Errors: kOutOfMemory, the limit is below kMinMemoryBytes.
Result<std::uint64_t> StartLimited(Session& session, const LayoutFlags& flags);

/// Creates the answer of `ingest` and `import`.
Answer IngestAnswer(const Session& session, const std::string& store, const IngestReport& report,
                    const PartitionOptions& partition, std::uint64_t base_memory_bytes);

}  // namespace rhizome
