#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rhizome/transport.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// Transports between ranks of one process, without a network. Ask stores the request; Wait runs
/// the owner's handler on the calling thread. Records the order of calls.
class FakeRanks {
 public:
  explicit FakeRanks(std::uint32_t ranks) : handlers_(ranks) {
    for (std::uint32_t r = 0; r < ranks; ++r)
      transports_.push_back(std::make_unique<One>(*this, r));
  }

  Transport& operator[](std::uint32_t rank) { return *transports_[rank]; }

  /// If set, changes replies before they are delivered.
  std::function<void(std::uint32_t owner, std::vector<std::byte>& reply)> garble;

  /// From now on this rank sends no replies.
  void Lose(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    lost_ = rank;
    changed_.notify_all();
  }

  /// Makes Ask fail for requests to this rank.
  void RefuseToAsk(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    unreachable_ = rank;
  }

  /// Returns the number of requests that were sent and not yet waited for.
  std::size_t pending() {
    const std::lock_guard lock(mutex_);
    return pending_.size();
  }

  /// Returns the calls of all ranks in order, as "ask 2" or "wait 2".
  std::vector<std::string> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  struct Pending {
    std::uint32_t from, to;
    Service service;
    std::vector<std::byte> request;
    std::span<std::byte> reply;
  };

  struct Server {
    std::mutex answering;  // one request at a time
    Transport::Handler handler;
  };

  class One final : public Transport {
   public:
    One(FakeRanks& all, std::uint32_t rank) : all_(all), rank_(rank) {}
    std::uint32_t rank() const override { return rank_; }
    std::uint32_t ranks() const override {
      return static_cast<std::uint32_t>(all_.handlers_.size());
    }
    std::string HostOf(std::uint32_t rank) const override { return "host" + std::to_string(rank); }
    Result<Ticket> Ask(std::uint32_t peer, Service service, std::span<const std::byte> request,
                       std::span<std::byte> reply) override {
      return all_.Ask({rank_, peer, service, {request.begin(), request.end()}, reply});
    }
    Status Wait(Ticket ticket) override { return all_.Wait(ticket); }
    Status Serve(Service service, Handler handler) override {
      EXPECT_EQ(service, Service::kRows);
      all_.Serve(rank_, std::move(handler));
      return Status::Ok();
    }
    Status Exchange(std::uint32_t, std::span<const std::byte>, std::span<std::byte>) override {
      return Status::Unsupported("no exchange here");
    }
    void Leave(const Status&) override { all_.Lose(rank_); }
    TransportStats stats() const override { return {}; }

   private:
    FakeRanks& all_;
    const std::uint32_t rank_;
  };

  Result<Transport::Ticket> Ask(Pending pending) {
    const std::lock_guard lock(mutex_);
    calls_.push_back("ask " + std::to_string(pending.to));
    if (unreachable_ == pending.to) return Fail(Lost(pending.to));
    const Transport::Ticket ticket = ++tickets_;
    pending_.emplace(ticket, std::move(pending));
    return ticket;
  }

  Status Wait(Transport::Ticket ticket) {
    std::unique_lock lock(mutex_);
    const auto found = pending_.find(ticket);
    if (found == pending_.end()) return Status::InvalidArgument("waited for twice");
    const Pending pending = std::move(found->second);
    pending_.erase(found);
    calls_.push_back("wait " + std::to_string(pending.to));
    Server& server = handlers_[pending.to];
    changed_.wait(lock, [&] { return server.handler || lost_ == pending.to; });
    if (lost_ == pending.to) return Lost(pending.to);
    const Transport::Handler handler = server.handler;
    lock.unlock();
    const std::lock_guard one(server.answering);
    std::vector<std::byte> reply;
    const Status answered = handler(pending.from, pending.request, reply);
    if (!answered.ok()) return answered.WithContext(NameOf(pending.to));
    if (garble) garble(pending.to, reply);
    if (reply.size() != pending.reply.size()) return Status::Corruption("another length");
    std::copy(reply.begin(), reply.end(), pending.reply.begin());
    return Status::Ok();
  }

  void Serve(std::uint32_t rank, Transport::Handler handler) {
    const std::lock_guard one(handlers_[rank].answering);
    const std::lock_guard lock(mutex_);
    handlers_[rank].handler = std::move(handler);
    changed_.notify_all();
  }

  static std::string NameOf(std::uint32_t rank) {
    return "rank " + std::to_string(rank) + " (host" + std::to_string(rank) + ")";
  }
  static Status Lost(std::uint32_t rank) { return Status::IoError(NameOf(rank) + " is lost"); }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Server> handlers_;  // by rank
  std::vector<std::unique_ptr<Transport>> transports_;
  std::map<Transport::Ticket, Pending> pending_;
  std::vector<std::string> calls_;
  Transport::Ticket tickets_ = 0;
  std::optional<std::uint32_t> lost_, unreachable_;
};

/// Runs `work` for all ranks concurrently.
inline void OnEachRank(std::uint32_t ranks, const std::function<void(std::uint32_t rank)>& work) {
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r) threads.emplace_back([&work, r] { work(r); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rhizome::testing
