#include <string_view>

#include "rhizome/storage/catalog_key.h"
#include "rhizome/storage/catalog_log.h"
#include "rhizome/storage/little_endian.h"
#include "rhizome/storage/mutant.h"
#include "rhizome/storage/rocks_unpacker.h"

namespace rhizome {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kHeaderBytes = 7;
constexpr std::uint64_t kBatchHeadBytes = 12;  // number of the first change, count
constexpr std::uint64_t kMaxFamily = 255;

// How a record is a part of what was written at once.
enum class Part : std::uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

// What a batch consists of.
enum class BatchTag : std::uint8_t { kLogData = 3, kPut = 5, kDeleteRange = 14 };

/// One entry of a batch. Returns how many changes it is; nothing if it is none of a catalogue.
std::optional<std::uint32_t> ReadEntry(Unpacker& in) {
  const Bytes tag = in.Take(1);
  if (in.bad()) return std::nullopt;
  switch (static_cast<BatchTag>(tag[0])) {
    case BatchTag::kLogData:
      in.Field();
      return 0;
    case BatchTag::kPut:
      in.NumberTo(kMaxFamily);
      in.Field();
      in.Field();
      return 1;
    case BatchTag::kDeleteRange: {
      in.NumberTo(kMaxFamily);
      const Bytes begin = in.Field();
      const Bytes end = in.Field();
      const auto text = [](Bytes bytes) {
        return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      };
      if (!(text(begin) < text(end))) return std::nullopt;
      return 1;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> LogRecords::Read(Bytes bytes, std::uint64_t begin,
                                              const std::function<bool(Bytes)>& visit) {
  for (std::uint64_t at = begin; at < bytes.size();) {
    const std::uint64_t left = kLogBlockBytes - at % kLogBlockBytes;
    if (left < kHeaderBytes) {
      at += left;
      continue;
    }
    const std::uint64_t length = LoadLittle<std::uint16_t>(bytes.data() + at + 4);
    const auto part = static_cast<Part>(bytes[at + 6]);
    const Bytes payload = bytes.subspan(at + kHeaderBytes, length);
    const bool begins = part == Part::kWhole || part == Part::kFirst;
    const bool ends = part == Part::kWhole || part == Part::kLast;
    if (begins == open_ || (!begins && !ends && part != Part::kMiddle)) return at;
    record_.insert(record_.end(), payload.begin(), payload.end());
    if (ends && !visit(record_)) return at;
    if (ends) record_.clear();
    open_ = !ends;
    at += kHeaderBytes + length;
  }
  return std::nullopt;
}

bool LogBatches::Apply(Bytes record) {
  if (record.size() < kBatchHeadBytes) return false;
  const auto first = LoadLittle<std::uint64_t>(record.data());
  const auto count = LoadLittle<std::uint32_t>(record.data() + sizeof(first));
  if (RHIZOME_MUTANT("batches of the log are believed")) return true;
  if (first > kMaxRocksChange - count - 1) return false;
  if (last_change_ > 0 && first != last_change_ + 1) return false;
  std::uint64_t changes = 0;
  for (Unpacker in(record.subspan(kBatchHeadBytes)); !in.empty();) {
    const auto entry = ReadEntry(in);
    if (!entry || in.bad()) return false;
    changes += *entry;
  }
  if (changes != count) return false;
  if (first_change_ == 0) first_change_ = first;
  if (count > 0) last_change_ = first + count - 1;
  return true;
}

}  // namespace rhizome
