#include <atomic>
#include <memory>
#include <utility>

#include "storage/base/exceptions.h"
#include "storage/store/build_id.h"
#include "storage/store/this_build.h"
#include "tools/cli/mpi_entry.h"
#include "tools/mpi/mpi_carrier.h"

namespace rhizome {
inline namespace internal {
namespace {

std::atomic<bool> g_mpi_opened = false;
std::atomic<bool> g_mpi_unfinished = false;
MpiFacts g_mpi_facts;  // written by Open before it returns

/// Transport of this process: the message protocol of MessageTransport, carried by MPI.
class MpiTransport final : public Transport {
 public:
  MpiTransport(std::shared_ptr<MpiCarrier> carrier, const MpiCarrier::Opened& opened,
               std::chrono::nanoseconds peer_timeout)
      : carrier_(std::move(carrier)),
        messages_(std::make_unique<MessageTransport>(
            opened.rank, opened.hosts, peer_timeout,
            [carrier = carrier_](std::uint32_t peer, MessageBytes message) {
              carrier->Send(peer, std::move(message));
            },
            [carrier = carrier_] { carrier->Wake(); })) {}

  Status Begin() { return carrier_->Begin(*messages_); }

  ~MpiTransport() override {
    messages_->End();
    if (carrier_->Close(messages_->AwaitEnds())) return;
    g_mpi_unfinished = true;
    // Leak the object: a thread that is blocked in MPI may still use it.
    static_cast<void>(messages_.release());
  }

  std::uint32_t rank() const override { return messages_->rank(); }
  std::uint32_t ranks() const override { return messages_->ranks(); }
  std::string HostOf(std::uint32_t rank) const override { return messages_->HostOf(rank); }
  Result<Ticket> Ask(std::uint32_t peer, Service service, std::span<const std::byte> request,
                     std::span<std::byte> reply) override {
    return messages_->Ask(peer, service, request, reply);
  }
  Status Wait(Ticket ticket) override { return messages_->Wait(ticket); }
  Status Serve(Service service, Handler handler) override {
    return messages_->Serve(service, std::move(handler));
  }
  Status Exchange(std::uint32_t peer, std::span<const std::byte> out,
                  std::span<std::byte> in) override {
    return messages_->Exchange(peer, out, in);
  }
  void Leave(const Status& why) override { messages_->Leave(why); }
  TransportStats stats() const override { return messages_->stats(); }

 private:
  const std::shared_ptr<MpiCarrier> carrier_;
  std::unique_ptr<MessageTransport> messages_;
};

class MpiDoor final : public MpiEntry {
 public:
  Result<std::unique_ptr<Transport>> Open(std::chrono::nanoseconds peer_timeout) const override {
    return Guarded([&]() -> Result<std::unique_ptr<Transport>> {
      if (g_mpi_opened.exchange(true))
        return Fail(Status::InvalidArgument("MPI can be started only once in a process"));
      auto carrier = std::make_shared<MpiCarrier>(peer_timeout);
      const auto opened = MpiCarrier::Open(carrier);
      if (!opened) {
        g_mpi_unfinished = true;
        return Fail(opened.error());
      }
      g_mpi_facts = opened->facts;
      auto transport = std::make_unique<MpiTransport>(std::move(carrier), *opened, peer_timeout);
      if (const Status begun = transport->Begin(); !begun.ok()) {
        transport->Leave(begun);
        return Fail(begun);
      }
      return transport;
    });
  }
  MpiFacts facts() const override { return g_mpi_facts; }
  bool unfinished() const override { return g_mpi_unfinished; }
};

}  // namespace
}  // namespace internal
}  // namespace rhizome

// Returns null if librhizome is of another build, because this module shares C++ classes with it.
extern "C" RHIZOME_API const rhizome::MpiEntry* rhizome_mpi_entry_v1() {
  static const rhizome::MpiDoor door;
  return rhizome::BuildId() == rhizome::kThisBuild ? &door : nullptr;
}

extern "C" RHIZOME_API const char* rhizome_mpi_build_v1() { return rhizome::kThisBuild; }
