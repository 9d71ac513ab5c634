#pragma once

#include <optional>
#include <string>

#include "cli.h"
#include "rhizome/index/graph_builder.h"
#include "rhizome/index/ingest.h"

namespace rhizome {

/// How a new store is laid out: what `ingest` and `import` share.
struct LayoutFlags {
  BuildOptions build;
  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};
  std::uint64_t chunk_rows = 0;
  std::uint64_t memory_bytes = 0;
  const CLI::Option* partitions_flag = nullptr;  ///< --partitions: was it given?
  std::optional<StoreId> store_id;
};

/// --partitioner, by name.
void AddPartitioner(CLI::App& verb, PartitionerKind& kind);

/// --spill.
void AddSpill(CLI::App& verb, IngestOptions::Spill& spill);

/// `flags` must live as long as `verb`.
void AddLayoutFlags(CLI::App& verb, LayoutFlags& flags);

/// --codec; `infer` has it too.
void AddCodecFlag(CLI::App& verb, Codec& codec);

/// "zstd", "zstd:19", "blosc-lz4:5". Nothing for other text or a level out of range.
std::optional<Codec> ParseCodecFlag(std::string_view text);

/// The answer of `ingest` and `import`.
Answer IngestAnswer(const std::string& store, const IngestReport& report,
                    const PartitionOptions& partition, std::uint64_t base_memory_bytes);

}  // namespace rhizome
