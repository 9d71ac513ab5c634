#include "tools/bench/store/bench_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "rhizome/chunk_array.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/row_reader.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {
namespace {

// Divides the O_DIRECT alignment of all known file systems, and is the smallest read of a disk.
constexpr std::uint64_t kSectorBytes = 512;

/// The array to read, from a store or generated for the run. The files are destroyed last.
struct GatherData {
  std::unique_ptr<ScratchFolder> scratch;
  std::unique_ptr<Store> store;
  std::unique_ptr<ChunkArray> rows;
  std::unique_ptr<ChunkArray> sidecar;

  const ArrayEntry& entry() const { return rows->entry(); }
  std::uint64_t chunk_file_bytes() const { return entry().chunk_rows * entry().row_bytes(); }
  std::uint64_t block_bytes() const {
    return (entry().row_bytes() + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
  }
};

/// Fills a chunk of a temporary array with random bytes, so that no layer can compress them.
void FillChunk(std::span<std::byte> chunk, std::mt19937_64& random) {
  for (std::size_t at = 0; at < chunk.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(chunk.data() + at, &word, std::min(sizeof(word), chunk.size() - at));
  }
}

Result<ArrayEntry> TemporaryEntry(const BenchGatherOptions& options) {
  ArrayEntry entry;
  entry.name = "rows";
  entry.dtype = DataType::kFloat32;
  entry.layout = ArrayLayout::kRow;
  entry.array_id = 1;
  entry.dim = options.row_bytes / 4;
  entry.rows = options.row_bytes == 0 ? 0 : options.bytes / options.row_bytes;
  if (options.row_bytes % 4 != 0 || entry.rows == 0) {
    return Fail(Status::InvalidArgument(
        fmt::format("bench gather: cannot create {} bytes of rows of {} bytes each; the size of a "
                    "row must be a multiple of 4 bytes, and at least one row must fit",
                    options.bytes, options.row_bytes)));
  }
  RHIZOME_ASSIGN_OR_RETURN(entry.chunk_rows, DefaultChunkRows(entry.rows, entry.row_bytes()));
  return entry;
}

Status MakeArray(const ArrayEntry& entry, const BenchGatherOptions& options,
                 const JobControl& control, GatherData& data) {
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_ASSIGN_OR_RETURN(const auto writer,
                           ChunkArrayWriter::Create(fs, data.scratch->path(), entry));
  std::vector<std::byte> chunk(entry.chunk_rows * entry.row_bytes());
  std::mt19937_64 random(options.seed);
  for (std::uint64_t c = 0; c < entry.chunk_count(); ++c) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "write rows", .done = c, .total = entry.chunk_count()}));
    const std::uint64_t rows = std::min(entry.chunk_rows, entry.rows - c * entry.chunk_rows);
    const std::span<std::byte> bytes = std::span(chunk).first(rows * entry.row_bytes());
    FillChunk(bytes, random);
    RHIZOME_RETURN_IF_ERROR(writer->WriteChunk(c, bytes));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<FileEntry> files, writer->Finish());
  const std::vector<ArrayEntry> arrays = writer->arrays();
  RHIZOME_ASSIGN_OR_RETURN(data.rows, ChunkArray::Open(fs, data.scratch->path(), arrays[0], files));
  RHIZOME_ASSIGN_OR_RETURN(data.sidecar,
                           ChunkArray::Open(fs, data.scratch->path(), arrays[1], files));
  return Status::Ok();
}

