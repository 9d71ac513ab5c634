#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <thread>

#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"
#include "storage/remote/message_header.h"
#include "storage/remote/message_transport.h"
#include "storage/remote/request_server.h"

// The part of MessageTransport that is driven by the carrier:
//   1. Receive decodes and counts a message (Accept), and acts on its kind (Take): it queues
//      requests, completes calls, or fails the job (TakeFailure).
//   2. Tick fails the job if a peer was silent for too long (SilentPeer); otherwise it sends
//      heartbeats.
//   3. FailJob, Die, Leave and End end this rank's part in the job.

namespace rhizome {
inline namespace RHIZOME_API internal {
namespace {

constexpr std::size_t kTextBytes = 4096;             // max length of an error text that is sent
constexpr auto kFarewell = std::chrono::seconds(2);  // max time that a leaving rank waits
constexpr auto kFarewellLook = std::chrono::milliseconds(2);

double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<std::byte> TextOf(const Status& status) {
  const auto text = std::as_bytes(std::span(status.message()));
  return {text.begin(),
          text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), kTextBytes))};
}

Status StatusInMessage(const MessageHeader& header, std::span<const std::byte> text) {
  return {header.code, std::string(reinterpret_cast<const char*>(text.data()), text.size())};
}

}  // namespace

void MessageTransport::Receive(std::uint32_t peer, MessageBytes message) {
  const auto header = DecodeMessageHeader(message.bytes());
  Status status = header ? Accept(peer, *header) : header.error();
  if (status.ok()) status = Take(peer, *header, std::move(message));
  if (!status.ok())
    FailJob(status.WithContext(fmt::format("{} to {}", NameOf(peer), NameOf(rank_))));
}

/// Checks that a message is the next one of `peer` for this rank, and counts it.
Status MessageTransport::Accept(std::uint32_t peer, const MessageHeader& header) {
  const MutexLock lock(mutex_);
  Peer& from = peers_[peer];
  from.heard = Clock::now();
  if (header.from != peer || header.to != rank_)
    return Status::Corruption(fmt::format(
        "a message from rank {} to rank {} arrived at the wrong rank", header.from, header.to));
  if (!failed_.ok()) return Status::Ok();  // missing messages may be the cause of the failure
  if (from.ended) return Status::Corruption("a message arrived after the last one");
  if (header.sequence != from.received)
    return Status::Corruption(fmt::format("message {} arrived where message {} was expected",
                                          header.sequence, from.received));
  ++from.received;
  return Status::Ok();
}

Status MessageTransport::Take(std::uint32_t peer, const MessageHeader& header,
                              MessageBytes message) {
  if (header.kind == MessageKind::kFailure) return TakeFailure(peer, header, message);
  const std::uint64_t bytes = message.bytes().size();
  const auto service = static_cast<std::size_t>(header.service);
  const MutexLock lock(mutex_);
  const auto count = [&](MessageStats& stats) {
    if (peer == rank_) return;
    ++stats.messages_in;
    stats.bytes_in += bytes;
  };
  if (header.kind == MessageKind::kEnd) peers_[peer].ended = true;
  changed_.NotifyAll();
  if (!failed_.ok()) return Status::Ok();  // no call accepts anything any more
  switch (header.kind) {
    case MessageKind::kRequest:
      count(stats_.served[service]);
      servers_[service]->Add({.header = header, .message = std::move(message)});
      break;
    case MessageKind::kReply:
    case MessageKind::kRefusal:
      count(stats_.asked[service]);
      return TakeAnswer(peer, header, std::move(message));
    case MessageKind::kExchange:
      count(stats_.exchanged);
      peers_[peer].exchanged.push_back(std::move(message));
      break;
    default:  // a heartbeat, and what is dealt with above
      break;
  }
  return Status::Ok();
}

