#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "rhizome/transport.h"
#include "storage/base/little_endian.h"
#include "storage/base/stopwatch.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Bytes = std::vector<std::byte>;

Bytes RandomBytes(std::mt19937_64& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Returns a handler that replies with the request, followed by the rank of the asker and its own.
Transport::Handler Marking(const Transport& transport) {
  return [&transport](std::uint32_t peer, std::span<const std::byte> request, Bytes& reply) {
    reply.assign(request.begin(), request.end());
    reply.push_back(static_cast<std::byte>(peer));
    reply.push_back(static_cast<std::byte>(transport.rank()));
    return Status::Ok();
  };
}

class LocalTransportTest : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, LocalTransportTest, ::testing::Values(1, 2, 3, 4, 8));

// Every rank sends requests from two threads to random ranks, and waits for the replies in a
// different order.
TEST_P(LocalTransportTest, EveryRequestGetsItsOwnReply) {
  const std::uint64_t seed = testing::TestSeed();
  const auto ranks = LocalRanks::Create(GetParam());
  ASSERT_OK(ranks);
  std::atomic<int> replies = 0;
  const auto ask = [&](Transport& transport, std::uint64_t stream) -> Status {
    std::mt19937_64 random(seed + stream);
    struct Asked {
      std::uint32_t peer = 0;
      Bytes request, reply;
      Transport::Ticket ticket = 0;
    };
    std::vector<std::unique_ptr<Asked>> under_way;
    for (int i = 0; i < 60; ++i) {
      auto asked = std::make_unique<Asked>();
      asked->peer = static_cast<std::uint32_t>(random() % transport.ranks());
      asked->request = RandomBytes(random, random() % 2000);
      asked->reply.resize(asked->request.size() + 2);
      const auto service = static_cast<Service>(random() % kServices);
      RHIZOME_ASSIGN_OR_RETURN(asked->ticket,
                               transport.Ask(asked->peer, service, asked->request, asked->reply));
      under_way.push_back(std::move(asked));
    }
    std::shuffle(under_way.begin(), under_way.end(), random);
    for (const auto& asked : under_way) {
      RHIZOME_RETURN_IF_ERROR(transport.Wait(asked->ticket));
      Bytes expected = asked->request;
      expected.push_back(static_cast<std::byte>(transport.rank()));
      expected.push_back(static_cast<std::byte>(asked->peer));
      if (asked->reply == expected) ++replies;
    }
    return Status::Ok();
  };
  ASSERT_OK((*ranks)->Run([&](Transport& transport) -> Status {
    RHIZOME_RETURN_IF_ERROR(transport.Serve(Service::kRows, Marking(transport)));
    RHIZOME_RETURN_IF_ERROR(transport.Serve(Service::kEcho, Marking(transport)));
    Status other;
    std::thread second([&] { other = ask(transport, 100 + transport.rank()); });
    const Status own = ask(transport, transport.rank());
    second.join();
    return own.ok() ? other : own;
  }));
  EXPECT_EQ(replies, 120 * static_cast<int>(GetParam()));
}

// Exchanges between all pairs of ranks in a fixed order. Sizes are random, and some exchanges send
// in one direction only.
TEST_P(LocalTransportTest, ExchangesArriveInOrderAndWhole) {
  const std::uint64_t seed = testing::TestSeed();
  const auto ranks = LocalRanks::Create(GetParam());
  ASSERT_OK(ranks);
  const std::uint32_t count = GetParam();
  // Returns the bytes that one rank sends another in a round. Both sides compute it.
  const auto sent = [&](std::uint64_t round, std::uint32_t from, std::uint32_t to) {
    std::mt19937_64 random(seed + (round * count + from) * count + to);
    return RandomBytes(random, random() % 3 == 0 ? 0 : random() % 5000);
  };
  std::atomic<int> wrong = 0;
  ASSERT_OK((*ranks)->Run([&](Transport& transport) -> Status {
    for (std::uint64_t round = 0; round < 20; ++round) {
      for (std::uint32_t peer = 0; peer < count; ++peer) {
        const Bytes out = sent(round, transport.rank(), peer);
        const Bytes expected = sent(round, peer, transport.rank());
        Bytes in(expected.size());
        RHIZOME_RETURN_IF_ERROR(transport.Exchange(peer, out, in));
        if (in != expected) ++wrong;
      }
    }
    return Status::Ok();
  }));
  EXPECT_EQ(wrong, 0);
}