Result<GatherData> OpenData(const BenchGatherOptions& options, const JobControl& control) {
  GatherData data;
  RHIZOME_ASSIGN_OR_RETURN(ScratchFolder scratch, ScratchFolder::Create(options.dir));
  data.scratch = std::make_unique<ScratchFolder>(std::move(scratch));
  if (!options.store) {
    RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry entry, TemporaryEntry(options));
    RHIZOME_RETURN_IF_ERROR(MakeArray(entry, options, control, data));
    return data;
  }
  RHIZOME_ASSIGN_OR_RETURN(data.store,
                           Store::Open(FileSystem::Posix(), *options.store, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(data.rows, data.store->OpenArray(options.array));
  RHIZOME_ASSIGN_OR_RETURN(data.sidecar, data.store->OpenArray(SidecarName(options.array)));
  return data;
}

/// Runs `batch`, which performs `reads` reads, repeatedly for `seconds`. Returns reads per second.
template <typename Batch>
Result<double> Rate(double seconds, std::uint64_t reads, Batch batch) {
  std::uint64_t done = 0;
  const Stopwatch watch;
  double elapsed = 0;
  while (elapsed < seconds) {
    RHIZOME_RETURN_IF_ERROR(batch());
    done += reads;
    elapsed = watch.seconds();
  }
  return std::round(static_cast<double>(done) / elapsed);
}

/// Reads random rows through RowReader, as training does: verified and copied out.
class RowContestant {
 public:
  static Result<RowContestant> Open(const GatherData& data, const BenchGatherOptions& options) {
    RowContestant made;
    RowReaderOptions reader;
    reader.io.maker = options.maker;
    reader.io.depth = options.depth;
    reader.direct = options.direct;
    reader.gap_bytes = 0;  // one read per row, like the reference
    RHIZOME_ASSIGN_OR_RETURN(made.reader_, RowReader::Open(*data.rows, *data.sidecar, reader));
    made.random_.seed(options.seed);
    made.out_.resize(kBatchRows * data.entry().row_bytes());
    return made;
  }

  Result<double> Run(double seconds) {
    return Rate(seconds, kBatchRows, [this] {
      std::vector<RowTarget> targets(kBatchRows);
      for (std::size_t i = 0; i < kBatchRows; ++i) {
        targets[i] = {static_cast<Row>(random_() % reader_->row_count()),
                      out_.data() + i * reader_->row_bytes()};
      }
      return reader_->Read(targets);
    });
  }

  RowReaderStats stats() const { return reader_->stats(); }

 private:
  static constexpr std::size_t kBatchRows = 32768;  // about a minibatch
  std::unique_ptr<RowReader> reader_;
  std::mt19937_64 random_;
  std::vector<std::byte> out_;
};

/// Reads the same blocks through an IoQueue directly. The difference to RowContestant is the cost
/// of sorting, verifying and copying.
class QueueContestant {
 public:
  static Result<QueueContestant> Open(const GatherData& data, const BenchGatherOptions& options) {
    QueueContestant made;
    for (std::uint64_t c = 0; c < data.entry().chunk_count(); ++c) {
      const Path path = data.rows->root() / ChunkPath(data.entry().name, c);
      RHIZOME_ASSIGN_OR_RETURN(auto file,
                               data.rows->fs().OpenRead(path, {.direct = options.direct}));
      made.files_.push_back(std::move(file));
    }
    IoQueueOptions io;
    io.maker = options.maker;
    io.depth = options.depth;
    RHIZOME_ASSIGN_OR_RETURN(made.queue_, IoQueue::Open(io));
    made.block_bytes_ = data.block_bytes();
    made.blocks_a_file_ = std::max<std::uint64_t>(data.chunk_file_bytes() / made.block_bytes_, 1);
    RHIZOME_ASSIGN_OR_RETURN(made.memory_,
                             AlignedBuffer::Allocate(kBatchReads * made.block_bytes_));
    made.queue_->RegisterMemory(made.memory_.bytes());
    made.random_.seed(options.seed + 1);
    return made;
  }

  Result<double> Run(double seconds) {
    return Rate(seconds, kBatchReads, [this] {
      std::vector<ReadRequest> requests(kBatchReads);
      for (std::size_t i = 0; i < kBatchReads; ++i) {
        const std::uint64_t block = random_() % (blocks_a_file_ * files_.size());
        requests[i].file = files_[block / blocks_a_file_].get();
        requests[i].offset_bytes = block % blocks_a_file_ * block_bytes_;
        requests[i].buffer = memory_.bytes().subspan(i * block_bytes_, block_bytes_);
      }
      return queue_->ReadAll(requests);
    });
  }

 private:
  static constexpr std::size_t kBatchReads = 8192;
  std::vector<std::unique_ptr<ReadableFile>> files_;
  AlignedBuffer memory_;  // outlives the queue
  std::unique_ptr<IoQueue> queue_;
  std::uint64_t block_bytes_ = 0;
  std::uint64_t blocks_a_file_ = 0;
  std::mt19937_64 random_;
};

FioJob MakeGatherFioJob(const GatherData& data, const BenchGatherOptions& options, bool uring) {
  FioJob job = RowReadsJob(*data.rows);
  job.depth = uring ? options.depth : std::min(options.depth, IoQueueOptions{}.pread_threads);
  job.uring = uring;
  job.direct = options.direct;
  job.seconds = options.seconds;
  return job;
}

/// Reads per second of each contestant, one value per round.
struct Rates {
  std::vector<double> rows;
  std::vector<double> queue;
  std::vector<double> fio;  ///< empty: fio is not installed
  std::string fio_missing;  ///< reason why fio could not run
};

Status RunRounds(const GatherData& data, const BenchGatherOptions& options,
                 const JobControl& control, RowContestant& rows, Rates& rates) {
  RHIZOME_ASSIGN_OR_RETURN(QueueContestant queue, QueueContestant::Open(data, options));
  const IoMaker maker = rows.stats().maker;
  FioJob job = MakeGatherFioJob(data, options, maker == IoMaker::kUring);
  for (std::uint32_t r = 0; r < options.rounds; ++r) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "gather", .done = r, .total = options.rounds}));
    RHIZOME_ASSIGN_OR_RETURN(const double row_rate, rows.Run(options.seconds));
    rates.rows.push_back(row_rate);
    RHIZOME_ASSIGN_OR_RETURN(const double queue_rate, queue.Run(options.seconds));
    rates.queue.push_back(queue_rate);
    if (!rates.fio_missing.empty()) continue;
    job.seed = options.seed + r;
    const Result<double> fio_rate = RunFio(job, data.scratch->path());
    if (fio_rate) {
      rates.fio.push_back(std::round(*fio_rate));
    } else if (fio_rate.error().code() == StatusCode::kUnsupported) {
      rates.fio_missing = fio_rate.error().message();
    } else {
      return fio_rate.error();
    }
  }
  return Status::Ok();
}

