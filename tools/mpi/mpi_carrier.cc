#include "tools/mpi/mpi_carrier.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr int kMessageTag = 1;
constexpr int kProbesAtOnce = 64;
constexpr int kLooks = 8;  // polls without a pause before the first nap
constexpr microseconds kLongestNap{1000};
constexpr microseconds kLongestNapAwaited{200};
constexpr microseconds kLongestNapInTransfer{50};
constexpr auto kFlush = seconds(1);  // for the messages still queued when a rank is lost
constexpr std::size_t kHostBytes = 256;

// Ranks do not start at the same time: one may still be loading its libraries while the others wait
// for it, which takes a while on a busy machine.
constexpr auto kMinStart = seconds(30);
constexpr int kLooksAtStart = 10;

// The thread that calls MPI counts as stuck if it makes no progress during six checks; four checks
// are as long as a rank may be silent. Checks are counted instead of measuring time, because this
// process may itself have been stopped.
constexpr int kLooksToPeerTimeout = 4;
constexpr int kLooksUntilStuck = 6;

/// Blocks SIGPIPE in this thread and those that it starts, so that a write to a closed socket
/// returns an error. MPI writes without MSG_NOSIGNAL, and the signal would end the process.
void BlockBrokenPipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

std::string MpiErrorText(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  if (MPI_Error_string(error, text.data(), &length) != MPI_SUCCESS)
    return fmt::format("MPI error {}", error);
  return {text.data(), static_cast<std::size_t>(length)};
}

Status MpiFailed(std::string_view what, int error) {
  return Status::IoError(fmt::format("{} failed: {}", what, MpiErrorText(error)));
}

/// Returns how long to sleep after `idle` polls in a row without an event. A thread that yields
/// instead would wait until every other thread has used its time slice; a thread that sleeps is
/// scheduled first when it wakes. Naps grow with the idle time. The first ones are shorter than a
/// wake-up takes.
microseconds NapAfter(int idle, microseconds longest) {
  if (idle < kLooks) return microseconds(0);
  return std::min(microseconds(10 << std::min(idle - kLooks, 10)), longest);
}

bool AnyOf(const auto& transfers) {
  return std::any_of(transfers.begin(), transfers.end(),
                     [](const auto& queue) { return !queue.empty(); });
}

std::string LibraryVersion() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text = {};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace

Result<MpiCarrier::Opened> MpiCarrier::Open(const std::shared_ptr<MpiCarrier>& self) {
  RHIZOME_RETURN_IF_ERROR(Guarded([&] {
    self->thread_ = std::thread([self] { self->Run(); });
    return Status::Ok();
  }));
  std::unique_lock lock(self->mutex_);
  const Status came = self->AwaitStart(lock);
  if (self->state_ == State::kOpened) return self->opened_;
  lock.unlock();
  if (!came.ok()) {
    self->thread_.detach();  // MPI may never return from the call
    return Fail(came);
  }
  self->thread_.join();
  return Fail(self->started_);
}

/// Waits until MPI has started or failed to start. Gives up after a limit, because MPI waits
/// without a limit for a rank that is stopped or lost. Intervals are counted instead of measuring
/// time, because this process may itself have been stopped.
Status MpiCarrier::AwaitStart(std::unique_lock<std::mutex>& lock) {
  const auto limit = std::max<std::chrono::nanoseconds>(peer_timeout_, kMinStart);
  for (int looks = 0; looks < kLooksAtStart && state_ == State::kStarting; ++looks)
    changed_.wait_for(lock, limit / kLooksAtStart, [&] { return state_ != State::kStarting; });
  if (state_ != State::kStarting) return Status::Ok();
  state_ = State::kAborting;
  return Status::IoError(
      fmt::format("MPI did not start within {:g} s: {} waits for all ranks of the job, and one of "
                  "them is stopped, has exited or cannot be reached. Check the hosts of the job, "
                  "and start it again; if ranks need longer to start, raise --peer-timeout",
                  std::chrono::duration<double>(limit).count(), starting_));
}

