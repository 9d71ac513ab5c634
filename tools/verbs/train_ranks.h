#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/entry.h"
#include "rhizome/transport.h"
#include "tools/cli/cli.h"
#include "tools/cli/rank_flags.h"

namespace rhizome {

/// Flags of a training over ranks.
struct TrainRankFlags : RankFlags {
  std::string link = "10G,50us";
};

/// Adds the flags. `flags` must outlive the verb.
void AddTrainRankFlags(CLI::App& verb, TrainRankFlags& flags);

/// Ranks of a training: this process is one of them, runs all of them as threads, or trains alone.
class TrainRanks {
 public:
  /// Joins the ranks that an MPI launcher started, if one did. Errors: as OpenRanks;
  /// kInvalidArgument, --link.
  static Result<TrainRanks> Open(const TrainRankFlags& flags);

  /// Returns whether this is a training over ranks.
  bool several() const { return threads_ != 0 || transport_ != nullptr; }

  /// Returns whether this process prints the result.
  bool speaks() const { return transport_ == nullptr || transport_->rank() == 0; }

  /// Trains alone, as one of the ranks, or with ranks as threads, which shows on one machine what a
  /// training over several machines learns and transfers. Returns the report of rank 0 (in any
  /// other process, the report of its own rank), or the error of the rank that failed first.
  Result<TrainReport> Train(const GnnEntry& gnn, TrainOptions options,
                            const JobControl& control) const;

 private:
  LinkModel link_;
  std::uint32_t threads_ = 0;  // number of ranks that are threads of this process; 0: none
  double peer_timeout_seconds_ = 30;
  std::unique_ptr<Transport> transport_;  // null: not started by a launcher
};

/// Adds the ranks of a training to the JSON fields, and formats these fields for people.
void AddTrainRanks(const TrainReport& report, Json& fields);
std::string DescribeTrainRanks(const Json& fields);

}  // namespace rhizome
