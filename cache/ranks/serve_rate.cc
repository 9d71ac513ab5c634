#include "cache/ranks/serve_rate.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "cache/ranks/remote_rows.h"
#include "cache/ranks/row_homes.h"
#include "cache/ranks/row_service.h"
#include "rhizome/chunk_array.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/row_reader.h"
#include "storage/base/exceptions.h"
#include "storage/base/stopwatch.h"
#include "storage/remote/rank_calls.h"

namespace rhizome {
namespace {

/// Processor time and id of a process. Several ranks may be threads of one process.
struct ProcessUse {
  double seconds = 0;
  std::uint64_t pid = 0;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

ProcessUse UseOfThisProcess() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return {.seconds = Seconds(use.ru_utime) + Seconds(use.ru_stime),
          .pid = static_cast<std::uint64_t>(getpid())};
}

/// A plain request contains the number of reply bytes; 0 requests the processor time of the
/// process.
using PlainRequest = std::array<std::byte, sizeof(std::uint64_t)>;

Status AnswerPlainly(std::span<const std::byte> request, std::vector<std::byte>& reply) {
  std::uint64_t bytes = 0;
  if (request.size() != sizeof bytes) return Status::InvalidArgument("not a plain request");
  std::memcpy(&bytes, request.data(), sizeof bytes);
  if (bytes > kMaxMessageBytes) return Status::InvalidArgument("a plain request for too many rows");
  reply.resize(bytes == 0 ? sizeof(ProcessUse) : bytes);
  const ProcessUse use = UseOfThisProcess();
  if (bytes == 0) std::memcpy(reply.data(), &use, sizeof use);
  return Status::Ok();
}

/// Sends a plain request to a peer. `bytes` is the size of `reply`, or 0 to request a ProcessUse.
Status AskPlainly(Transport& transport, std::uint32_t peer, std::uint64_t bytes,
                  std::span<std::byte> reply) {
  PlainRequest request;
  std::memcpy(request.data(), &bytes, sizeof bytes);
  RHIZOME_ASSIGN_OR_RETURN(const auto ticket, transport.Ask(peer, Service::kEcho, request, reply));
  return transport.Wait(ticket);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Measures how fast this rank receives rows from one owner at a time.
class Asker {
 public:
  Asker(Transport& transport, const ArrayEntry& array, const RowRanks& ranks,
        const ServeRateOptions& options)
      : transport_(transport),
        row_bytes_(array.row_bytes()),
        ranks_(ranks),
        options_(options),
        remote_(transport, array, ranks) {}

  Result<ServeRate> Measure(std::uint32_t owner, const JobControl& control) {
    DrawFrom(owner);
    ServeRate rate{.asker = transport_.rank(),
                   .owner = owner,
                   .row_bytes = row_bytes_,
                   .batch_rows = targets_.size()};
    if (targets_.empty()) return rate;
    RHIZOME_RETURN_IF_ERROR(AskRows());  // warm-up: opens what is opened on first use
    std::vector<double> served, plain, processor;
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "serving rows", .done = round, .total = options_.rounds}));
      RHIZOME_ASSIGN_OR_RETURN(const double before, UseOfBoth(owner));
      RHIZOME_ASSIGN_OR_RETURN(const double rows, RowsPerSecond([&] {
                                 Shuffle();
                                 return AskRows();
                               }));
      RHIZOME_ASSIGN_OR_RETURN(const double after, UseOfBoth(owner));
      served.push_back(rows);
      processor.push_back((after - before) / static_cast<double>(RowsOfRound()));
      RHIZOME_ASSIGN_OR_RETURN(const double bytes, RowsPerSecond([&] {
                                 return AskPlainly(transport_, owner, rows_.size(), rows_);
                               }));
      plain.push_back(bytes);
    }
    rate.rows_per_second = Median(std::move(served));
    rate.plain_rows_per_second = Median(std::move(plain));
    rate.processor_seconds_per_row = Median(std::move(processor));
    return rate;
  }

 private:
  std::uint64_t RowsOfRound() const { return options_.batches_a_round * targets_.size(); }

  void DrawFrom(std::uint32_t owner) {
    of_owner_.clear();
    for (std::size_t row = 0; row < ranks_.rank_of.size(); ++row)
      if (ranks_.rank_of[row] == owner) of_owner_.push_back(static_cast<std::int64_t>(row));
    targets_.resize(std::min<std::uint64_t>(options_.batch_rows, of_owner_.size()));
    rows_.resize(targets_.size() * row_bytes_);
    Shuffle();
  }

  /// Draws the rows of the next batch.
  void Shuffle() {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      std::swap(of_owner_[i], of_owner_[i + random_() % (of_owner_.size() - i)]);
      targets_[i] = {of_owner_[i], rows_.data() + i * row_bytes_};
    }
  }

  Status AskRows() {
    RHIZOME_RETURN_IF_ERROR(remote_.Send(targets_));
    return remote_.Finish();
  }

  template <typename Batch>
  Result<double> RowsPerSecond(const Batch& batch) {
    const Stopwatch watch;
    for (std::uint64_t i = 0; i < options_.batches_a_round; ++i) RHIZOME_RETURN_IF_ERROR(batch());
    return static_cast<double>(RowsOfRound()) / watch.seconds();
  }

  /// Returns the processor time of this process and of the owner's process, counted once if they
  /// are the same.
  Result<double> UseOfBoth(std::uint32_t owner) {
    ProcessUse theirs;
    RHIZOME_RETURN_IF_ERROR(
        AskPlainly(transport_, owner, 0, std::as_writable_bytes(std::span(&theirs, 1))));
    const ProcessUse own = UseOfThisProcess();
    const bool one =
        theirs.pid == own.pid && transport_.HostOf(owner) == transport_.HostOf(transport_.rank());
    return own.seconds + (one ? 0 : theirs.seconds);
  }

  Transport& transport_;
  const std::size_t row_bytes_;
  const RowRanks ranks_;
  const ServeRateOptions& options_;
  RemoteRows remote_;
  std::mt19937_64 random_{1};
  std::vector<std::int64_t> of_owner_;
  std::vector<RowTarget> targets_;
  std::vector<std::byte> rows_;
};

