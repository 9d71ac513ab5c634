#include "storage/remote/message_transport.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "testing/testing.h"

namespace rhizome {
namespace {

// Lets the clock advance. Times that differ by less than its resolution may appear in any order.
void LetTimePass() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

TEST(MessageTransportTest, PeersAreNamedInTheOrderInWhichTheyWereHeard) {
  MessageTransport transport(1, {"a", "b", "c", "d"}, std::chrono::seconds(30),
                             [](std::uint32_t, MessageBytes) {});
  for (const std::uint32_t peer : {3U, 0U, 2U}) {
    LetTimePass();
    transport.HearFrom(peer);
  }
  EXPECT_EQ(transport.LeastHeard(), "rank 3 (d), rank 0 (a), rank 2 (c)");
  LetTimePass();
  transport.HearFrom(3);
  EXPECT_EQ(transport.LeastHeard(), "rank 0 (a), rank 2 (c), rank 3 (d)");
}

TEST(MessageTransportTest, OfManyPeersThoseAreNamedThatWereHeardLeastRecently) {
  MessageTransport transport(0, std::vector<std::string>(20, "h"), std::chrono::seconds(30),
                             [](std::uint32_t, MessageBytes) {});
  for (std::uint32_t peer = 19; peer > 0; --peer) {
    LetTimePass();
    transport.HearFrom(peer);
  }
  std::string expected;
  for (std::uint32_t peer = 19; peer > 11; --peer)
    expected += (expected.empty() ? "rank " : ", rank ") + std::to_string(peer) + " (h)";
  EXPECT_EQ(transport.LeastHeard(), expected);
}

/// A transport without a carrier. It counts the messages that it sends and the wake-ups that it
/// requests.
struct Told {
  std::atomic<int> sent = 0, woken = 0;
  MessageTransport transport{0,
                             {"a", "b"},
                             std::chrono::seconds(30),
                             [this](std::uint32_t, MessageBytes) { ++sent; },
                             [this] { ++woken; }};
};

TEST(MessageTransportTest, ARankAwaitsTheReplyThatItAskedFor) {
  Told told;
  EXPECT_FALSE(told.transport.Awaits());
  std::byte reply{};
  const auto ticket = told.transport.Ask(1, Service::kEcho, {}, {&reply, 1});
  ASSERT_OK(ticket);
  EXPECT_TRUE(told.transport.Awaits());
  told.transport.Die(Status::IoError("over"));
  EXPECT_FALSE(told.transport.Wait(*ticket).ok());
  EXPECT_FALSE(told.transport.Awaits());
}

TEST(MessageTransportTest, WhoeverWaitsForAPartAndSendsNoneWakesTheCarrier) {
  Told told;
  std::byte part{};
  std::thread waiting([&] { EXPECT_FALSE(told.transport.Exchange(1, {}, {&part, 1}).ok()); });
  EXPECT_TRUE(testing::Eventually([&] { return told.transport.Awaits() && told.woken > 0; }));
  told.transport.Die(Status::IoError("over"));
  waiting.join();
  EXPECT_EQ(told.woken, 1);
  EXPECT_FALSE(told.transport.Awaits());
}

// The carrier may be stuck in a call when its rank fails for another reason. It does not tick then.
TEST(MessageTransportTest, ARankLeavesThoughItsCarrierTicksNoMore) {
  Told told;
  std::atomic<bool> left = false;
  std::thread leaving([&] {
    told.transport.Leave(Status::OutOfSpace("full"));
    left = true;
  });
  EXPECT_TRUE(testing::Eventually([&] { return left.load(); }));
  told.transport.LosePeer(1, "it is over");  // releases the waiting call
  leaving.join();
}

TEST(MessageTransportTest, WhoeverSendsAPartNeedNotWakeTheCarrier) {
  Told told;
  const std::byte out{};
  EXPECT_OK(told.transport.Exchange(1, {&out, 1}, {}));
  EXPECT_EQ(told.sent, 1);
  EXPECT_EQ(told.woken, 0);
  EXPECT_FALSE(told.transport.Awaits());
}

}  // namespace
}  // namespace rhizome
