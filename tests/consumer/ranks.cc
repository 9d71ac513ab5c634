#include <rhizome/entry.h>
#include <rhizome/transport.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// usage: ranks_consumer STORE FOLDER
// Trains over two ranks, which are threads, once with this program's own transport and once with
// Rhizome's. The models must have the same bytes.

namespace {

using rhizome::Result;
using rhizome::Service;
using rhizome::Status;
using Bytes = std::vector<std::byte>;

/// State that the ranks of one process share.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Bytes>> under_way;  // from, to
  std::map<std::uint32_t, rhizome::Transport::Handler> rows;  // by rank; handles requests for rows
  std::map<std::uint32_t, std::unique_ptr<std::mutex>> answering;
  std::optional<Status> ended;
};

/// A rank that communicates through memory. The thread that waits for a reply runs the other rank's
/// handler.
class OwnTransport final : public rhizome::Transport {
 public:
  OwnTransport(Mailbox& all, std::uint32_t rank) : all_(all), rank_(rank) {
    all_.answering[rank] = std::make_unique<std::mutex>();
  }
  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return 2; }
  std::string HostOf(std::uint32_t rank) const override { return "here" + std::to_string(rank); }

  Result<Ticket> Ask(std::uint32_t peer, Service, std::span<const std::byte> request,
                     std::span<std::byte> reply) override {
    const std::lock_guard lock(all_.mutex);
    asked_[++tickets_] = {peer, Bytes(request.begin(), request.end()), reply};
    return tickets_;
  }

  Status Wait(Ticket ticket) override {
    std::unique_lock lock(all_.mutex);
    const Asked asked = std::move(asked_.at(ticket));
    asked_.erase(ticket);
    const std::unique_lock<std::mutex> one = Answering(asked.peer, lock);
    if (all_.ended) return *all_.ended;
    const Handler& handler = all_.rows.at(asked.peer);
    lock.unlock();
    Bytes reply;
    const Status answered = handler(rank_, asked.request, reply);
    if (!answered.ok()) return answered;
    if (reply.size() != asked.reply.size()) return Status::Corruption("a reply of another size");
    std::memcpy(asked.reply.data(), reply.data(), reply.size());
    return Status::Ok();
  }

  Status Serve(Service, Handler handler) override {
    const std::lock_guard one(*all_.answering.at(rank_));
    const std::lock_guard lock(all_.mutex);
    all_.rows.erase(rank_);
    if (handler) all_.rows[rank_] = std::move(handler);
    all_.changed.notify_all();
    return Status::Ok();
  }

  Status Exchange(std::uint32_t peer, std::span<const std::byte> out,
                  std::span<std::byte> in) override {
    std::unique_lock lock(all_.mutex);
    if (!out.empty()) {
      all_.under_way[{rank_, peer}].emplace_back(out.begin(), out.end());
      all_.changed.notify_all();
      sent_ += out.size();
    }
    if (in.empty()) return Status::Ok();
    auto& arriving = all_.under_way[{peer, rank_}];
    all_.changed.wait(lock, [&] { return all_.ended || !arriving.empty(); });
    if (arriving.empty()) return *all_.ended;
    if (arriving.front().size() != in.size()) return Status::Corruption("another size");
    std::memcpy(in.data(), arriving.front().data(), in.size());
    arriving.pop_front();
    return Status::Ok();
  }

  void Leave(const Status& why) override {
    const std::lock_guard lock(all_.mutex);
    if (!why.ok() && !all_.ended) all_.ended = why;
    all_.changed.notify_all();
  }

  rhizome::TransportStats stats() const override {
    rhizome::TransportStats stats;
    stats.exchanged.bytes_out = sent_;
    return stats;
  }

 private:
  /// Waits until a peer has a handler, and locks it. The handler is not removed while it is locked.
  std::unique_lock<std::mutex> Answering(std::uint32_t peer, std::unique_lock<std::mutex>& lock) {
    std::mutex& answering = *all_.answering.at(peer);
    while (true) {
      all_.changed.wait(lock, [&] { return all_.ended || all_.rows.count(peer) != 0; });
      lock.unlock();
      std::unique_lock one(answering);
      lock.lock();
      if (all_.ended || all_.rows.count(peer) != 0) return one;
    }
  }

  struct Asked {
    std::uint32_t peer = 0;
    Bytes request;
    std::span<std::byte> reply;
  };
  Mailbox& all_;
  const std::uint32_t rank_;
  std::map<Ticket, Asked> asked_;
  Ticket tickets_ = 0;
  std::uint64_t sent_ = 0;
};

Status Train(const std::string& store, const std::string& model, rhizome::Transport& transport) {
  rhizome::TrainOptions options;
  options.store = store;
  options.job.out = model;
  options.job.scratch = model + "-scratch";
  options.minibatch()->ranks = {.transport = &transport};
  options.learning.epochs = 2;
  options.minibatch()->batch_size = 20;
  options.minibatch()->feed.cache_bytes = 10000;
  options.learning.test = false;
  const rhizome::JobControl control;
  const auto report = rhizome_gnn_entry_v1()->Train(options, control);
  if (!report) return report.error();
  if (transport.rank() != 0) return Status::Ok();
  return report->ranks.size() == 2 && report->ranks[0].remote_rows > 0
             ? Status::Ok()
             : Status::InvalidArgument("no row came from the other rank");
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  const std::string store = argv[1], folder = argv[2];
  Mailbox all;
  OwnTransport first(all, 0), second(all, 1);
  Status ended[2];
  std::vector<std::thread> threads;
  for (OwnTransport* const rank : {&first, &second}) {
    threads.emplace_back(
        [&, rank] { ended[rank->rank()] = Train(store, folder + "/own.safetensors", *rank); });
  }
  for (std::thread& thread : threads) thread.join();
  const auto theirs = rhizome::LocalRanks::Create(2);
  const Status others = theirs ? (*theirs)->Run([&](rhizome::Transport& rank) {
    return Train(store, folder + "/theirs.safetensors", rank);
  })
                               : theirs.error();
  for (const Status& status : {ended[0], ended[1], others}) {
    if (status.ok()) continue;
    std::printf("%s\n", status.ToString().c_str());
    return 1;
  }
  const std::string own = Contents(folder + "/own.safetensors");
  const bool same = !own.empty() && own == Contents(folder + "/theirs.safetensors");
  std::printf("%s\n", same ? "the same model" : "another model");
  return same ? 0 : 1;
}