TEST(LocalTransportTest, CountsMessagesAndBytesByService) {
  const auto ranks = LocalRanks::Create(2);
  ASSERT_OK(ranks);
  Transport& asker = (**ranks)[0];
  Transport& server = (**ranks)[1];
  ASSERT_OK(server.Serve(Service::kRows, [](std::uint32_t, auto, Bytes& reply) {
    reply.resize(100);
    return Status::Ok();
  }));
  ASSERT_OK(asker.Serve(Service::kRows, Marking(asker)));
  Bytes reply(100);
  for (int i = 0; i < 3; ++i) {
    const auto ticket = asker.Ask(1, Service::kRows, Bytes(10), reply);
    ASSERT_OK(ticket);
    ASSERT_OK(asker.Wait(*ticket));
  }
  Bytes own(2);
  const auto to_itself = asker.Ask(0, Service::kRows, {}, own);
  ASSERT_OK(to_itself);
  ASSERT_OK(asker.Wait(*to_itself));
  ASSERT_OK(asker.Exchange(1, Bytes(7), {}));
  Bytes in(7);
  ASSERT_OK(server.Exchange(0, {}, in));

  const TransportStats asked = asker.stats(), served = server.stats();
  EXPECT_EQ(asked.asked[0].messages_out, 3U);
  EXPECT_EQ(asked.asked[0].messages_in, 3U);
  EXPECT_EQ(asked.asked[0].bytes_out, 3 * (kMessageHeaderBytes + 10));
  EXPECT_EQ(asked.asked[0].bytes_in, 3 * (kMessageHeaderBytes + 100));
  EXPECT_EQ(served.served[0].messages_in, 3U);
  EXPECT_EQ(served.served[0].bytes_out, 3 * (kMessageHeaderBytes + 100));
  EXPECT_EQ(asked.exchanged.bytes_out, kMessageHeaderBytes + 7);
  EXPECT_EQ(served.exchanged.bytes_in, kMessageHeaderBytes + 7);
  EXPECT_EQ(asked.asked[1].messages_out, 0U);
  EXPECT_EQ(asked.Total().bytes_out, served.Total().bytes_in);
  EXPECT_EQ((*ranks)->MessagesOf(0), 4U);
}

TEST(LocalTransportTest, RequestsWaitForAHandlerAndAreAnsweredOneAtATime) {
  const auto ranks = LocalRanks::Create(3);
  ASSERT_OK(ranks);
  Transport& server = (**ranks)[0];
  Bytes replies[2] = {Bytes(4), Bytes(4)};
  Transport::Ticket tickets[2];
  for (std::uint32_t r = 0; r < 2; ++r) {
    const auto ticket = (**ranks)[r + 1].Ask(0, Service::kRows, BytesOf("abcd"), replies[r]);
    ASSERT_OK(ticket);
    tickets[r] = *ticket;
  }
  std::atomic<int> inside = 0, most = 0;
  ASSERT_OK(server.Serve(Service::kRows, [&](std::uint32_t, auto request, Bytes& reply) {
    most = std::max<int>(most, ++inside);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    reply.assign(request.begin(), request.end());
    --inside;
    return Status::Ok();
  }));
  for (std::uint32_t r = 0; r < 2; ++r) ASSERT_OK((**ranks)[r + 1].Wait(tickets[r]));
  EXPECT_EQ(most, 1);
  EXPECT_EQ(replies[0], replies[1]);
  EXPECT_EQ(std::memcmp(replies[0].data(), "abcd", 4), 0);

  // After Serve with an empty handler, requests wait again, and the state of the old handler may be
  // destroyed.
  ASSERT_OK(server.Serve(Service::kRows, {}));
  EXPECT_EQ(inside, 0);
  const auto later = (**ranks)[1].Ask(0, Service::kRows, BytesOf("wxyz"), replies[0]);
  ASSERT_OK(later);
  ASSERT_OK(server.Serve(Service::kRows, [](std::uint32_t, auto, Bytes& reply) {
    reply.assign(4, std::byte{'n'});
    return Status::Ok();
  }));
  ASSERT_OK((**ranks)[1].Wait(*later));
  EXPECT_EQ(replies[0][0], std::byte{'n'});
}

