#include <fmt/format.h>

#include <atomic>

#include "rhizome/transport.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutex.h"
#include "storage/remote/job_parts.h"
#include "storage/remote/local_network.h"

namespace rhizome {
namespace {

constexpr std::uint32_t kMaxLocalRanks = 1024;
constexpr double kLongestLocalWait = 1e6;  // seconds

Status CheckLocalOptions(std::uint32_t ranks, const LocalRanksOptions& options) {
  if (ranks == 0 || ranks > kMaxLocalRanks)
    return Status::InvalidArgument(
        fmt::format("{} ranks: a process can have 1 to {}", ranks, kMaxLocalRanks));
  if (!options.hosts.empty() && options.hosts.size() != ranks)
    return Status::InvalidArgument(fmt::format("{} host names for {} ranks; give one for each rank",
                                               options.hosts.size(), ranks));
  const auto in_range = [](double seconds) { return seconds >= 0 && seconds <= kLongestLocalWait; };
  if (!in_range(options.latency_seconds) || !(options.bits_per_second >= 0))
    return Status::InvalidArgument("a network's latency and bandwidth cannot be negative");
  if (!in_range(options.peer_timeout_seconds) || options.peer_timeout_seconds < 0.001)
    return Status::InvalidArgument(
        fmt::format("a peer's time-out of {:g} s; it must be 0.001 to {:g} s",
                    options.peer_timeout_seconds, kLongestLocalWait));
  for (const LocalFault& fault : options.faults) {
    if (fault.rank >= ranks || fault.peer >= ranks)
      return Status::InvalidArgument(
          fmt::format("a fault is set for a rank that does not exist: there are {}", ranks));
  }
  return Status::Ok();
}

}  // namespace

std::uint32_t MaxLocalRanks() { return MaxPartsOfJob(); }

class LocalRanks::Impl {
 public:
  Impl(std::vector<std::string> hosts, const LocalRanksOptions& options)
      : network(std::move(hosts), options) {}
  LocalNetwork network;
};

LocalRanks::LocalRanks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LocalRanks::~LocalRanks() = default;

Result<std::unique_ptr<LocalRanks>> LocalRanks::Create(std::uint32_t ranks,
                                                       const LocalRanksOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckLocalOptions(ranks, options));
  std::vector<std::string> hosts = options.hosts;
  for (std::uint32_t rank = 0; options.hosts.empty() && rank < ranks; ++rank)
    hosts.push_back(fmt::format("thread {}", rank));
  auto impl = std::make_unique<Impl>(std::move(hosts), options);
  RHIZOME_RETURN_IF_ERROR(impl->network.Start());
  return std::unique_ptr<LocalRanks>(new LocalRanks(std::move(impl)));
}

std::uint32_t LocalRanks::ranks() const { return impl_->network.ranks(); }

Transport& LocalRanks::operator[](std::uint32_t rank) {
  RHIZOME_CHECK(rank < ranks());
  return impl_->network.transport(rank);
}

void LocalRanks::End(std::uint32_t rank) {
  RHIZOME_CHECK(rank < ranks());
  impl_->network.End(rank);
}

void LocalRanks::Fault(const LocalFault& fault) {
  RHIZOME_CHECK(fault.rank < ranks() && fault.peer < ranks());
  impl_->network.Fault(fault);
}

std::uint64_t LocalRanks::MessagesOf(std::uint32_t rank) const {
  RHIZOME_CHECK(rank < ranks());
  return impl_->network.MessagesOf(rank);
}

Status LocalRanks::Run(const std::function<Status(Transport& transport)>& work) {
  Mutex mutex;
  Status first;  // guarded by mutex
  std::vector<std::unique_ptr<Thread>> threads;
  const auto work_as = [&](Transport& transport) {
    const Status status = Guarded([&] { return work(transport); });
    if (status.ok()) return Status::Ok();
    {
      const MutexLock lock(mutex);
      if (first.ok()) first = status;
    }
    transport.Leave(status);
    return Status::Ok();
  };
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    Transport& transport = (*this)[rank];
    threads.push_back(std::make_unique<Thread>());
    const Status started = threads.back()->Start([&] { return work_as(transport); });
    if (started.ok()) continue;
    // The ranks that have started would wait for this one forever.
    transport.Leave(started);
    for (auto& thread : threads) static_cast<void>(thread->Join());
    return started;
  }
  for (auto& thread : threads) static_cast<void>(thread->Join());
  return first;
}

}  // namespace rhizome
