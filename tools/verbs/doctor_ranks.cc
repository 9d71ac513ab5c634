#include "tools/verbs/doctor_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cache/ranks/rank_plan.h"
#include "cache/ranks/serve_rate.h"
#include "rhizome/graph.h"
#include "rhizome/transport.h"
#include "storage/base/stopwatch.h"
#include "storage/remote/rank_calls.h"
#include "storage/store/build_id.h"
#include "tools/cli/mpi_library.h"
#include "tools/cli/text.h"

namespace rhizome {
namespace {

constexpr int kWarmUps = 5;
constexpr int kRoundTrips = 101;
constexpr std::size_t kRoundTripBytes = 8;
constexpr int kBulkTurns = 8;
constexpr std::size_t kBulkBytes = std::size_t{1} << 20;

/// Sends bytes to a peer, which returns them, and returns the duration in seconds.
Result<double> EchoSeconds(Transport& transport, std::uint32_t peer,
                           std::span<const std::byte> bytes, std::vector<std::byte>& reply) {
  reply.assign(bytes.size(), std::byte{0});
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const auto ticket, transport.Ask(peer, Service::kEcho, bytes, reply));
  RHIZOME_RETURN_IF_ERROR(transport.Wait(ticket));
  const double seconds = watch.seconds();
  if (!std::equal(bytes.begin(), bytes.end(), reply.begin()))
    return Fail(Status::Corruption(fmt::format("rank {} ({}) echoed different bytes than were sent",
                                               peer, transport.HostOf(peer))));
  return seconds;
}

/// Measures latency and bandwidth of the round trip to a peer.
Result<Json> MeasurePair(Transport& transport, std::uint32_t peer) {
  std::vector<std::byte> bytes(kRoundTripBytes, std::byte{7}), reply;
  std::vector<double> seconds;
  for (int i = 0; i < kWarmUps + kRoundTrips; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const double one, EchoSeconds(transport, peer, bytes, reply));
    if (i >= kWarmUps) seconds.push_back(one);
  }
  std::sort(seconds.begin(), seconds.end());
  bytes.assign(kBulkBytes, std::byte{7});
  std::vector<double> bulk;
  for (int i = 0; i < kBulkTurns; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const double one, EchoSeconds(transport, peer, bytes, reply));
    bulk.push_back(one);
  }
  std::sort(bulk.begin(), bulk.end());
  return Json{{"from", transport.rank()},
              {"to", peer},
              {"round_trip_seconds", seconds[seconds.size() / 2]},
              {"round_trip_p95_seconds", seconds[seconds.size() * 95 / 100]},
              {"bytes_per_second", 2 * static_cast<double>(kBulkBytes) / bulk[bulk.size() / 2]}};
}

/// Measures all pairs, one after the other, so that they do not disturb each other. The lower rank
/// of a pair measures.
Result<Json> MeasureAll(Transport& transport, const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(transport.Serve(
      Service::kEcho,
      [](std::uint32_t, std::span<const std::byte> request, std::vector<std::byte>& reply) {
        reply.assign(request.begin(), request.end());
        return Status::Ok();
      }));
  Json own = {{"rank", transport.rank()},
              {"host", transport.HostOf(transport.rank())},
              {"pid", getpid()},
              {"pairs", Json::array()}};
  for (std::uint32_t from = 0; from < transport.ranks(); ++from) {
    for (std::uint32_t to = from + 1; to < transport.ranks(); ++to) {
      if (control.cancelled()) return Fail(Status::Interrupted("interrupted"));
      RHIZOME_RETURN_IF_ERROR(Barrier(transport));
      if (transport.rank() != from) continue;
      RHIZOME_ASSIGN_OR_RETURN(Json pair, MeasurePair(transport, to));
      own["pairs"].push_back(std::move(pair));
    }
  }
  RHIZOME_RETURN_IF_ERROR(Barrier(transport));
  RHIZOME_RETURN_IF_ERROR(transport.Serve(Service::kEcho, {}));
  return own;
}

