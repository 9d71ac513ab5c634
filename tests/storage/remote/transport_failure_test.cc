// Ranks that die, fall silent, lose a link or leave, and messages that are lost or damaged: every
// call on every rank must end, and its error must name the culprit.

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "rhizome/transport.h"
#include "storage/base/stopwatch.h"
#include "storage/remote/rank_calls.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Bytes = std::vector<std::byte>;
using Kind = LocalFault::Kind;

// A short timeout. A rank that gets no processor time for this long counts as silent, so the
// timeout is longer on a busy machine.
double Soon() { return 0.04 * testing::Patience(); }

/// Waits longer than a rank may be silent.
void WaitLongerThanSoon() {
  std::this_thread::sleep_for(std::chrono::duration<double>(4 * Soon()));
}

std::vector<std::string> Hosts(std::uint32_t ranks) {
  std::vector<std::string> hosts;
  for (std::uint32_t r = 0; r < ranks; ++r) hosts.push_back("host" + std::to_string(r));
  return hosts;
}

std::string NameOf(std::uint32_t rank) {
  return "rank " + std::to_string(rank) + " (host" + std::to_string(rank) + ")";
}

bool Names(const Status& status, std::uint32_t rank) {
  return status.message().find(NameOf(rank)) != std::string::npos;
}

/// Sends requests to all ranks and exchanges with them until an error occurs.
Status Chat(Transport& transport) {
  RHIZOME_RETURN_IF_ERROR(transport.Serve(
      Service::kEcho, [](std::uint32_t, std::span<const std::byte> request, Bytes& reply) {
        reply.assign(request.begin(), request.end());
        return Status::Ok();
      }));
  while (true) {
    for (std::uint32_t peer = 0; peer < transport.ranks(); ++peer) {
      const Bytes out(100 + peer, static_cast<std::byte>(peer));
      Bytes in(100 + transport.rank()), reply(out.size());
      RHIZOME_ASSIGN_OR_RETURN(const auto ticket, transport.Ask(peer, Service::kEcho, out, reply));
      RHIZOME_RETURN_IF_ERROR(transport.Exchange(peer, out, in));
      RHIZOME_RETURN_IF_ERROR(transport.Wait(ticket));
      if (reply != out || in != Bytes(in.size(), static_cast<std::byte>(transport.rank())))
        return Status::InvalidArgument("other bytes came than were sent");
    }
    RHIZOME_RETURN_IF_ERROR(Barrier(transport));
  }
}

struct Case {
  std::uint32_t ranks;
  LocalFault fault;
};

/// Runs Chat on all ranks until the fault, and returns the status of each rank.
std::vector<Status> Outcomes(const Case& c, double timeout, std::uint64_t seed = 1) {
  const auto local = LocalRanks::Create(c.ranks, {.peer_timeout_seconds = timeout,
                                                  .hosts = Hosts(c.ranks),
                                                  .faults = {c.fault},
                                                  .seed = seed});
  std::vector<Status> outcomes(c.ranks);
  if (!local) return outcomes;
  static_cast<void>((*local)->Run([&](Transport& transport) {
    outcomes[transport.rank()] = Chat(transport);
    return outcomes[transport.rank()];
  }));
  return outcomes;
}

Case RandomCase(Kind kind, std::mt19937_64& random) {
  constexpr std::array<std::uint32_t, 8> kRanks = {2, 3, 4, 2, 3, 4, 3, 8};
  const std::uint32_t ranks = kRanks[random() % kRanks.size()];
  LocalFault fault = {.kind = kind};
  fault.rank = static_cast<std::uint32_t>(random() % ranks);
  fault.peer = static_cast<std::uint32_t>((fault.rank + 1 + random() % (ranks - 1)) % ranks);
  fault.at_message = random() % 40;
  return {ranks, fault};
}

/// Calls `check` for `cases` random cases. Eight threads run them concurrently, since a case mostly
/// waits.
void ForCases(Kind kind, int cases,
              const std::function<void(const Case& c, std::mt19937_64& random)>& check) {
  const std::uint64_t seed = testing::TestSeed();
  std::vector<std::thread> threads;
  std::atomic<int> next = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = next++; i < cases; i = next++) {
        std::mt19937_64 random(seed + static_cast<std::uint64_t>(i));
        const Case c = RandomCase(kind, random);
        check(c, random);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TransportFailureTest, WhoeverDiesAtAnyMessageIsNamedByAllOthersAtOnce) {
  ForCases(Kind::kDie, 200, [](const Case& c, std::mt19937_64&) {
    for (const Status& status : Outcomes(c, /*timeout=*/600)) {
      EXPECT_EQ(status.code(), StatusCode::kIoError) << status.ToString();
      EXPECT_TRUE(Names(status, c.fault.rank)) << status.message();
    }
  });
}

