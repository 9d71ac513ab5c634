#include "storage/remote/message_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/stopwatch.h"
#include "storage/remote/message_header.h"
#include "storage/remote/request_server.h"

namespace rhizome {
inline namespace RHIZOME_API internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Returns the interval of heartbeats: one second, or less if the peer timeout is short.
nanoseconds TickOf(nanoseconds peer_timeout) {
  return std::clamp<nanoseconds>(peer_timeout / 8, milliseconds(1), milliseconds(1000));
}

}  // namespace

// The part of MessageTransport that is called by the users of a rank: Ask posts a request and
// registers it in pending_; Wait blocks until Receive (message_arrivals.cc) has stored the answer;
// Exchange posts its own part and waits for the peer's. Post numbers messages per peer and passes
// them to the carrier.

MessageTransport::MessageTransport(std::uint32_t rank, std::vector<std::string> hosts,
                                   nanoseconds peer_timeout, Send send, Wake wake)
    : rank_(rank),
      hosts_(std::move(hosts)),
      peer_timeout_(peer_timeout),
      tick_(TickOf(peer_timeout)),
      send_(std::move(send)),
      wake_(std::move(wake)),
      peers_(hosts_.size()),
      ticked_(Clock::now()) {
  for (Peer& peer : peers_) peer.heard = ticked_;
  for (std::size_t i = 0; i < hosts_.size(); ++i) outlets_.push_back(std::make_unique<Outlet>());
  for (auto& server : servers_) {
    server = std::make_unique<RequestServer>(
        [this](const Handler& handler, const RequestServer::Request& request) {
          AnswerRequest(handler, request.header, request.message);
        });
  }
}

MessageTransport::~MessageTransport() {
  for (auto& server : servers_) server->Stop();
}

std::string MessageTransport::HostOf(std::uint32_t rank) const {
  RHIZOME_CHECK(rank < hosts_.size());
  return hosts_[rank];
}

std::string MessageTransport::NameOf(std::uint32_t rank) const {
  return fmt::format("rank {} ({})", rank, hosts_[rank]);
}

Status MessageTransport::CheckPeer(std::uint32_t peer, std::size_t bytes) const {
  if (peer >= ranks())
    return Status::InvalidArgument(
        fmt::format("rank {} does not exist: there are {} ranks", peer, ranks()));
  if (bytes > kMaxMessageBytes)
    return Status::InvalidArgument(
        fmt::format("a message of {} bytes to {} is too long: at most {} are allowed", bytes,
                    NameOf(peer), kMaxMessageBytes));
  return Status::Ok();
}

/// Returns why nothing more will come from `peer`, or OK.
Status MessageTransport::CheckOpen(std::uint32_t peer) const {
  if (!failed_.ok()) return failed_;
  if (peers_[peer].ended)
    return Status::IoError(
        fmt::format("{} has ended while {} still waits for it", NameOf(peer), NameOf(rank_)));
  return Status::Ok();
}

/// Sends a message with the fields given in `header`; the remaining fields are set here.
void MessageTransport::Post(std::uint32_t peer, MessageHeader header,
                            std::span<const std::byte> payload) {
  MessageBytes message(kMessageHeaderBytes + payload.size());
  if (!payload.empty()) std::memcpy(message.payload().data(), payload.data(), payload.size());
  header.from = rank_;
  header.to = peer;
  header.payload_bytes = payload.size();
  header.payload_crc32c = Crc32c(payload);
  Outlet& outlet = *outlets_[peer];
  const MutexLock lock(outlet.mutex);
  if (outlet.closed) return;
  outlet.closed = header.kind == MessageKind::kEnd;
  header.sequence = outlet.sent++;
  EncodeMessageHeader(header, message.bytes().first<kMessageHeaderBytes>());
  if (peer == rank_) {
    Receive(peer, std::move(message));
  } else {
    send_(peer, std::move(message));
  }
}

Result<Transport::Ticket> MessageTransport::Ask(std::uint32_t peer, Service service,
                                                std::span<const std::byte> request,
                                                std::span<std::byte> reply) {
  RHIZOME_RETURN_IF_ERROR(CheckPeer(peer, std::max(request.size(), reply.size())));
  Ticket ticket = 0;
  {
    const MutexLock lock(mutex_);
    RHIZOME_RETURN_IF_ERROR(CheckOpen(peer));
    ticket = next_ticket_++;
    Pending& pending = pending_[ticket];
    pending.peer = peer;
    pending.service = service;
    pending.reply = reply;
    if (peer != rank_) {
      MessageStats& asked = stats_.asked[static_cast<std::size_t>(service)];
      ++asked.messages_out;
      asked.bytes_out += kMessageHeaderBytes + request.size();
    }
  }
  Post(peer, {.kind = MessageKind::kRequest, .service = service, .request = ticket}, request);
  return ticket;
}