nlohmann::ordered_json Report(const GatherData& data, const BenchGatherOptions& options,
                              const RowReaderStats& stats, const Rates& rates) {
  const double figure = Median(rates.rows);
  nlohmann::ordered_json json = {{"workload", "gather"},
                                 {"figure", figure},
                                 {"unit", "rows/s"},
                                 {"reference", nullptr},
                                 {"reference_name", "fio randread, reads/s"},
                                 {"ratio", nullptr},
                                 {"queue", Median(rates.queue)},
                                 {"queue_ratio", nullptr}};
  if (rates.fio.empty()) {
    json["reference_missing"] = rates.fio_missing;
  } else {
    const double reference = Median(rates.fio);
    json["reference"] = reference;
    json["ratio"] = figure / reference;
    json["queue_ratio"] = Median(rates.queue) / reference;
  }
  json["rounds"] = {{"rows", rates.rows}, {"queue", rates.queue}, {"fio", rates.fio}};
  json["seconds_per_round"] = options.seconds;
  json["rows"] = data.entry().rows;
  json["row_bytes"] = data.entry().row_bytes();
  json["block_bytes"] = data.block_bytes();
  json["bytes"] = data.entry().rows * data.entry().row_bytes();
  json["depth"] = options.depth;
  json["mean_depth"] = stats.mean_depth;
  json["rows_per_read"] = static_cast<double>(stats.rows) /
                          static_cast<double>(std::max<std::uint64_t>(stats.reads, 1));
  json["maker"] = IoMakerName(stats.maker);
  json["direct"] = stats.direct;
  json["machine"] = DescribeMachine(data.rows->root());
  return json;
}

}  // namespace

// Measures random reads of rows: (1) opens the array, or generates one; (2) runs all contestants in
// each round: RowReader, a plain IoQueue and fio; (3) reports medians and ratios.
Result<nlohmann::ordered_json> BenchGather(const BenchGatherOptions& options,
                                           const JobControl& control) {
  if (options.rounds == 0 || !(options.seconds > 0)) {
    return Fail(
        Status::InvalidArgument("bench gather needs at least one round with a positive duration"));
  }
  RHIZOME_ASSIGN_OR_RETURN(const GatherData data, OpenData(options, control));
  if (data.entry().rows == 0) {
    return Fail(Status::InvalidArgument(
        fmt::format("bench gather: array '{}' has no rows", data.entry().name)));
  }
  RHIZOME_ASSIGN_OR_RETURN(RowContestant rows, RowContestant::Open(data, options));
  Rates rates;
  RHIZOME_RETURN_IF_ERROR(RunRounds(data, options, control, rows, rates));
  return Report(data, options, rows.stats(), rates);
}

}  // namespace rhizome
