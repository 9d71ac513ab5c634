#include "tools/bench/benches.h"

namespace rhizome {

void AddGatherBench(const Bench& bench, CLI::App& root, Session& session);
void AddSampleBench(const Bench& bench, CLI::App& root, Session& session);
void AddPoolBench(const Bench& bench, CLI::App& root, Session& session);
void AddInputsBench(const Bench& bench, CLI::App& root, Session& session);
void AddTablesBench(const Bench& bench, CLI::App& root, Session& session);
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
[[gnu::weak]] void AddLinksBench(const Bench& bench, CLI::App& root, Session& session);
[[gnu::weak]] void AddModelsBench(const Bench& bench, CLI::App& root, Session& session);
[[gnu::weak]] void AddDepthBench(const Bench& bench, CLI::App& root, Session& session);
[[gnu::weak]] void AddTrainBench(const Bench& bench, CLI::App& root, Session& session);

namespace {

const Bench kBenches[] = {
    {"gather", "Cold random reads of rows, compared with fio on the same files", AddGatherBench},
    {"sample", "Edges sampled per second, in memory", AddSampleBench},
    {"pool", "Reads of the cache policies on a sampled trace, and their time on disk",
     AddPoolBench},
    {"inputs",
     "Division of cache memory among arrays of several vertex types, compared with the best one",
     AddInputsBench},
    {"tables",
     "Rows of a table of embeddings read in an epoch of training on links, compared with Marius",
     AddTablesBench},
    {"fullgraph",
     "Bytes that full-graph training transfers under a memory limit: each policy compared with the "
     "plan and a lower bound; ROC's Figure 10a",
     AddFullGraphBench},
    {"ranges", "CPU balance of vertex ranges that are chosen by a learned cost model",
     AddRangesBench},
    {"remote",
     "Rows that ranks fetch from each other in training: schedules compared with MassiveGNN, "
     "SALIENT++, RapidGNN, LRU and the optimum",
     AddRemoteBench},
    {"partition", "Partitioners over graph scales and numbers of partitions", AddPartitionBench},
    {"topology", "Partition files: size, loading, and neighbour lists read from disk",
     AddTopologyBench},
    {"ingest", "Edges ingested per second: .npy and text, in memory and with scratch files",
     AddIngestBench},
    {"verify", "Verification, compared with sequential reads of the same files by fio",
     AddVerifyBench},
    {"lookup", "Warm lookups of neighbours and rows, compared with RocksDB", AddLookupBench},
    {"write", "Durable puts and batches, compared with RocksDB writing the same bytes",
     AddWriteBench},
    {"compact", "Compaction compared with the disk's rate, and puts and look-ups beside it",
     AddCompactBench},
    {"report", "Generates docs/RESULTS.md from the figures in docs/results", AddReportBench},
    {"aggregate", "Aggregation kernels, compared with memory bandwidth and libtorch",
     AddAggregateBench},
    {"step", "One training step of a model, in memory", AddStepBench},
    {"infer",
     "Layerwise inference: chunk reads by layout and cache; speed and memory compared with PyTorch "
     "Geometric; resuming; a remote source; codecs",
     AddInferBench},
    {"links",
     "Embeddings and scores of all edges: layerwise compared with samplewise; GLISP's Figure 13",
     AddLinksBench},
    {"models", "Accuracy of models on known data sets, compared with published values",
     AddModelsBench},
    {"depth", "Accuracy of models over depth and width, with full-graph training", AddDepthBench},
    {"train",
     "Training under a memory limit, compared with mapped files and with training in memory",
     AddTrainBench},
};

}  // namespace

std::span<const Bench> AllBenches() { return kBenches; }

}  // namespace rhizome