Status MpiCarrier::Begin(MessageTransport& transport) {
  const std::lock_guard lock(mutex_);
  transport_ = &transport;
  state_ = State::kServing;
  changed_.notify_all();
  return Guarded([&] {
    watch_ = std::thread([this] { Watch(); });
    return Status::Ok();
  });
}

void MpiCarrier::Send(std::uint32_t peer, MessageBytes message) {
  const std::lock_guard lock(mutex_);
  orders_.emplace_back(peer, std::move(message));
  changed_.notify_all();
}

void MpiCarrier::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

bool MpiCarrier::Close(bool orderly) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kEnded) state_ = orderly ? State::kClosing : State::kAborting;
    changed_.notify_all();
  }
  if (watch_.joinable()) watch_.join();
  // MPI may never return from a call when a rank is lost. Its thread is then detached.
  const auto limit = orderly ? peer_timeout_ : std::chrono::nanoseconds(2 * kFlush);
  std::unique_lock lock(mutex_);
  const bool ended = changed_.wait_for(lock, limit, [&] { return state_ == State::kEnded; });
  const bool finalized = finalized_;
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return finalized;
}

// Main function of the thread that calls MPI:
// 1. Start: initialises MPI, duplicates the communicator and collects the hosts of all ranks; Open
//    waits for this.
// 2. Serve: until Close, sends queued messages, receives incoming ones, ticks the transport, and
//    sleeps if idle.
// 3. Finish: sends the remaining messages; if all ranks ended in order, finalises MPI.
void MpiCarrier::Run() {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // default slack would add 50 us to a nap
  BlockBrokenPipes();
  Opened opened;
  Status started = Guarded([&] { return Start(opened); });
  bool ok = started.ok();
  {
    const std::lock_guard lock(mutex_);
    ok = ok && state_ == State::kStarting;  // otherwise Open has given up
    started_ = std::move(started);
    opened_ = opened;
    state_ = ok ? State::kOpened : State::kEnded;
    changed_.notify_all();
  }
  if (!ok) return;
  const Status served = Guarded([&] {
    Serve();
    return Status::Ok();
  });
  if (!served.ok()) transport_->Die(served);
  const std::lock_guard lock(mutex_);
  state_ = State::kEnded;
  changed_.notify_all();
}

/// Starts MPI with a communicator of its own and learns the hosts of all ranks.
Status MpiCarrier::Start(Opened& opened) {
  int provided = MPI_THREAD_SINGLE;
  if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
      error != MPI_SUCCESS)
    return MpiFailed("starting MPI", error);
  opened.facts.library = LibraryVersion();
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    return Status::Unsupported(
        fmt::format("{} does not support MPI_THREAD_SERIALIZED, which ranks need: build it with "
                    "thread support, or use another MPI",
                    opened.facts.library));
  }
  opened.facts.thread_level = provided == MPI_THREAD_MULTIPLE ? "multiple" : "serialized";
  int major = 0, minor = 0;
  MPI_Get_version(&major, &minor);
  opened.facts.standard = fmt::format("{}.{}", major, minor);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

  MPI_Request request = MPI_REQUEST_NULL;
  if (const int error = MPI_Comm_idup(MPI_COMM_WORLD, &comm_, &request); error != MPI_SUCCESS)
    return MpiFailed("creating a communicator", error);
  RHIZOME_RETURN_IF_ERROR(AwaitRequest(request, "creating a communicator"));
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(comm_, &rank);
  MPI_Comm_size(comm_, &ranks);
  opened.rank = static_cast<std::uint32_t>(rank);

  std::array<char, MPI_MAX_PROCESSOR_NAME + kHostBytes> own = {};
  int length = 0;
  MPI_Get_processor_name(own.data(), &length);
  own[kHostBytes - 1] = 0;
  std::vector<char> all(static_cast<std::size_t>(ranks) * kHostBytes);
  if (const int error =
          MPI_Iallgather(own.data(), static_cast<int>(kHostBytes), MPI_CHAR, all.data(),
                         static_cast<int>(kHostBytes), MPI_CHAR, comm_, &request);
      error != MPI_SUCCESS)
    return MpiFailed("collecting the hosts of all ranks", error);
  RHIZOME_RETURN_IF_ERROR(AwaitRequest(request, "collecting the hosts of all ranks"));
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
    opened.hosts.emplace_back(all.data() + r * kHostBytes);
  sends_.resize(opened.hosts.size());
  receives_.resize(opened.hosts.size());
  unreachable_.resize(opened.hosts.size());
  return Status::Ok();
}

