#include "storage/remote/message_header.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/base/hash.h"
#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint32_t kMessageMagic = 0x676D5A52;  // "RZmg"
constexpr std::uint16_t kMessageVersion = 1;
constexpr std::size_t kZeroBegin = 44, kZeroEnd = 56;
constexpr std::size_t kHeaderSumAt = 60;

bool CarriesCode(MessageKind kind) {
  return kind == MessageKind::kRefusal || kind == MessageKind::kFailure;
}

bool IsOfService(MessageKind kind) {
  return kind == MessageKind::kRequest || kind == MessageKind::kReply ||
         kind == MessageKind::kRefusal;
}

Status Wrong(std::string_view what) {
  return Status::Corruption(fmt::format("a message is damaged: {}", what));
}

/// Checks the fields of a header whose checksum is correct. They are wrong only if the sender runs
/// another program or version.
Status CheckFields(const std::byte* at, const MessageHeader& header) {
  const auto kind = static_cast<std::uint8_t>(header.kind);
  if (kind == 0 || kind > static_cast<std::uint8_t>(MessageKind::kEnd)) return Wrong("its kind");
  if (static_cast<std::size_t>(header.service) >= kServices) return Wrong("its service");
  if (!IsOfService(header.kind) && (header.service != Service::kRows || header.request != 0))
    return Wrong("it has a request number, which its kind does not have");
  const auto code = LoadLittle<std::uint32_t>(at + 40);
  if (code > static_cast<std::uint32_t>(StatusCode::kInterrupted) ||
      (code != 0) != CarriesCode(header.kind))
    return Wrong("its code");
  if (std::any_of(at + kZeroBegin, at + kZeroEnd, [](std::byte b) { return b != std::byte{0}; }))
    return Wrong("reserved bytes");
  return Status::Ok();
}

}  // namespace

void EncodeMessageHeader(const MessageHeader& header,
                         std::span<std::byte, kMessageHeaderBytes> out) {
  std::byte* const at = out.data();
  std::fill(out.begin(), out.end(), std::byte{0});
  StoreLittle(at, kMessageMagic);
  StoreLittle(at + 4, kMessageVersion);
  StoreLittle(at + 6, static_cast<std::uint8_t>(header.kind));
  StoreLittle(at + 7, static_cast<std::uint8_t>(header.service));
  StoreLittle(at + 8, header.from);
  StoreLittle(at + 12, header.to);
  StoreLittle(at + 16, header.sequence);
  StoreLittle(at + 24, header.request);
  StoreLittle(at + 32, header.payload_bytes);
  StoreLittle(at + 40, static_cast<std::uint32_t>(header.code));
  StoreLittle(at + 56, header.payload_crc32c);
  StoreLittle(at + kHeaderSumAt, Crc32c(out.first(kHeaderSumAt)));
}

Result<MessageHeader> DecodeMessageHeader(std::span<const std::byte> message) {
  if (message.size() < kMessageHeaderBytes) return Fail(Wrong("it is shorter than a header"));
  const std::byte* const at = message.data();
  if (LoadLittle<std::uint32_t>(at) != kMessageMagic)
    return Fail(Wrong("it does not begin with the magic number"));
  if (LoadLittle<std::uint32_t>(at + kHeaderSumAt) != Crc32c(message.first(kHeaderSumAt)))
    return Fail(Wrong("the checksum of its header is wrong"));
  const auto version = LoadLittle<std::uint16_t>(at + 4);
  if (version != kMessageVersion)
    return Fail(Status::Unsupported(fmt::format(
        "a message has version {}, but this build knows version {}; start all ranks with one build",
        version, kMessageVersion)));
  MessageHeader header;
  header.kind = static_cast<MessageKind>(at[6]);
  header.service = static_cast<Service>(at[7]);
  header.from = LoadLittle<std::uint32_t>(at + 8);
  header.to = LoadLittle<std::uint32_t>(at + 12);
  header.sequence = LoadLittle<std::uint64_t>(at + 16);
  header.request = LoadLittle<std::uint64_t>(at + 24);
  header.payload_bytes = LoadLittle<std::uint64_t>(at + 32);
  header.code = static_cast<StatusCode>(LoadLittle<std::uint32_t>(at + 40));
  header.payload_crc32c = LoadLittle<std::uint32_t>(at + 56);
  RHIZOME_RETURN_IF_ERROR(CheckFields(at, header));
  if (header.payload_bytes > kMaxMessageBytes ||
      header.payload_bytes != message.size() - kMessageHeaderBytes)
    return Fail(Wrong(fmt::format("its payload has {} bytes, but its header says {}",
                                  message.size() - kMessageHeaderBytes, header.payload_bytes)));
  return header;
}

Status CheckMessagePayload(const MessageHeader& header, std::span<const std::byte> payload) {
  if (header.payload_crc32c != Crc32c(payload))
    return Wrong("the checksum of its payload is wrong");
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
