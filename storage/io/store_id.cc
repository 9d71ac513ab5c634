#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "rhizome/types.h"
#include "storage/base/hash.h"

namespace rhizome {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

StoreId StoreId::Random() {
  // Some processors have a generator that repeats itself, and getrandom may be forbidden in a
  // sandbox. Hashing time, process id and a counter as well keeps ids distinct even then.
  static std::atomic<std::uint64_t> counter{0};
  struct {
    std::array<std::byte, 32> random{};
    std::int64_t wall_ns = 0;
    std::int64_t steady_ns = 0;
    std::int64_t pid = 0;
    std::uint64_t counter = 0;
  } seed;
  const ssize_t ignored = getrandom(seed.random.data(), seed.random.size(), 0);
  static_cast<void>(ignored);
  seed.wall_ns = std::chrono::system_clock::now().time_since_epoch().count();
  seed.steady_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  seed.pid = getpid();
  seed.counter = counter++;
  return StoreId{Xxh3(std::as_bytes(std::span(&seed, 1)))};
}

Result<StoreId> StoreId::Parse(std::string_view hex) {
  StoreId id;
  if (hex.size() != 2 * id.bytes.size()) {
    return Fail(Status::InvalidArgument(
        fmt::format("store id '{}' has {} characters, but it must have 32 hex digits",
                    hex.substr(0, 64), hex.size())));
  }
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const int high = HexDigit(hex[2 * i]);
    const int low = HexDigit(hex[2 * i + 1]);
    if (high < 0 || low < 0) {
      return Fail(Status::InvalidArgument(
          fmt::format("store id '{}' is not hexadecimal at character {}", hex, 2 * i)));
    }
    id.bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return id;
}

std::string StoreId::ToString() const {
  std::string out;
  for (const std::byte byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return out;
}

}  // namespace rhizome