Result<std::unique_ptr<RowReader>> OpenReader(const Store& store, const ServeRateOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(const auto rows, store.OpenArray(options.features));
  RHIZOME_ASSIGN_OR_RETURN(const auto sidecar, store.OpenArray(SidecarName(options.features)));
  RowReaderOptions reading;
  reading.io.maker = options.io;
  reading.direct = options.io != IoMaker::kMapped;
  return RowReader::Open(*rows, *sidecar, reading);
}

}  // namespace

// Steps: (1) start serving the rows of this rank, and plain replies; (2) for each pair of ranks in
// turn, after a barrier, the lower rank measures the higher one (Asker::Measure): in each round it
// times batches of rows, with the processor time of both processes, and then plain replies of equal
// size; (3) after a last barrier, stop serving.
Result<std::vector<ServeRate>> MeasureServing(const GraphSnapshot& graph, Transport& transport,
                                              const ServeRateOptions& options,
                                              const JobControl& control) try {
  RHIZOME_ASSIGN_OR_RETURN(const RowHomes homes, RowHomesOf(graph));
  RHIZOME_RETURN_IF_ERROR(CheckRanks(transport.ranks(), homes));
  RHIZOME_ASSIGN_OR_RETURN(const auto array, graph.store().OpenArray(options.features));
  const std::vector<std::uint16_t> rank_of =
      homes.RanksOfRows(graph, array->entry(), transport.ranks());
  const RowRanks ranks{.rank_of = rank_of, .rank = transport.rank()};
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, OpenReader(graph.store(), options));
  RHIZOME_ASSIGN_OR_RETURN(const auto service,
                           RowService::Start(transport, std::move(reader), array->entry(), ranks));
  RHIZOME_RETURN_IF_ERROR(transport.Serve(
      Service::kEcho, [](std::uint32_t, std::span<const std::byte> request,
                         std::vector<std::byte>& reply) { return AnswerPlainly(request, reply); }));
  std::vector<ServeRate> rates;
  Asker asker(transport, array->entry(), ranks, options);
  for (std::uint32_t from = 0; from < transport.ranks(); ++from) {
    for (std::uint32_t to = from + 1; to < transport.ranks(); ++to) {
      RHIZOME_RETURN_IF_ERROR(Barrier(transport));
      if (transport.rank() != from) continue;
      RHIZOME_ASSIGN_OR_RETURN(const ServeRate rate, asker.Measure(to, control));
      rates.push_back(rate);
    }
  }
  RHIZOME_RETURN_IF_ERROR(Barrier(transport));
  RHIZOME_RETURN_IF_ERROR(transport.Serve(Service::kEcho, {}));
  return rates;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