/// Measures the rate at which the ranks serve the rows of a store, and adds it to the pairs of this
/// rank.
Status MeasureRows(Transport& transport, const DoctorRankFlags& flags, const JobControl& control,
                   Json& own) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), flags.store, Store::Mode::kRead));
  // No neighbour lists are needed, so only one partition is opened.
  RHIZOME_ASSIGN_OR_RETURN(const auto graph,
                           Graph::Open(std::as_const(*store), {.partitions = {0}}));
  RHIZOME_RETURN_IF_ERROR(
      AgreeOnState(transport, graph->point(), graph->StateWith(std::array{flags.features})));
  RHIZOME_ASSIGN_OR_RETURN(
      const std::vector<ServeRate> rates,
      MeasureServing(*graph, transport, {.features = flags.features, .io = flags.io}, control));
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const ServeRate& rate = rates[i];
    own["pairs"][i]["rows"] = {{"row_bytes", rate.row_bytes},
                               {"batch_rows", rate.batch_rows},
                               {"rows_per_second", rate.rows_per_second},
                               {"plain_rows_per_second", rate.plain_rows_per_second},
                               {"processor_seconds_per_row", rate.processor_seconds_per_row}};
  }
  return Status::Ok();
}

/// Collects the reports of all ranks at rank 0. The other ranks receive an empty report.
Result<Json> GatherReports(Transport& transport, const Json& own) {
  const std::string text = own.dump();
  RHIZOME_ASSIGN_OR_RETURN(const auto all,
                           GatherAtFirst(transport, std::as_bytes(std::span(text))));
  Json found = {{"ranks", Json::array()}, {"pairs", Json::array()}};
  for (const auto& bytes : all) {
    const auto* const begin = reinterpret_cast<const char*>(bytes.data());
    Json theirs = Json::parse(begin, begin + bytes.size(), nullptr, /*allow_exceptions=*/false);
    if (!theirs.is_object()) return Fail(Status::Corruption("the report of a rank is malformed"));
    for (Json& pair : theirs["pairs"]) found["pairs"].push_back(std::move(pair));
    theirs.erase("pairs");
    found["ranks"].push_back(std::move(theirs));
  }
  return found;
}

Result<Json> Examine(Transport& transport, const DoctorRankFlags& flags,
                     const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(
      Agree(transport, std::array<RankFact, 1>{{{"the build", std::string(BuildId())}}}));
  RHIZOME_ASSIGN_OR_RETURN(Json own, MeasureAll(transport, control));
  if (!flags.store.empty()) RHIZOME_RETURN_IF_ERROR(MeasureRows(transport, flags, control, own));
  return GatherReports(transport, own);
}

std::string DescribeRanks(const Json& f) {
  std::string text;
  if (!f["mpi"].is_null()) {
    const Json& mpi = f["mpi"];
    text += fmt::format("{}, MPI {}, threads: {}\n", mpi["library"].get<std::string>(),
                        mpi["standard"].get<std::string>(), mpi["thread_level"].get<std::string>());
  } else {
    text += "ranks are threads of this process\n";
  }
  text += fmt::format("a rank is considered lost after {:g} s without a message\n\n",
                      f["peer_timeout_seconds"].get<double>());
  TextTable ranks;
  ranks.Add({"rank", "host", "process"});
  for (const Json& rank : f["ranks"])
    ranks.Add({rank["rank"].dump(), rank["host"].get<std::string>(), rank["pid"].dump()});
  text += ranks.ToString() + "\n";
  TextTable pairs;
  const bool rows = !f["pairs"].empty() && f["pairs"][0].contains("rows");
  std::vector<std::string> head = {"ranks", "round trip", "95th percentile", "bandwidth"};
  if (rows) head.insert(head.end(), {"rows/s", "rows/s, unverified", "CPU per row"});
  pairs.Add(std::move(head));
  for (const Json& pair : f["pairs"]) {
    std::vector<std::string> line = {
        fmt::format("{} - {}", pair["from"].get<int>(), pair["to"].get<int>()),
        fmt::format("{:.1f} us", pair["round_trip_seconds"].get<double>() * 1e6),
        fmt::format("{:.1f} us", pair["round_trip_p95_seconds"].get<double>() * 1e6),
        HumanBytes(static_cast<std::uint64_t>(pair["bytes_per_second"].get<double>())) + "/s"};
    if (rows) {
      const Json& served = pair["rows"];
      line.push_back(fmt::format("{:.0f}", served["rows_per_second"].get<double>()));
      line.push_back(fmt::format("{:.0f}", served["plain_rows_per_second"].get<double>()));
      line.push_back(
          fmt::format("{:.2f} us", served["processor_seconds_per_row"].get<double>() * 1e6));
    }
    pairs.Add(std::move(line));
  }
  return text + pairs.ToString();
}

