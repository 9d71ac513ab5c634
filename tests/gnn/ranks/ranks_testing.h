#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gnn/gnn_testing.h"
#include "rhizome/train_options.h"
#include "rhizome/transport.h"
#include "testing/test_store.h"

namespace rhizome::testing {

/// Number of partitions (homes) of the store that ranks train on.
inline constexpr std::uint32_t kHomes = 8;

/// The outcome of a training whose ranks are threads, and the number of messages that each rank
/// sent.
struct TrainedRanks {
  std::vector<Result<TrainReport>> reports;
  std::vector<std::uint64_t> messages;
};

using ChangeOptions = std::function<void(TrainOptions&)>;

/// Runs a training whose ranks are threads. `change_last`: changes the options of the last rank.
inline TrainedRanks TrainThreads(const TrainOptions& options, std::uint32_t ranks,
                                 const JobControl* control_of_last = nullptr,
                                 const LocalRanksOptions& network = {},
                                 const ChangeOptions& change_last = {}) {
  TrainedRanks trained{
      .reports = std::vector<Result<TrainReport>>(ranks, Fail(Status::NotFound("none"))),
      .messages = {}};
  const auto transports = LocalRanks::Create(ranks, network);
  if (!transports) return trained;
  static_cast<void>((*transports)->Run([&](Transport& transport) -> Status {
    TrainOptions own = options;
    if (!own.minibatch()->ranks) own.minibatch()->ranks.emplace();
    own.minibatch()->ranks->transport = &transport;
    const JobControl control;
    const std::uint32_t rank = transport.rank();
    const bool last = rank + 1 == ranks;
    if (last && change_last) change_last(own);
    trained.reports[rank] = rhizome_gnn_entry_v1()->Train(
        own, last && control_of_last != nullptr ? *control_of_last : control);
    return trained.reports[rank] ? Status::Ok() : trained.reports[rank].error();
  }));
  for (std::uint32_t r = 0; r < ranks; ++r)
    trained.messages.push_back((*transports)->MessagesOf(r));
  return trained;
}

/// Tests of training over ranks on one small store.
class RanksTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    ASSERT_OK(WriteStore(*folder_ / "s", {.partitions = kHomes}));
  }
  static void TearDownTestSuite() { delete folder_; }

  static TrainOptions Options() {
    TrainOptions options = SmallTraining(*folder_ / "s");
    options.minibatch()->ranks.emplace();
    options.minibatch()->batch_size = 12;
    options.minibatch()->feed.superbatch = 3;
    options.minibatch()->feed.cache_bytes = 64 * 100;
    options.resources.io = IoMaker::kPread;
    options.job.out = *folder_ / "model.safetensors";
    return options;
  }

  static inline TempDir* folder_ = nullptr;
};

}  // namespace rhizome::testing
