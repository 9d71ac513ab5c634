#include "storage/remote/message_header.h"

#include <random>
#include <vector>

#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Bytes = std::vector<std::byte>;

Bytes EncodedMessage(MessageHeader header, const Bytes& payload) {
  Bytes message(kMessageHeaderBytes + payload.size());
  header.payload_bytes = payload.size();
  header.payload_crc32c = Crc32c(payload);
  EncodeMessageHeader(header, std::span(message).first<kMessageHeaderBytes>());
  std::copy(payload.begin(), payload.end(), message.begin() + kMessageHeaderBytes);
  return message;
}

Bytes RandomPayload(std::mt19937_64& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

MessageHeader RandomHeader(std::mt19937_64& random) {
  MessageHeader header;
  header.kind = static_cast<MessageKind>(1 + random() % 7);
  const bool of_service = header.kind <= MessageKind::kRefusal;
  if (of_service) header.service = static_cast<Service>(random() % kServices);
  if (of_service) header.request = random();
  if (header.kind == MessageKind::kRefusal || header.kind == MessageKind::kFailure)
    header.code = static_cast<StatusCode>(1 + random() % 11);
  header.from = static_cast<std::uint32_t>(random());
  header.to = static_cast<std::uint32_t>(random());
  header.sequence = random();
  return header;
}

Status CheckMessage(const Bytes& message) {
  const auto header = DecodeMessageHeader(message);
  if (!header) return header.error();
  return CheckMessagePayload(*header, std::span(message).subspan(kMessageHeaderBytes));
}

/// Corrects the checksum of a header after a change.
void SealHeader(Bytes& message) {
  StoreLittle(message.data() + 60, Crc32c(std::span(message).first(60)));
}

TEST(MessageHeaderTest, IsReadAsItWasWritten) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 1000; ++i) {
    MessageHeader header = RandomHeader(random);
    const Bytes payload = RandomPayload(random, random() % 100);
    const Bytes message = EncodedMessage(header, payload);
    const auto read = DecodeMessageHeader(message);
    ASSERT_OK(read);
    header.payload_bytes = payload.size();
    header.payload_crc32c = Crc32c(payload);
    EXPECT_EQ(*read, header);
    EXPECT_OK(CheckMessagePayload(*read, payload));
  }
}

// Ranks of other builds depend on this layout.
TEST(MessageHeaderTest, HasFieldsWhereTheFormatSays) {
  MessageHeader header = {.kind = MessageKind::kRefusal, .service = Service::kEcho};
  header.from = 0x01020304;
  header.to = 0x05060708;
  header.sequence = 0x1112131415161718;
  header.request = 0x2122232425262728;
  header.code = StatusCode::kBusy;
  const Bytes message = EncodedMessage(header, Bytes(3, std::byte{9}));
  const std::byte* at = message.data();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(at), 4), "RZmg");
  EXPECT_EQ(LoadLittle<std::uint16_t>(at + 4), 1);
  EXPECT_EQ(at[6], std::byte{3});
  EXPECT_EQ(at[7], std::byte{1});
  EXPECT_EQ(LoadLittle<std::uint32_t>(at + 8), 0x01020304U);
  EXPECT_EQ(LoadLittle<std::uint32_t>(at + 12), 0x05060708U);
  EXPECT_EQ(LoadLittle<std::uint64_t>(at + 16), 0x1112131415161718U);
  EXPECT_EQ(LoadLittle<std::uint64_t>(at + 24), 0x2122232425262728U);
  EXPECT_EQ(LoadLittle<std::uint64_t>(at + 32), 3U);
  EXPECT_EQ(LoadLittle<std::uint32_t>(at + 40), 7U);
}

TEST(MessageHeaderTest, EveryFlippedBitIsNoticed) {
  std::mt19937_64 random(testing::TestSeed());
  int cases = 0;
  while (cases < 120'000) {
    Bytes message = EncodedMessage(RandomHeader(random), RandomPayload(random, random() % 300));
    ASSERT_OK(CheckMessage(message));
    for (std::size_t bit = 0; bit < message.size() * 8; ++bit, ++cases) {
      message[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_EQ(CheckMessage(message).code(), StatusCode::kCorruption) << "bit " << bit;
      message[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }
}

TEST(MessageHeaderTest, EveryOtherLengthIsNoticed) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 100; ++i) {
    const Bytes message =
        EncodedMessage(RandomHeader(random), RandomPayload(random, random() % 300));
    for (std::size_t size = 0; size < message.size(); ++size)
      EXPECT_EQ(CheckMessage(Bytes(message.begin(), message.begin() + size)).code(),
                StatusCode::kCorruption);
    Bytes longer = message;
    longer.push_back(std::byte{0});
    EXPECT_EQ(CheckMessage(longer).code(), StatusCode::kCorruption);
  }
}

// Another program may write headers with correct checksums and wrong fields.
TEST(MessageHeaderTest, WrongFieldsAreRefusedWhateverTheirChecksum) {
  const Bytes request = EncodedMessage({.kind = MessageKind::kRequest, .request = 5}, Bytes(7));
  const auto with = [&](std::size_t at, std::uint8_t byte) {
    Bytes message = request;
    message[at] = static_cast<std::byte>(byte);
    SealHeader(message);
    return CheckMessage(message);
  };
  EXPECT_OK(with(6, 1));
  EXPECT_EQ(with(4, 2).code(), StatusCode::kUnsupported);
  for (const auto& [at, byte] : std::vector<std::pair<std::size_t, std::uint8_t>>{{6, 0},
                                                                                  {6, 8},
                                                                                  {6, 4},
                                                                                  {7, kServices},
                                                                                  {32, 8},
                                                                                  {39, 1},
                                                                                  {40, 1},
                                                                                  {40, 99},
                                                                                  {44, 1},
                                                                                  {55, 1}})
    EXPECT_EQ(with(at, byte).code(), StatusCode::kCorruption)
        << at << " " << static_cast<int>(byte);
  // A failure without a status code is invalid.
  EXPECT_FALSE(CheckMessage(EncodedMessage({.kind = MessageKind::kFailure}, {})).ok());
}

}  // namespace
}  // namespace rhizome
