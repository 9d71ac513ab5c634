#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli.h"
#include "rank_flags.h"
#include "rhizome/gnn/entry.h"
#include "rhizome/storage/transport.h"

namespace rhizome {

/// The flags of a training over ranks.
struct TrainRankFlags : RankFlags {
  std::string link = "10G,50us";
};

/// Adds them. `flags` must outlive the verb.
void AddTrainRankFlags(CLI::App& verb, TrainRankFlags& flags);

/// The ranks of a training, of which this process is one, or has all.
class TrainRanks {
 public:
  /// Opens those that a launcher of MPI has started, if it has. Errors: those of OpenRanks;
  /// kInvalidArgument, --link.
  static Result<TrainRanks> Open(const TrainRankFlags& flags);

  /// Whether this is a training over ranks.
  bool several() const { return threads_ != 0 || transport_ != nullptr; }

  /// Whether this process is the one that says what comes of it.
  bool speaks() const { return transport_ == nullptr || transport_->rank() == 0; }

  /// Trains: alone, as one of the ranks, or as ranks that are threads, to try what a training over
  /// machines learns and moves. Returns what rank 0 reports (of another process: its own part), or
  /// the error of the rank that failed first.
  Result<TrainReport> Train(const GnnEntry& gnn, TrainOptions options,
                            const JobControl& control) const;

 private:
  LinkModel link_;
  std::uint32_t threads_ = 0;  // ranks of this process; 0: none
  double peer_timeout_seconds_ = 30;
  std::unique_ptr<Transport> transport_;  // null: of no launcher
};

/// Adds the ranks of a training to what is printed as JSON, and describes them to a person.
void AddTrainRanks(const TrainReport& report, Json& fields);
std::string DescribeTrainRanks(const Json& fields);

}  // namespace rhizome