TEST(TransportFailureTest, WhoeverIsSilentFromAnyMessageOnIsNamedByAllOthers) {
  ForCases(Kind::kSilence, 200, [](const Case& c, std::mt19937_64&) {
    const auto outcomes = Outcomes(c, Soon());
    for (std::uint32_t r = 0; r < c.ranks; ++r) {
      EXPECT_EQ(outcomes[r].code(), StatusCode::kIoError) << outcomes[r].ToString();
      // The silent rank itself hears no other rank, so it may name any of them.
      if (r == c.fault.rank) continue;
      // With such a short timeout other ranks may have been silent for nearly as long.
      EXPECT_TRUE(outcomes[r].message().starts_with(
          fmt::format("{} has been silent for {:g} s", NameOf(c.fault.rank), Soon())))
          << outcomes[r].message();
    }
  });
}

TEST(TransportFailureTest, ALinkThatIsCutEndsAllRanksAndNamesOneOfItsEnds) {
  ForCases(Kind::kCut, 100, [](const Case& c, std::mt19937_64&) {
    for (const Status& status : Outcomes(c, Soon())) {
      EXPECT_EQ(status.code(), StatusCode::kIoError) << status.ToString();
      EXPECT_TRUE(Names(status, c.fault.rank) || Names(status, c.fault.peer)) << status.message();
      EXPECT_NE(status.message().find("silent"), std::string::npos) << status.message();
    }
  });
}

// The flipped bit may be in a length, another field, or the payload.
TEST(TransportFailureTest, AFlippedBitOfAnyMessageEndsAllRanksAndNamesItsSender) {
  ForCases(Kind::kFlip, 300, [](const Case& c, std::mt19937_64& random) {
    for (const Status& status : Outcomes(c, /*timeout=*/600, random())) {
      EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
      EXPECT_TRUE(Names(status, c.fault.rank)) << status.message();
      EXPECT_NE(status.message().find("a message is damaged"), std::string::npos)
          << status.message();
    }
  });
}

// The loss is noticed by the next message, or by a heartbeat if all ranks wait.
TEST(TransportFailureTest, AMessageThatIsLostEndsAllRanksAndNamesItsSender) {
  ForCases(Kind::kDrop, 100, [](const Case& c, std::mt19937_64&) {
    for (const Status& status : Outcomes(c, 5 * Soon())) {
      EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
      EXPECT_TRUE(Names(status, c.fault.rank)) << status.message();
      EXPECT_NE(status.message().find(" was expected"), std::string::npos) << status.message();
    }
  });
}

TEST(TransportFailureTest, WhoeverLeavesTellsTheOthersWhy) {
  ForCases(Kind::kDie, 200, [](const Case& c, std::mt19937_64& random) {
    const auto code = static_cast<StatusCode>(1 + random() % 11);
    const auto local =
        LocalRanks::Create(c.ranks, {.peer_timeout_seconds = 600, .hosts = Hosts(c.ranks)});
    ASSERT_OK(local);
    std::vector<Status> outcomes(c.ranks);
    std::thread leaver([&] {
      while ((*local)->MessagesOf(c.fault.rank) < c.fault.at_message) std::this_thread::yield();
      (**local)[c.fault.rank].Leave(Status(code, "the disk is full"));
    });
    static_cast<void>((*local)->Run([&](Transport& transport) {
      outcomes[transport.rank()] = Chat(transport);
      return outcomes[transport.rank()];
    }));
    leaver.join();
    for (const Status& status : outcomes) {
      EXPECT_EQ(status.code(), code);
      EXPECT_EQ(status.message(), NameOf(c.fault.rank) + " has left the job: the disk is full");
    }
  });
}

