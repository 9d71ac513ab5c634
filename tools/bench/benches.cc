#include "tools/bench/benches.h"

namespace rhizome {

void AddGatherBench(const Bench& bench, CLI::App& root, Session& session);
void AddSampleBench(const Bench& bench, CLI::App& root, Session& session);
void AddPoolBench(const Bench& bench, CLI::App& root, Session& session);
void AddFullGraphBench(const Bench& bench, CLI::App& root, Session& session);
void AddRangesBench(const Bench& bench, CLI::App& root, Session& session);
void AddRemoteBench(const Bench& bench, CLI::App& root, Session& session);
void AddPartitionBench(const Bench& bench, CLI::App& root, Session& session);
void AddTopologyBench(const Bench& bench, CLI::App& root, Session& session);
void AddIngestBench(const Bench& bench, CLI::App& root, Session& session);
void AddVerifyBench(const Bench& bench, CLI::App& root, Session& session);
void AddLookupBench(const Bench& bench, CLI::App& root, Session& session);
void AddWriteBench(const Bench& bench, CLI::App& root, Session& session);
void AddCompactBench(const Bench& bench, CLI::App& root, Session& session);
void AddReportBench(const Bench& bench, CLI::App& root, Session& session);

// These benches link libtorch and exist only in rhizome-bench-gnn. In rhizome-bench their addresses
// are null.
[[gnu::weak]] void AddAggregateBench(const Bench& bench, CLI::App& root, Session& session);
[[gnu::weak]] void AddStepBench(const Bench& bench, CLI::App& root, Session& session);
[[gnu::weak]] void AddInferBench(const Bench& bench, CLI::App& root, Session& session);
[[gnu::weak]] void AddModelsBench(const Bench& bench, CLI::App& root, Session& session);
[[gnu::weak]] void AddDepthBench(const Bench& bench, CLI::App& root, Session& session);
[[gnu::weak]] void AddTrainBench(const Bench& bench, CLI::App& root, Session& session);

namespace {

const Bench kBenches[] = {
    {"gather", "Cold random rows, against fio on the same files", AddGatherBench},
    {"sample", "Sampled edges a second, in memory", AddSampleBench},
    {"pool", "Reads of the cache policies on a sampled trace, and their time on disk",
     AddPoolBench},
    {"fullgraph",
     "Bytes that training on the full graph moves under a limit, by counting: each policy beside "
     "the plan and a lower bound; ROC's Figure 10a",
     AddFullGraphBench},
    {"ranges", "Balance of ranges of vertices that are cut by a learned cost, in CPU seconds",
     AddRangesBench},
    {"remote",
     "Rows that ranks fetch from each other in a training: schedules beside MassiveGNN, SALIENT++, "
     "RapidGNN, LRU and the fewest possible",
     AddRemoteBench},
    {"partition", "Partitioners over scales and numbers of parts", AddPartitionBench},
    {"topology", "Partition files: bytes, loading, lists read from disk", AddTopologyBench},
    {"ingest", "Edges a second into a store: .npy and text, in memory and spilled", AddIngestBench},
    {"verify", "Verification, against fio's sequential reads of the same files", AddVerifyBench},
    {"lookup", "Warm look-ups of neighbours and rows, against RocksDB", AddLookupBench},
    {"write", "Durable puts and batches, against RocksDB writing the same bytes", AddWriteBench},
    {"compact", "Compaction against the disk's sequential rate, and puts beside it",
     AddCompactBench},
    {"report", "Generates docs/RESULTS.md from the figures in docs/results", AddReportBench},
    {"aggregate", "Aggregation kernels, against the memory and libtorch", AddAggregateBench},
    {"step", "One step of training a network, in memory", AddStepBench},
    {"infer",
     "Layerwise inference: chunks it reads under each layout and cache; its speed and memory "
     "against PyTorch Geometric; resuming; a far source; codecs",
     AddInferBench},
    {"models", "Accuracy of networks on known data sets, beside what was published",
     AddModelsBench},
    {"depth", "Accuracy of networks over depth and width, trained on the full graph",
     AddDepthBench},
    {"train", "Training under a limit on memory, against mapped files and memory", AddTrainBench},
};

}  // namespace

std::span<const Bench> AllBenches() { return kBenches; }

}  // namespace rhizome
