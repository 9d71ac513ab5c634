#include "storage/remote/local_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/base/mix.h"
#include "storage/remote/message_header.h"

namespace rhizome {
inline namespace internal {
namespace {

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

/// Returns whether a message counts for LocalFault::at_message.
bool IsCounted(const MessageBytes& message) {
  const auto header = DecodeMessageHeader(message.bytes());
  return header && header->kind != MessageKind::kHeartbeat &&
         header->kind != MessageKind::kFailure && header->kind != MessageKind::kEnd;
}

}  // namespace

LocalNetwork::LocalNetwork(std::vector<std::string> hosts, const LocalRanksOptions& options)
    : hosts_(std::move(hosts)),
      latency_(Nanoseconds(options.latency_seconds)),
      bits_per_second_(options.bits_per_second),
      seed_(options.seed),
      faults_(options.faults),
      in_flight_(hosts_.size() * hosts_.size()),
      free_at_(hosts_.size() * hosts_.size()),
      cut_(hosts_.size() * hosts_.size()) {
  for (std::uint32_t rank = 0; rank < hosts_.size(); ++rank) {
    seats_.push_back(std::make_unique<Seat>());
    seats_.back()->transport =
        std::make_unique<MessageTransport>(rank, hosts_, Nanoseconds(options.peer_timeout_seconds),
                                           [this, rank](std::uint32_t to, MessageBytes message) {
                                             Send(rank, to, std::move(message));
                                           });
  }
  tick_ = seats_.front()->transport->tick();
}

LocalNetwork::~LocalNetwork() {
  Stop();
  // Transports are destroyed first: they may still answer requests, and send replies.
  for (auto& seat : seats_) seat->transport.reset();
}

Status LocalNetwork::Start() {
  return thread_.Start([this] { return Run(); });
}

void LocalNetwork::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  static_cast<void>(thread_.Join());
}

void LocalNetwork::End(std::uint32_t rank) {
  Seat& seat = *seats_[rank];
  if (seat.transport == nullptr) return;
  seat.transport->End();
  std::unique_ptr<MessageTransport> gone;
  {
    const std::lock_guard lock(seat.handing_over);
    gone = std::move(seat.transport);
  }
}

std::uint64_t LocalNetwork::MessagesOf(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  return seats_[rank]->sent;
}

void LocalNetwork::Fault(const LocalFault& fault) {
  const std::lock_guard lock(mutex_);
  if (fault.kind == LocalFault::Kind::kDrop || fault.kind == LocalFault::Kind::kFlip) {
    LocalFault next = fault;
    next.at_message = seats_[fault.rank]->sent;
    faults_.push_back(next);
  } else {
    Strike(fault);
  }
}

void LocalNetwork::Send(std::uint32_t from, std::uint32_t to, MessageBytes message) {
  const bool counted = IsCounted(message);
  const std::lock_guard lock(mutex_);
  const bool goes = !counted || Suffer(from, to, message);
  if (counted) ++seats_[from]->sent;
  if (goes && Passes(from, to)) Enqueue(from, to, std::move(message));
}

/// Applies the faults of this message. Returns whether the message is still to be sent.
bool LocalNetwork::Suffer(std::uint32_t from, std::uint32_t to, MessageBytes& message) {
  const std::uint64_t number = seats_[from]->sent;
  bool goes = true;
  for (std::size_t i = 0; i < faults_.size();) {
    const LocalFault fault = faults_[i];
    if (fault.rank != from || fault.at_message != number) {
      ++i;
      continue;
    }
    faults_.erase(faults_.begin() + static_cast<std::ptrdiff_t>(i));
    if (fault.kind == LocalFault::Kind::kDrop) {
      goes = false;
    } else if (fault.kind == LocalFault::Kind::kFlip) {
      const std::span<std::byte> bytes = message.bytes();
      const std::uint64_t bit =
          ScaleTo(SplitMix64(seed_, (number * ranks() + from) * ranks() + to), bytes.size() * 8);
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    } else {
      Strike(fault);
    }
  }
  return goes;
}

void LocalNetwork::Strike(const LocalFault& fault) {
  switch (fault.kind) {
    case LocalFault::Kind::kDie:
      seats_[fault.rank]->dead = true;
      dying_.push_back(fault.rank);
      break;
    case LocalFault::Kind::kSilence:
      seats_[fault.rank]->silent = true;
      break;
    case LocalFault::Kind::kCut:
      cut_[LinkOf(fault.rank, fault.peer)] = true;
      cut_[LinkOf(fault.peer, fault.rank)] = true;
      break;
    case LocalFault::Kind::kDrop:
    case LocalFault::Kind::kFlip:
      break;
  }
  changed_.notify_all();
}

bool LocalNetwork::Passes(std::uint32_t from, std::uint32_t to) const {
  const auto away = [](const Seat& seat) { return seat.silent || seat.dead; };
  return !away(*seats_[from]) && !away(*seats_[to]) && !cut_[LinkOf(from, to)];
}

void LocalNetwork::Enqueue(std::uint32_t from, std::uint32_t to, MessageBytes message) {
  const Clock::time_point now = Clock::now();
  const std::size_t link = LinkOf(from, to);
  Clock::time_point due = std::max(now, free_at_[link]);
  if (bits_per_second_ > 0) {
    due += Nanoseconds(static_cast<double>(message.bytes().size()) * 8 / bits_per_second_);
    free_at_[link] = due;
  }
  ++in_flight_[link];
  parcels_.push({.due = due + latency_,
                 .number = numbered_++,
                 .from = from,
                 .to = to,
                 .message = std::move(message)});
  changed_.notify_all();
}

/// The loop of the network's thread. Each turn does the first of these that is due: announce a rank
/// that died (Bury), deliver the next message (HandOver), tick all transports (TickAll), or wait.
Status LocalNetwork::Run() {
  Clock::time_point next_tick = Clock::now() + tick_;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point now = Clock::now();
    if (!dying_.empty()) {
      const std::uint32_t rank = dying_.back();
      dying_.pop_back();
      lock.unlock();
      Bury(rank);
      lock.lock();
    } else if (!parcels_.empty() && parcels_.top().due <= now) {
      // Moving out of a priority queue needs the cast; the order does not depend on the message.
      Parcel parcel = std::move(const_cast<Parcel&>(parcels_.top()));
      parcels_.pop();
      const bool passes = Passes(parcel.from, parcel.to);
      --in_flight_[LinkOf(parcel.from, parcel.to)];
      lock.unlock();
      if (passes) HandOver(std::move(parcel));
      lock.lock();
    } else if (next_tick <= now) {
      lock.unlock();
      TickAll();
      lock.lock();
      next_tick = Clock::now() + tick_;
    } else {
      const Clock::time_point until =
          parcels_.empty() ? next_tick : std::min(next_tick, parcels_.top().due);
      changed_.wait_until(lock, until);
    }
  }
  return Status::Ok();
}