/// Waits for a request of the start procedure. Open limits the time.
Status MpiCarrier::AwaitRequest(MPI_Request& request, const std::string& what) {
  while (StartsWith(what)) {
    int done = 0;
    if (const int error = MPI_Test(&request, &done, MPI_STATUS_IGNORE); error != MPI_SUCCESS)
      return MpiFailed(what, error);
    if (done != 0) return Status::Ok();
    std::this_thread::sleep_for(kLongestNapAwaited);
  }
  return Status::Interrupted(what + " took too long");
}

/// Records the current step of the start. Returns whether Open still waits for it.
bool MpiCarrier::StartsWith(const std::string& what) {
  const std::lock_guard lock(mutex_);
  starting_ = what;
  return state_ == State::kStarting;
}

/// Carries messages until the state changes, then finishes.
void MpiCarrier::Serve() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ != State::kOpened; });
  Clock::time_point next_tick = Clock::now();
  for (int idle = 0; state_ == State::kServing; ++idle) {
    lock.unlock();
    if (Progress()) idle = 0;
    if (Clock::now() >= next_tick) {
      transport_->Tick();
      next_tick = Clock::now() + transport_->tick();
    }
    const microseconds nap = NapAfter(idle, LongestNap());
    lock.lock();
    ++rounds_;
    if (nap.count() > 0 && orders_.empty() && !woken_ && state_ == State::kServing)
      changed_.wait_for(lock, nap);
    if (std::exchange(woken_, false)) idle = 0;
  }
  lock.unlock();
  Finish();
}

microseconds MpiCarrier::LongestNap() const {
  if (AnyOf(sends_) || AnyOf(receives_)) return kLongestNapInTransfer;
  return transport_->Awaits() ? kLongestNapAwaited : kLongestNap;
}

/// Fails the requests of this rank if the thread that calls MPI stops making progress.
void MpiCarrier::Watch() {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = rounds_;
  for (int looks = 0; looks < kLooksUntilStuck; ++looks) {
    changed_.wait_for(lock, peer_timeout_ / kLooksToPeerTimeout,
                      [&] { return state_ != State::kServing; });
    if (state_ != State::kServing) return;
    if (rounds_ != std::exchange(seen, rounds_)) looks = -1;
  }
  lock.unlock();
  const double seconds =
      std::chrono::duration<double>(peer_timeout_).count() * kLooksUntilStuck / kLooksToPeerTimeout;
  transport_->Die(
      Status::IoError(fmt::format("a call of MPI has not returned for {:g} s, which may mean that "
                                  "a rank was lost; silent for the longest time: {}",
                                  seconds, transport_->LeastHeard())));
}

/// Sends the remaining messages; then finalises MPI if all ranks end in order.
void MpiCarrier::Finish() {
  bool orderly = false;
  {
    const std::lock_guard lock(mutex_);
    orderly = state_ == State::kClosing;
  }
  const Clock::time_point until =
      Clock::now() + (orderly ? peer_timeout_ : std::chrono::nanoseconds(kFlush));
  while (true) {
    TakeOrders();
    TestSends();
    bool reachable = false;
    for (std::size_t peer = 0; peer < sends_.size(); ++peer)
      reachable |= !sends_[peer].empty() && !unreachable_[peer];
    if (!reachable || Clock::now() > until) break;
    std::this_thread::sleep_for(kLongestNapAwaited);
  }
  if (!orderly || AnyOf(sends_)) return;
  MPI_Comm_free(&comm_);
  const bool finalized = MPI_Finalize() == MPI_SUCCESS;
  const std::lock_guard lock(mutex_);
  finalized_ = finalized;
}