Status MessageTransport::TakeFailure(std::uint32_t peer, const MessageHeader& header,
                                     const MessageBytes& message) {
  RHIZOME_RETURN_IF_ERROR(CheckMessagePayload(header, message.payload()));
  {
    const MutexLock lock(mutex_);
    peers_[peer].knows = true;
    changed_.NotifyAll();
  }
  FailJob(StatusInMessage(header, message.payload()));
  return Status::Ok();
}

Status MessageTransport::TakeAnswer(std::uint32_t peer, const MessageHeader& header,
                                    MessageBytes message) {
  const auto found = pending_.find(header.request);
  if (found == pending_.end() || found->second.peer != peer || found->second.answered ||
      found->second.service != header.service)
    return Status::Corruption("a reply does not match any pending request");
  found->second.answered = true;
  found->second.answer = std::move(message);
  return Status::Ok();
}

void MessageTransport::AnswerRequest(const Handler& handler, const MessageHeader& header,
                                     const MessageBytes& message) {
  if (const Status sound = CheckMessagePayload(header, message.payload()); !sound.ok()) {
    FailJob(sound.WithContext(fmt::format("{} to {}", NameOf(header.from), NameOf(rank_))));
    return;
  }
  const double before = ThreadSeconds();
  std::vector<std::byte> reply;
  Status status = Guarded([&] { return handler(header.from, message.payload(), reply); });
  if (status.ok() && reply.size() > kMaxMessageBytes)
    status = Status::InvalidArgument(fmt::format("a reply has {} bytes, but at most {} are allowed",
                                                 reply.size(), kMaxMessageBytes));
  if (!status.ok()) reply = TextOf(status);
  MessageHeader answer = {.kind = status.ok() ? MessageKind::kReply : MessageKind::kRefusal,
                          .service = header.service,
                          .request = header.request,
                          .code = status.code()};
  {
    const MutexLock lock(mutex_);
    stats_.serve_seconds += ThreadSeconds() - before;
    if (header.from != rank_) {
      MessageStats& served = stats_.served[static_cast<std::size_t>(header.service)];
      ++served.messages_out;
      served.bytes_out += kMessageHeaderBytes + reply.size();
    }
  }
  Post(header.from, answer, reply);
}

void MessageTransport::HearFrom(std::uint32_t peer) {
  const MutexLock lock(mutex_);
  peers_[peer].heard = Clock::now();
}

bool MessageTransport::Awaits() const {
  const MutexLock lock(mutex_);
  return !pending_.empty() || exchanging_ > 0;
}

std::string MessageTransport::LeastHeard() const {
  constexpr std::size_t kMost = 8;
  std::vector<std::uint32_t> peers;
  for (std::uint32_t p = 0; p < ranks(); ++p)
    if (p != rank_) peers.push_back(p);
  const MutexLock lock(mutex_);
  std::sort(peers.begin(), peers.end(),
            [this](std::uint32_t a, std::uint32_t b)
                RHIZOME_REQUIRES(mutex_) { return peers_[a].heard < peers_[b].heard; });
  std::string names;
  for (std::size_t i = 0; i < std::min(peers.size(), kMost); ++i)
    names += (i == 0 ? "" : ", ") + NameOf(peers[i]);
  return names;
}

void MessageTransport::LosePeer(std::uint32_t peer, const std::string& how) {
  {
    const MutexLock lock(mutex_);
    if (peers_[peer].ended) return;
    peers_[peer].lost = true;
    changed_.NotifyAll();
  }
  FailJob(Status::IoError(fmt::format("{} is lost: {}", NameOf(peer), how)));
}

/// Returns the peer that has been silent for longest, if this is too long.
std::optional<std::uint32_t> MessageTransport::SilentPeer() {
  if (RHIZOME_MUTANT("silent ranks are waited for")) return std::nullopt;
  const Clock::time_point now = Clock::now();
  // If this process itself was suspended, it must first receive what the others have sent in the
  // meantime.
  if (now - ticked_ > peer_timeout_ / 2) {
    for (Peer& peer : peers_) peer.heard = now;
  }
  ticked_ = now;
  std::optional<std::uint32_t> silent;
  for (std::uint32_t p = 0; p < ranks(); ++p) {
    if (p == rank_ || peers_[p].ended || now - peers_[p].heard <= peer_timeout_) continue;
    if (!silent || peers_[p].heard < peers_[*silent].heard) silent = p;
  }
  return silent;
}