void LocalNetwork::HandOver(Parcel parcel) {
  Seat& seat = *seats_[parcel.to];
  const std::lock_guard lock(seat.handing_over);
  if (seat.transport) seat.transport->Receive(parcel.from, std::move(parcel.message));
}

/// Ends a rank that has died, and notifies the others.
void LocalNetwork::Bury(std::uint32_t rank) {
  for (std::uint32_t r = 0; r < ranks(); ++r) {
    Seat& seat = *seats_[r];
    const std::lock_guard lock(seat.handing_over);
    if (seat.transport == nullptr) continue;
    if (r == rank) {
      seat.transport->Die(
          Status::IoError(fmt::format("rank {} ({}) was stopped by a test", rank, hosts_[rank])));
    } else {
      seat.transport->LosePeer(rank, "its process has ended");
    }
  }
}

void LocalNetwork::TickAll() {
  for (std::uint32_t to = 0; to < ranks(); ++to) {
    std::vector<std::uint32_t> heard;
    {
      const std::lock_guard lock(mutex_);
      for (std::uint32_t from = 0; from < ranks(); ++from) {
        if (in_flight_[LinkOf(from, to)] > 0 && Passes(from, to)) heard.push_back(from);
      }
    }
    Seat& seat = *seats_[to];
    const std::lock_guard lock(seat.handing_over);
    if (seat.transport == nullptr) continue;
    for (const std::uint32_t from : heard) seat.transport->HearFrom(from);
    seat.transport->Tick();
  }
}

}  // namespace internal
}  // namespace rhizome