TEST(LocalTransportTest, AHandlersErrorGoesToTheAskerWithTheNameOfTheRank) {
  const auto ranks = LocalRanks::Create(2, {.hosts = {"hosta", "hostb"}});
  ASSERT_OK(ranks);
  Status from_within;
  ASSERT_OK((**ranks)[1].Serve(Service::kRows, [&](std::uint32_t, auto request, Bytes&) -> Status {
    if (request.empty()) throw std::bad_alloc();
    from_within = (**ranks)[1].Serve(Service::kRows, {});
    return Status::NotFound("no row 7");
  }));
  const auto ticket = (**ranks)[0].Ask(1, Service::kRows, Bytes(1), {});
  ASSERT_OK(ticket);
  const Status refused = (**ranks)[0].Wait(*ticket);
  EXPECT_EQ(refused.code(), StatusCode::kNotFound);
  EXPECT_EQ(refused.message(), "rank 1 (hostb): no row 7");
  EXPECT_EQ(from_within.code(), StatusCode::kInvalidArgument);
  const auto thrown = (**ranks)[0].Ask(1, Service::kRows, {}, {});
  ASSERT_OK(thrown);
  EXPECT_EQ((**ranks)[0].Wait(*thrown).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ((**ranks)[0].Wait(*thrown).code(), StatusCode::kInvalidArgument);  // only once
}

TEST(LocalTransportTest, SizesThatDoNotFitAreErrorsOfThatCallAlone) {
  const auto ranks = LocalRanks::Create(2, {.hosts = {"hosta", "hostb"}});
  ASSERT_OK(ranks);
  Transport& first = (**ranks)[0];
  Transport& second = (**ranks)[1];
  ASSERT_OK(second.Serve(Service::kEcho, Marking(second)));
  Bytes reply(5);
  const auto ticket = first.Ask(1, Service::kEcho, Bytes(1), reply);
  ASSERT_OK(ticket);
  const Status wrong = first.Wait(*ticket);
  EXPECT_EQ(wrong.code(), StatusCode::kCorruption);
  EXPECT_EQ(wrong.message(),
            "rank 1 (hostb) answered a request for echo with 3 bytes instead of 5");
  // A reply that is too long fails, too. No byte may be written behind the buffer.
  const auto longer = first.Ask(1, Service::kEcho, Bytes(1), std::span(reply).first(2));
  ASSERT_OK(longer);
  EXPECT_EQ(first.Wait(*longer).code(), StatusCode::kCorruption);
  ASSERT_OK(first.Exchange(1, Bytes(20), {}));
  Bytes in_place(16);
  EXPECT_EQ(second.Exchange(0, {}, in_place).code(), StatusCode::kCorruption);
  ASSERT_OK(first.Exchange(1, Bytes(12), {}));
  Bytes in(16);
  const Status odd = second.Exchange(0, {}, in);
  EXPECT_EQ(odd.code(), StatusCode::kCorruption);
  EXPECT_NE(odd.message().find("rank 0 (hosta) sent 12 bytes where rank 1 (hostb) expects 16"),
            std::string::npos)
      << odd.message();
  EXPECT_EQ(first.Ask(2, Service::kEcho, {}, {}).error().code(), StatusCode::kInvalidArgument);
  // A message above the size limit is rejected before its bytes are read, so the test needs no
  // memory for them.
  const std::span<const std::byte> huge(reply.data(), kMaxMessageBytes + 1);
  EXPECT_EQ(first.Exchange(1, huge, {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(first.Ask(1, Service::kEcho, huge, {}).error().code(), StatusCode::kInvalidArgument);
  ASSERT_OK(first.Exchange(1, Bytes(16), {}));
  EXPECT_OK(second.Exchange(0, {}, in));
}

// Checks only lower bounds; the time on top depends on the machine.
TEST(LocalTransportTest, MessagesTakeTheTimeThatTheNetworkIsSaidToNeed) {
  const auto ranks = LocalRanks::Create(2, {.latency_seconds = 0.02, .bits_per_second = 8e6});
  ASSERT_OK(ranks);
  ASSERT_OK((**ranks)[1].Serve(Service::kEcho, Marking((**ranks)[1])));
  const Stopwatch watch;
  Bytes reply(40'002);
  const auto ticket = (**ranks)[0].Ask(1, Service::kEcho, Bytes(40'000), reply);
  ASSERT_OK(ticket);
  ASSERT_OK((**ranks)[0].Wait(*ticket));
  EXPECT_GE(watch.seconds(), 2 * (0.02 + 0.04));
  EXPECT_GE((**ranks)[0].stats().asked[1].wait_seconds, 0.1);
}

TEST(LocalTransportTest, RefusesWhatCannotBe) {
  EXPECT_EQ(LocalRanks::Create(0).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(LocalRanks::Create(5000).error().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(LocalRanks::Create(2, {.hosts = {"one"}}));
  EXPECT_FALSE(LocalRanks::Create(2, {.latency_seconds = -1}));
  EXPECT_FALSE(LocalRanks::Create(2, {.peer_timeout_seconds = 0}));
  EXPECT_FALSE(LocalRanks::Create(2, {.faults = {{.rank = 2}}}));
}

}  // namespace
}  // namespace rhizome