Status MessageTransport::Wait(Ticket ticket) {
  const Stopwatch watch;
  Pending pending;
  {
    const MutexLock lock(mutex_);
    const auto found = pending_.find(ticket);
    if (found == pending_.end() || found->second.waited_for)
      return Status::InvalidArgument(
          fmt::format("request {} does not exist, or another caller waits for it", ticket));
    // Other entries may be added and removed concurrently; entries of the table do not move.
    Pending& entry = found->second;
    entry.waited_for = true;
    Status open;
    while (!entry.answered && (open = CheckOpen(entry.peer)).ok()) changed_.Wait(mutex_);
    pending = std::move(entry);
    pending_.erase(ticket);
    stats_.asked[static_cast<std::size_t>(pending.service)].wait_seconds += watch.seconds();
    if (!pending.answered) return open;
  }
  return TakeReply(pending);
}

Status MessageTransport::TakeReply(const Pending& pending) {
  const auto header = DecodeMessageHeader(pending.answer.bytes());
  RHIZOME_CHECK(header.has_value());  // Receive has decoded it before
  const std::span<const std::byte> payload = pending.answer.payload();
  if (const Status sound = CheckMessagePayload(*header, payload); !sound.ok()) {
    FailJob(sound.WithContext(fmt::format("{} to {}", NameOf(pending.peer), NameOf(rank_))));
    return failure();
  }
  if (header->kind == MessageKind::kRefusal) {
    const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    return Status(header->code, text).WithContext(NameOf(pending.peer));
  }
  if (payload.size() != pending.reply.size())
    return Status::Corruption(fmt::format(
        "{} answered a request for {} with {} bytes instead of {}", NameOf(pending.peer),
        ServiceName(pending.service), payload.size(), pending.reply.size()));
  if (!payload.empty()) std::memcpy(pending.reply.data(), payload.data(), payload.size());
  return Status::Ok();
}

Status MessageTransport::Serve(Service service, Handler handler) {
  if (static_cast<std::size_t>(service) >= kServices)
    return Status::InvalidArgument("this rank does not offer that service");
  if (handler != nullptr) RHIZOME_RETURN_IF_ERROR(failure());
  return servers_[static_cast<std::size_t>(service)]->SetHandler(std::move(handler));
}

Status MessageTransport::Exchange(std::uint32_t peer, std::span<const std::byte> out,
                                  std::span<std::byte> in) {
  RHIZOME_RETURN_IF_ERROR(CheckPeer(peer, std::max(out.size(), in.size())));
  if (!out.empty()) {
    {
      const MutexLock lock(mutex_);
      RHIZOME_RETURN_IF_ERROR(CheckOpen(peer));
      if (peer != rank_) {
        ++stats_.exchanged.messages_out;
        stats_.exchanged.bytes_out += kMessageHeaderBytes + out.size();
      }
    }
    Post(peer, {.kind = MessageKind::kExchange}, out);
  }
  if (in.empty()) return failure();
  if (out.empty() && wake_ != nullptr) wake_();
  const Stopwatch watch;
  MessageBytes message;
  {
    const MutexLock lock(mutex_);
    Status open;
    ++exchanging_;
    while (peers_[peer].exchanged.empty() && (open = CheckOpen(peer)).ok()) changed_.Wait(mutex_);
    --exchanging_;
    stats_.exchanged.wait_seconds += watch.seconds();
    if (!open.ok()) return open;
    message = std::move(peers_[peer].exchanged.front());
    peers_[peer].exchanged.pop_front();
  }
  return TakeExchanged(peer, message, in);
}

Status MessageTransport::TakeExchanged(std::uint32_t peer, const MessageBytes& message,
                                       std::span<std::byte> in) {
  const auto header = DecodeMessageHeader(message.bytes());
  RHIZOME_CHECK(header.has_value());  // Receive has decoded it before
  const std::span<const std::byte> payload = message.payload();
  if (const Status sound = CheckMessagePayload(*header, payload); !sound.ok()) {
    FailJob(sound.WithContext(fmt::format("{} to {}", NameOf(peer), NameOf(rank_))));
    return failure();
  }
  if (payload.size() != in.size())
    return Status::Corruption(
        fmt::format("{} sent {} bytes where {} expects {}: the ranks do not make the same calls",
                    NameOf(peer), payload.size(), NameOf(rank_), in.size()));
  std::memcpy(in.data(), payload.data(), payload.size());
  return Status::Ok();
}

TransportStats MessageTransport::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

Status MessageTransport::failure() const {
  const MutexLock lock(mutex_);
  return failed_;
}

}  // namespace internal
}  // namespace rhizome
