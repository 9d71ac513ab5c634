#pragma once

#include <cstdint>
#include <span>

#include "rhizome/status.h"
#include "rhizome/transport.h"

namespace rhizome {
inline namespace internal {

/// The purpose of a message. Ranks of other builds may read it: never renumber, only append.
enum class MessageKind : std::uint8_t {
  kInvalid = 0,    // never sent, so that a zeroed header is refused
  kRequest = 1,    // to a service
  kReply = 2,      // to a request
  kRefusal = 3,    // to a request: code, and text as payload
  kExchange = 4,   // one side of an exchange
  kHeartbeat = 5,  // the sender is alive
  kFailure = 6,    // the job has failed: code, and text as payload
  kEnd = 7,        // the sender is done, and sends nothing more
};

/// The header of a message: 64 bytes, little-endian.
///
///     0  magic "RZmg"    4  version, 2 bytes    6  kind, 1 byte     7  service, 1 byte
///     8  from, 4 bytes  12  to, 4 bytes        16  sequence, 8 bytes
///    24  request, 8 bytes                      32  payload_bytes, 8 bytes
///    40  code, 4 bytes  44  zero, 12 bytes
///    56  CRC-32C of the payload                60  CRC-32C of the 60 bytes before
///
/// The header has its own checksum, so that no length is used before it is verified.
struct MessageHeader {
  MessageKind kind = MessageKind::kInvalid;
  Service service = Service::kRows;   // of a request, a reply or a refusal; otherwise kRows
  std::uint32_t from = 0, to = 0;     // ranks
  std::uint64_t sequence = 0;         // number of earlier messages from that rank to this one
  std::uint64_t request = 0;          // the requester's number of a request; otherwise 0
  std::uint64_t payload_bytes = 0;    // at most kMaxMessageBytes
  StatusCode code = StatusCode::kOk;  // of a refusal or failure, never kOk there; otherwise kOk
  std::uint32_t payload_crc32c = 0;

  bool operator==(const MessageHeader&) const = default;
};

/// Writes a header.
void EncodeMessageHeader(const MessageHeader& header,
                         std::span<std::byte, kMessageHeaderBytes> out);

/// Reads and checks the header of a message; `message` is the whole message. The payload is
/// verified separately by CheckMessagePayload.
/// Errors: kCorruption, naming the first defect; kUnsupported, another version.
Result<MessageHeader> DecodeMessageHeader(std::span<const std::byte> message);

/// Verifies the checksum of a message's payload. Errors: kCorruption.
Status CheckMessagePayload(const MessageHeader& header, std::span<const std::byte> payload);

}  // namespace internal
}  // namespace rhizome