void MessageTransport::Tick() {
  std::vector<std::uint32_t> awake;
  std::optional<std::uint32_t> silent;
  std::string others;
  {
    const MutexLock lock(mutex_);
    if (!failed_.ok()) return;
    silent = SilentPeer();
    for (std::uint32_t p = 0; p < ranks(); ++p) {
      if (p == rank_ || peers_[p].ended) continue;
      awake.push_back(p);
      // Another rank may be lost together with it, and was last heard a moment earlier or later.
      if (silent && p != *silent && ticked_ - peers_[p].heard > peer_timeout_ * 3 / 4)
        others += (others.empty() ? ", and for nearly as long " : ", ") + NameOf(p);
    }
    if (silent) peers_[*silent].lost = true;
  }
  if (silent) {
    const double seconds = std::chrono::duration<double>(peer_timeout_).count();
    FailJob(Status::IoError(
        fmt::format("{} has been silent for {:g} s{}", NameOf(*silent), seconds, others)));
    return;
  }
  for (const std::uint32_t peer : awake) Post(peer, {.kind = MessageKind::kHeartbeat}, {});
}

bool MessageTransport::SetFailed(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (!failed_.ok()) return false;
    failed_ = why;
    changed_.NotifyAll();
  }
  for (auto& server : servers_) server->Drop();
  return true;
}

void MessageTransport::FailJob(const Status& why) {
  if (!SetFailed(why)) return;
  const std::vector<std::byte> text = TextOf(why);
  for (std::uint32_t p = 0; p < ranks(); ++p) {
    if (p != rank_) Post(p, {.kind = MessageKind::kFailure, .code = why.code()}, text);
  }
}

void MessageTransport::Die(const Status& why) {
  for (auto& outlet : outlets_) {
    const MutexLock lock(outlet->mutex);
    outlet->closed = true;
  }
  {
    const MutexLock lock(mutex_);
    for (Peer& peer : peers_) peer.lost = true;  // so that Leave notifies no rank
  }
  static_cast<void>(SetFailed(why));
}

void MessageTransport::Leave(const Status& why) {
  if (why.ok()) return End();
  FailJob(why.WithContext(fmt::format("{} has left the job", NameOf(rank_))));
  AwaitThatAllKnow();
}

/// Waits briefly until all others have confirmed that they know of the failure, so that the message
/// is not lost when this process ends. It polls: if the carrier has failed, there are no ticks.
void MessageTransport::AwaitThatAllKnow() {
  const auto limit = std::min<std::chrono::nanoseconds>(kFarewell, peer_timeout_);
  const Clock::time_point until = Clock::now() + limit;
  while (!AllKnow() && Clock::now() < until) std::this_thread::sleep_for(kFarewellLook);
}

bool MessageTransport::AllKnow() {
  const MutexLock lock(mutex_);
  for (std::uint32_t p = 0; p < ranks(); ++p) {
    const Peer& peer = peers_[p];
    if (p != rank_ && !peer.knows && !peer.ended && !peer.lost) return false;
  }
  return true;
}

void MessageTransport::End() {
  for (std::uint32_t p = 0; p < ranks(); ++p) {
    if (p != rank_) Post(p, {.kind = MessageKind::kEnd}, {});
  }
}

bool MessageTransport::AwaitEnds() {
  const MutexLock lock(mutex_);
  const auto all_ended = [&]() RHIZOME_REQUIRES(mutex_) {
    for (std::uint32_t p = 0; p < ranks(); ++p) {
      if (p != rank_ && !peers_[p].ended) return false;
    }
    return true;
  };
  while (!all_ended() && failed_.ok()) changed_.Wait(mutex_);
  return all_ended();
}

}  // namespace internal
}  // namespace rhizome