TEST(TransportFailureTest, LaterCallsFailToo) {
  const auto local = LocalRanks::Create(3, {.hosts = Hosts(3)});
  ASSERT_OK(local);
  (**local)[2].Leave(Status::OutOfSpace("full"));
  for (std::uint32_t r = 0; r < 3; ++r) {
    Transport& transport = (**local)[r];
    Bytes in(1);
    EXPECT_EQ(transport.Exchange((r + 1) % 3, {}, in).code(), StatusCode::kOutOfSpace);
    EXPECT_EQ(transport.Exchange((r + 1) % 3, in, {}).code(), StatusCode::kOutOfSpace);
    EXPECT_EQ(transport.Ask(r, Service::kEcho, {}, {}).error().code(), StatusCode::kOutOfSpace);
    EXPECT_FALSE(transport.Serve(Service::kEcho, [](auto&&...) { return Status::Ok(); }).ok());
    EXPECT_OK(transport.Serve(Service::kEcho, {}));
    transport.Leave(Status::Busy("later"));  // the first reason is kept
    EXPECT_EQ(transport.Exchange(0, in, {}).code(), StatusCode::kOutOfSpace);
  }
}

// The other ranks continue, and can receive the messages that it sent before it ended.
TEST(TransportFailureTest, ARankThatIsDoneMayEndBeforeTheOthers) {
  const auto local = LocalRanks::Create(3, {.peer_timeout_seconds = Soon(), .hosts = Hosts(3)});
  ASSERT_OK(local);
  Transport& first = (**local)[0];
  ASSERT_OK((**local)[2].Exchange(0, Bytes(5), {}));
  Bytes reply(1);
  const auto unanswered = first.Ask(2, Service::kEcho, {}, reply);
  ASSERT_OK(unanswered);
  (*local)->End(2);
  const Status waited = first.Wait(*unanswered);
  EXPECT_EQ(waited.code(), StatusCode::kIoError);
  EXPECT_EQ(waited.message(), "rank 2 (host2) has ended while rank 0 (host0) still waits for it");
  Bytes in(5);
  EXPECT_OK(first.Exchange(2, {}, in));
  EXPECT_EQ(first.Exchange(2, {}, in).code(), StatusCode::kIoError);
  EXPECT_FALSE(first.Ask(2, Service::kEcho, {}, reply));
  WaitLongerThanSoon();  // its silence is not an error
  ASSERT_OK(first.Exchange(1, Bytes(5), {}));
  EXPECT_OK((**local)[1].Exchange(0, {}, in));
}

// A rank that computes longer than the timeout is not silent, because its transport sends
// heartbeats.
TEST(TransportFailureTest, ARankThatComputesIsNotSilent) {
  const auto local = LocalRanks::Create(4, {.peer_timeout_seconds = Soon()});
  ASSERT_OK(local);
  EXPECT_OK((*local)->Run([](Transport& transport) {
    if (transport.rank() == 1) WaitLongerThanSoon();
    return Barrier(transport);
  }));
}

// A message whose transfer takes longer than the timeout does not count as silence.
TEST(TransportFailureTest, ALongMessageIsNotSilence) {
  const auto local =
      LocalRanks::Create(2, {.bits_per_second = 8e6, .peer_timeout_seconds = Soon()});
  ASSERT_OK(local);
  EXPECT_OK((*local)->Run([](Transport& transport) {
    Bytes bytes(200'000 * testing::Patience());  // takes five timeouts
    return transport.rank() == 0 ? transport.Exchange(1, bytes, {})
                                 : transport.Exchange(0, {}, bytes);
  }));
}

// If a rank fails while its handler runs, its transport waits for the handler before it returns.
TEST(TransportFailureTest, AHandlerThatRunsIsWaitedFor) {
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false;
  std::atomic<bool> done = false;
  {
    const auto local = LocalRanks::Create(2);
    ASSERT_OK(local);
    ASSERT_OK((**local)[1].Serve(Service::kRows, [&](auto&&...) {
      {
        const std::lock_guard lock(mutex);
        begun = true;
      }
      changed.notify_all();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      done = true;
      return Status::Ok();
    }));
    ASSERT_OK((**local)[0].Ask(1, Service::kRows, {}, {}));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return begun; });
    lock.unlock();
    (**local)[0].Leave(Status::Interrupted("Ctrl-C"));
    ASSERT_OK((**local)[1].Serve(Service::kRows, {}));
    EXPECT_TRUE(done);
  }
}

}  // namespace
}  // namespace rhizome