/// Adds the fields known to this process to the reports of the ranks.
Answer Finished(Json found, const RankFlags& flags, Json mpi) {
  found["transport"] = mpi.is_null() ? "threads" : "mpi";
  found["mpi"] = std::move(mpi);
  found["peer_timeout_seconds"] = flags.peer_timeout_seconds;
  found["complete"] = true;
  return Answer{std::move(found), DescribeRanks, {}};
}

Result<Answer> ExamineThreads(const DoctorRankFlags& flags, Session& session) {
  if (!flags.store.empty()) RHIZOME_RETURN_IF_ERROR(CheckRanksOf(flags.store, flags.ranks.local));
  LocalRanksOptions options;
  options.peer_timeout_seconds = flags.ranks.peer_timeout_seconds;
  RHIZOME_ASSIGN_OR_RETURN(const auto ranks, LocalRanks::Create(flags.ranks.local, options));
  Json found;
  RHIZOME_RETURN_IF_ERROR(ranks->Run([&](Transport& transport) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(Json mine, Examine(transport, flags, session.control));
    if (transport.rank() == 0) found = std::move(mine);
    return Status::Ok();
  }));
  return Finished(std::move(found), flags.ranks, nullptr);
}

Result<Answer> ExamineProcesses(const DoctorRankFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const auto transport, OpenRanks(flags.ranks.peer_timeout_seconds));
  Result<Json> found = Examine(*transport, flags, session.control);
  if (!found) {
    transport->Leave(found.error());
    return Fail(found.error());
  }
  if (transport->rank() != 0) return Answer{};
  RHIZOME_ASSIGN_OR_RETURN(const MpiEntry* const mpi, LoadMpi());
  const MpiFacts facts = mpi->facts();
  return Finished(*std::move(found), flags.ranks,
                  {{"library", facts.library},
                   {"standard", facts.standard},
                   {"thread_level", facts.thread_level}});
}

}  // namespace

// Examines the ranks: (1) creates ranks as threads (ExamineThreads) or joins those that a launcher
// started (ExamineProcesses); (2) measures all pairs, and the serving of rows if a store is given;
// (3) collects the reports at rank 0.
Result<Answer> ExamineRanks(const DoctorRankFlags& flags, Session& session) {
  if (flags.ranks.local > 0 && LaunchedAsRank())
    return Fail(Status::InvalidArgument(
        "this process is already one of several ranks: omit the number after --ranks"));
  if (flags.ranks.local > 0) return ExamineThreads(flags, session);
  if (!LaunchedAsRank())
    return Fail(Status::InvalidArgument(
        "no launcher started this process as one of several: use 'mpirun -n 4 rhizome doctor "
        "--ranks', or 'rhizome doctor --ranks 4' for ranks that are threads"));
  return ExamineProcesses(flags, session);
}

}  // namespace rhizome
