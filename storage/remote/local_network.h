#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <vector>

#include "rhizome/transport.h"
#include "storage/base/threads.h"
#include "storage/remote/message_transport.h"

namespace rhizome {
inline namespace internal {

/// Carries messages between the ranks of LocalRanks: one thread delivers them when they are due, in
/// the order in which they were sent, and calls Tick of all transports. Faults are applied here.
/// Threads: any, except Start and Stop.
class LocalNetwork {
 public:
  LocalNetwork(std::vector<std::string> hosts, const LocalRanksOptions& options);
  ~LocalNetwork();

  Status Start();
  void Stop();

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(seats_.size()); }
  MessageTransport& transport(std::uint32_t rank) { return *seats_[rank]->transport; }

  /// Ends the transport of a rank: no more messages are delivered to it.
  void End(std::uint32_t rank);

  void Fault(const LocalFault& fault);
  std::uint64_t MessagesOf(std::uint32_t rank) const;

 private:
  using Clock = std::chrono::steady_clock;

  /// The network's state of a rank.
  struct Seat {
    std::mutex handing_over;  // held for deliveries to the transport and its end
    std::unique_ptr<MessageTransport> transport;
    std::uint64_t sent = 0;  // guarded by mutex_, as is everything below
    bool silent = false;
    bool dead = false;
  };

  struct Parcel {
    Clock::time_point due;
    std::uint64_t number;  // over all parcels: keeps the order of equal times
    std::uint32_t from, to;
    MessageBytes message;
  };
  struct Later {
    bool operator()(const Parcel& a, const Parcel& b) const {
      return a.due != b.due ? a.due > b.due : a.number > b.number;
    }
  };

  void Send(std::uint32_t from, std::uint32_t to, MessageBytes message);
  bool Suffer(std::uint32_t from, std::uint32_t to, MessageBytes& message);
  void Strike(const LocalFault& fault);
  void Enqueue(std::uint32_t from, std::uint32_t to, MessageBytes message);
  bool Passes(std::uint32_t from, std::uint32_t to) const;
  std::size_t LinkOf(std::uint32_t from, std::uint32_t to) const { return from * ranks() + to; }

  Status Run();
  void HandOver(Parcel parcel);
  void Bury(std::uint32_t rank);
  void TickAll();

  // Constant after construction.
  const std::vector<std::string> hosts_;
  const std::chrono::nanoseconds latency_;
  const double bits_per_second_;
  const std::uint64_t seed_;
  std::chrono::nanoseconds tick_{};

  // Waiting with a timeout needs the standard library's own mutex.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::vector<LocalFault> faults_;    // faults that are still pending
  std::vector<std::uint32_t> dying_;  // ranks whose death was not announced yet
  std::priority_queue<Parcel, std::vector<Parcel>, Later> parcels_;
  std::vector<std::uint32_t> in_flight_;    // parcels, by link
  std::vector<Clock::time_point> free_at_;  // by link: when the next transfer can begin
  std::vector<bool> cut_;                   // by link
  std::uint64_t numbered_ = 0;
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace internal
}  // namespace rhizome
