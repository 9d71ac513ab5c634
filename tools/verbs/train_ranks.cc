#include "tools/verbs/train_ranks.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "cache/ranks/rank_plan.h"
#include "rhizome/transport.h"
#include "tools/cli/mpi_library.h"
#include "tools/cli/text.h"
#include "tools/verbs/rank_plan_report.h"

namespace rhizome {
namespace {

/// Returns whether an MPI launcher started this process as a rank. The launcher of a batch system
/// also starts single processes, which are not ranks.
bool IsLaunched() {
  const std::optional<LaunchedRank> launched = LaunchedAsRank();
  return launched && (launched->launcher == "Open MPI" || launched->ranks != 1U);
}

}  // namespace

void AddTrainRankFlags(CLI::App& verb, TrainRankFlags& flags) {
  AddRankFlags(verb, flags,
               "Train in parallel over ranks, each with some homes of the store: the processes "
               "that mpirun started (the default there), or N threads of this process, for a test");
  verb.add_option(
          "--link", flags.link,
          "Over ranks: speed of the link of a rank in bits per second, each way, and its latency")
      ->type_name("BITS[,TIME]")
      ->capture_default_str();
}

Result<TrainRanks> TrainRanks::Open(const TrainRankFlags& flags) {
  TrainRanks ranks;
  RHIZOME_ASSIGN_OR_RETURN(ranks.link_, LinkOf(flags.link));
  ranks.threads_ = flags.local;
  ranks.peer_timeout_seconds_ = flags.peer_timeout_seconds;
  if (flags.local == 0 && (flags.ranked || IsLaunched())) {
    RHIZOME_ASSIGN_OR_RETURN(ranks.transport_, OpenRanks(flags.peer_timeout_seconds));
  }
  return ranks;
}

Result<TrainReport> TrainRanks::Train(const GnnEntry& gnn, TrainOptions options,
                                      const JobControl& control) const {
  if (several()) {
    options.minibatch()->ranks->link = link_;
    options.minibatch()->ranks->transport = transport_.get();
  }
  if (threads_ == 0) {
    Result<TrainReport> report = gnn.Train(options, control);
    if (report || transport_ == nullptr) return report;
    // Ranks share a terminal. Name the rank and its host, because the cause, such as a full disk,
    // is there.
    const std::uint32_t rank = transport_->rank();
    return Fail(
        report.error().WithContext(fmt::format("rank {} ({})", rank, transport_->HostOf(rank))));
  }
  RHIZOME_RETURN_IF_ERROR(CheckRanksOf(options.store, threads_));
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<LocalRanks> ranks,
      LocalRanks::Create(threads_, {.peer_timeout_seconds = peer_timeout_seconds_}));
  const JobControl others;
  Result<TrainReport> first = Fail(Status::Interrupted("not started"));
  const Status status = ranks->Run([&](Transport& transport) -> Status {
    TrainOptions own = options;
    own.minibatch()->ranks->transport = &transport;
    Result<TrainReport> report = gnn.Train(own, transport.rank() == 0 ? control : others);
    if (!report) return report.error();
    if (transport.rank() == 0) first = std::move(report);
    return Status::Ok();
  });
  RHIZOME_RETURN_IF_ERROR(status);
  return first;
}

void AddTrainRanks(const TrainReport& report, Json& fields) {
  Json ranks = Json::array();
  for (std::size_t r = 0; r < report.ranks.size(); ++r) {
    const RankReport& one = report.ranks[r];
    Json json = RankCountsJson(r, one);
    json["host"] = one.host;
    json["pool_bytes"] = one.pool_bytes;
    json["peak_memory_bytes"] = one.peak_memory_bytes;
    json["compute_seconds"] = one.compute_seconds;
    json["stall_seconds"] = one.stall_seconds;
    json["wait_seconds"] = one.wait_seconds;
    json["serve_seconds"] = one.serve_seconds;
    ranks.push_back(std::move(json));
  }
  fields["ranks"] = std::move(ranks);
  // Launchers may exit with success although a rank was lost. Only this field shows completion.
  fields["complete"] = true;
}

std::string DescribeTrainRanks(const Json& fields) {
  TextTable table({0, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  table.Add({"rank", "host", "homes", "rows requested", "remote", "from disk", "from ranks",
             "bytes in", "computed", "stalled", "waited"});
  for (const Json& one : fields["ranks"]) {
    const auto wanted = one["rows_requested"].get<double>();
    const auto remote = one["remote_rows_requested"].get<double>();
    const auto seconds = [&](const char* name) {
      return fmt::format("{:.2f} s", one[name].get<double>());
    };
    table.Add({std::to_string(one["rank"].get<int>()), one["host"].get<std::string>(),
               fmt::format("{}-{}", one["homes"][0].get<int>(), one["homes"][1].get<int>() - 1),
               WithCommas(one["rows_requested"]), Percent(wanted == 0 ? 0 : remote / wanted),
               WithCommas(one["disk_rows_fetched"]), WithCommas(one["remote_rows_fetched"]),
               HumanBytes(one["bytes_in"]), seconds("compute_seconds"), seconds("stall_seconds"),
               seconds("wait_seconds")});
  }
  return table.ToString();
}

}  // namespace rhizome