bool MpiCarrier::Progress() {
  const bool ordered = TakeOrders();
  const bool sent = TestSends();
  const bool found = Probe();
  const bool received = TestReceives();
  return ordered || sent || found || received;
}

void MpiCarrier::Lose(std::uint32_t peer, int error) {
  if (unreachable_[peer]) return;
  unreachable_[peer] = true;
  transport_->LosePeer(peer, MpiErrorText(error));
}

bool MpiCarrier::TakeOrders() {
  std::deque<std::pair<std::uint32_t, MessageBytes>> orders;
  {
    const std::lock_guard lock(mutex_);
    orders.swap(orders_);
  }
  for (auto& [peer, message] : orders) {
    if (unreachable_[peer]) continue;
    Transfer& send = sends_[peer].emplace_back();
    send.message = std::move(message);
    const std::span<const std::byte> bytes = send.message.bytes();
    const int error = MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                                static_cast<int>(peer), kMessageTag, comm_, &send.request);
    if (error == MPI_SUCCESS) continue;
    sends_[peer].pop_back();
    Lose(peer, error);
  }
  return !orders.empty();
}

/// Returns the first message to or from a peer if its transfer is complete. Later ones are not
/// tested: each test is a round of MPI's progress engine, and they complete at about the same time.
std::optional<MessageBytes> MpiCarrier::TakeFirst(std::uint32_t peer, Transfers& transfers) {
  std::deque<Transfer>& queue = transfers[peer];
  if (queue.empty()) return std::nullopt;
  int done = 0;
  if (const int error = MPI_Test(&queue.front().request, &done, MPI_STATUS_IGNORE);
      error != MPI_SUCCESS) {
    Lose(peer, error);
    queue.pop_front();  // MPI may still use the other buffers
    return std::nullopt;
  }
  if (done == 0) return std::nullopt;
  MessageBytes message = std::move(queue.front().message);
  queue.pop_front();
  return message;
}

bool MpiCarrier::TestSends() {
  bool any = false;
  for (std::uint32_t peer = 0; peer < sends_.size(); ++peer)
    while (TakeFirst(peer, sends_)) any = true;
  return any;
}

/// Starts to receive the messages that peers have announced.
bool MpiCarrier::Probe() {
  for (int n = 0; n < kProbesAtOnce; ++n) {
    int found = 0;
    MPI_Status status = {};
    if (const int error = MPI_Iprobe(MPI_ANY_SOURCE, kMessageTag, comm_, &found, &status);
        error != MPI_SUCCESS) {
      transport_->FailJob(MpiFailed("checking for messages", error));
      return n > 0;
    }
    if (found == 0) return n > 0;
    BeginReceive(status);
  }
  return true;
}

void MpiCarrier::BeginReceive(const MPI_Status& found) {
  const auto peer = static_cast<std::uint32_t>(found.MPI_SOURCE);
  int count = 0;
  MPI_Get_count(&found, MPI_BYTE, &count);
  transport_->HearFrom(peer);
  Transfer& receive = receives_[peer].emplace_back();
  receive.message = MessageBytes(static_cast<std::size_t>(std::max(count, 0)));
  const int error = MPI_Irecv(receive.message.bytes().data(), count, MPI_BYTE, found.MPI_SOURCE,
                              kMessageTag, comm_, &receive.request);
  if (error == MPI_SUCCESS) return;
  receives_[peer].pop_back();
  Lose(peer, error);
}

bool MpiCarrier::TestReceives() {
  bool any = false;
  for (std::uint32_t peer = 0; peer < receives_.size(); ++peer) {
    while (std::optional<MessageBytes> message = TakeFirst(peer, receives_)) {
      transport_->Receive(peer, *std::move(message));
      any = true;
    }
  }
  return any;
}

}  // namespace internal
}  // namespace rhizome
