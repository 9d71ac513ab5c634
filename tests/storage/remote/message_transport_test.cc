#include "rhizome/storage/message_transport.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace rhizome {
namespace {

// Ranks whose times differ by less than the clock shows may come in any order.
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

}  // namespace
}  // namespace rhizome
