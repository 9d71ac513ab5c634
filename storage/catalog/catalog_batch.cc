#include <limits>
#include <string_view>

#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/catalog/catalog_key.h"
#include "storage/catalog/catalog_log.h"
#include "storage/catalog/rocks_unpacker.h"

namespace rhizome {
inline namespace internal {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kBatchHeadBytes = 12;  // number of the first change, number of changes

// The position of a physical record within a logical one (RocksDB, db/log_format.h).
enum class Part : std::uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

// The entries of a batch (the types of RocksDB's db/dbformat.h that a catalogue's writer uses).
enum class BatchTag : std::uint8_t { kLogData = 3, kPut = 5, kDeleteRange = 14 };

/// An entry of a batch: its column family and the number of changes that it counts as.
struct BatchEntry {
  std::uint32_t family = 0;
  std::uint32_t changes = 0;
};

std::uint32_t ReadFamily(Unpacker& in) {
  return static_cast<std::uint32_t>(in.NumberTo(std::numeric_limits<std::uint8_t>::max()));
}

/// Accepts only puts of a catalogue's keys. A reader would not see a put of any other key, and
/// would silently show the previous value.
std::optional<BatchEntry> ReadPut(Unpacker& in) {
  const std::uint32_t family = ReadFamily(in);
  const std::string_view key = TextOf(in.Field());
  in.Field();
  const bool known =
      (family == kMetaFamily && key == kCurrentKey) || (family == kDeltaFamily && IsDeltaKey(key));
  return known ? std::optional(BatchEntry{family, 1}) : std::nullopt;
}

std::optional<BatchEntry> ReadDeleteRange(Unpacker& in) {
  const std::uint32_t family = ReadFamily(in);
  const std::string_view begin = TextOf(in.Field());
  const std::string_view end = TextOf(in.Field());
  const bool known = family == kDeltaFamily && IsDeltaKey(begin) && IsDeltaKey(end) && begin < end;
  return known ? std::optional(BatchEntry{family, 1}) : std::nullopt;
}

/// Reads an entry; returns nullopt if a catalogue's writer does not write such entries.
std::optional<BatchEntry> ReadEntry(Unpacker& in) {
  const Bytes tag = in.Take(1);
  if (in.bad()) return std::nullopt;
  switch (static_cast<BatchTag>(tag[0])) {
    case BatchTag::kLogData:
      in.Field();
      return BatchEntry{};
    case BatchTag::kPut:
      return ReadPut(in);
    case BatchTag::kDeleteRange:
      return ReadDeleteRange(in);
  }
  return std::nullopt;
}

void Extend(LoggedChanges& range, std::uint64_t change) {
  if (range.first == 0) range.first = change;
  range.last = change;
}

}  // namespace

std::optional<std::uint64_t> LogRecords::Read(Bytes bytes, std::uint64_t begin,
                                              const std::function<bool(Bytes)>& visit) {
  for (std::uint64_t at = begin; at < bytes.size();) {
    const std::uint64_t left = kLogBlockBytes - at % kLogBlockBytes;
    if (left < kLogHeaderBytes) {
      at += left;
      continue;
    }
    const std::uint64_t length = LoadLittle<std::uint16_t>(bytes.data() + at + 4);
    const auto part = static_cast<Part>(bytes[at + 6]);
    const Bytes payload = bytes.subspan(at + kLogHeaderBytes, length);
    const bool begins = part == Part::kWhole || part == Part::kFirst;
    const bool ends = part == Part::kWhole || part == Part::kLast;
    if (begins == open_ || (!begins && !ends && part != Part::kMiddle)) return at;
    record_.insert(record_.end(), payload.begin(), payload.end());
    if (ends && !visit(record_)) return at;
    if (ends) record_.clear();
    open_ = !ends;
    at += kLogHeaderBytes + length;
  }
  return std::nullopt;
}

bool LogBatches::Apply(Bytes record) {
  if (record.size() < kBatchHeadBytes) return false;
  const auto first = LoadLittle<std::uint64_t>(record.data());
  const auto count = LoadLittle<std::uint32_t>(record.data() + sizeof(first));
  if (RHIZOME_MUTANT("batches of the log are believed")) return true;
  if (first == 0 || first > kMaxRocksChange - count - 1) return false;
  if (changes_.last > 0 && first != changes_.last + 1) return false;
  std::uint64_t changes = 0;
  for (Unpacker in(record.subspan(kBatchHeadBytes)); !in.empty();) {
    const auto entry = ReadEntry(in);
    if (!entry || in.bad()) return false;
    if (entry->changes > 0) Extend(families_[entry->family], first + changes);
    changes += entry->changes;
  }
  if (changes != count) return false;
  if (changes_.first == 0) changes_.first = first;
  if (count > 0) changes_.last = first + count - 1;
  return true;
}

LoggedChanges LogBatches::ChangesOf(std::uint32_t family) const {
  const auto at = families_.find(family);
  return at == families_.end() ? LoggedChanges{} : at->second;
}

}  // namespace internal
}  // namespace rhizome
