#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "edits.h"
#include "seeds.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/remote/message_header.h"

namespace {

using namespace rhizome;
using HeaderBytes = std::array<std::byte, kMessageHeaderBytes>;

/// Builds a message of the given kind with a few payload bytes.
std::vector<std::byte> Sample(unsigned kind) {
  MessageHeader header = {.kind = static_cast<MessageKind>(1 + kind % 7)};
  header.payload_bytes = kind % 5;
  header.to = 3;
  if (header.kind <= MessageKind::kRefusal) header.request = 9;
  if (header.kind == MessageKind::kRefusal || header.kind == MessageKind::kFailure)
    header.code = StatusCode::kBusy;
  std::vector<std::byte> message(kMessageHeaderBytes + header.payload_bytes, std::byte{5});
  header.payload_crc32c = Crc32c(std::span(message).subspan(kMessageHeaderBytes));
  EncodeMessageHeader(header, std::span(message).first<kMessageHeaderBytes>());
  return message;
}

/// Checks that an accepted header encodes to the same bytes, so that no byte outside its fields
/// matters.
void Check(std::span<const std::byte> message) {
  const auto header = DecodeMessageHeader(message);
  if (!header) return;
  HeaderBytes again;
  EncodeMessageHeader(*header, again);
  RHIZOME_CHECK(std::equal(again.begin(), again.end(), message.begin()));
  static_cast<void>(CheckMessagePayload(*header, message.subspan(kMessageHeaderBytes)));
}

/// Corrects the checksum of a header, so that its fields are parsed.
std::vector<std::byte> Sealed(std::vector<std::byte> message) {
  if (message.size() < kMessageHeaderBytes) return message;
  constexpr std::size_t kSumAt = kMessageHeaderBytes - 4;
  StoreLittle(message.data() + kSumAt, Crc32c(std::span(message).first(kSumAt)));
  return message;
}

}  // namespace

// Decodes raw bytes, and a valid message with edits, with and without a corrected checksum.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::uint8_t> input(data + 1, size - 1);
  const auto raw = std::as_bytes(input);
  switch (data[0] % 3) {
    case 0:
      Check(raw);
      Check(Sealed({raw.begin(), raw.end()}));
      break;
    case 1:
      Check(fuzzing::WithEdits(Sample(data[0] / 3), input));
      break;
    default:
      Check(Sealed(fuzzing::WithEdits(Sample(data[0] / 3), input)));
  }
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (unsigned kind = 0; kind < 7; ++kind) {
    const std::vector<std::byte> sample = Sample(kind);
    AddEdits(seeds, {static_cast<std::uint8_t>(3 * kind + 1)}, sample.size(), 100);
    AddEdits(seeds, {static_cast<std::uint8_t>(3 * kind + 2)}, sample.size(), 300);
    AddChanged(seeds, Joined({static_cast<std::uint8_t>(3 * kind)}, sample), 1, 200);
  }
  return seeds;
}
