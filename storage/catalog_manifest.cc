#include "rhizome/storage/catalog_manifest.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "rhizome/storage/catalog_log.h"
#include "rhizome/storage/little_endian.h"
#include "rhizome/storage/rocks_unpacker.h"

namespace rhizome {
namespace {

using Bytes = std::span<const std::byte>;

// What an edit consists of, by its number. Fields of other numbers may be passed over if they have
// kIgnorable in them.
enum Tag : std::uint64_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFileNumber = 3,
  kLastSequence = 4,
  kCompactCursor = 5,
  kDeletedFile = 6,
  kPreviousLogNumber = 9,
  kLeastLogNumber = 10,
  kNewFile4 = 103,
  kColumnFamily = 200,
  kColumnFamilyAdd = 201,
  kColumnFamilyDrop = 202,
  kMaxColumnFamily = 203,
  kInAtomicGroup = 300,
  kIgnorable = 1 << 13,
};

// Of kNewFile4, whose further fields end with it.
constexpr std::uint64_t kLastField = 1;

/// Follows the edits of a MANIFEST.
class Tables {
 public:
  /// False if the edit cannot be understood.
  bool Apply(Bytes edit) {
    Unpacker in(edit);
    while (!in.empty() && !in.bad())
      if (!ApplyField(in, in.Number())) return false;
    return !in.bad();
  }
  std::map<std::uint64_t, std::uint64_t> Take() { return std::move(live_); }

 private:
  bool ApplyField(Unpacker& in, std::uint64_t tag) {
    switch (tag) {
      case kLogNumber:
      case kNextFileNumber:
      case kLastSequence:
      case kPreviousLogNumber:
      case kLeastLogNumber:
      case kColumnFamily:
      case kMaxColumnFamily:
      case kInAtomicGroup:
        in.Number();
        return true;
      case kComparator:
      case kColumnFamilyAdd:
        in.Field();
        return true;
      case kColumnFamilyDrop:
        return true;
      case kCompactCursor:
        in.Number();
        in.Field();
        return true;
      case kDeletedFile:
        in.Number();  // its level
        live_.erase(in.Number());
        return true;
      case kNewFile4:
        return AddFile(in);
      default:
        if ((tag & kIgnorable) == 0) return false;
        in.Field();
        return true;
    }
  }

  bool AddFile(Unpacker& in) {
    in.Number();  // its level
    const std::uint64_t number = in.Number();
    const std::uint64_t length = in.Number();
    in.Field();  // least and largest key
    in.Field();
    in.Number();  // least and largest change
    in.Number();
    while (!in.bad() && in.Number() != kLastField) in.Field();
    live_[number] = length;
    return !in.bad();
  }

  std::map<std::uint64_t, std::uint64_t> live_;
};

/// How a record is a part of what was written at once.
enum class Part : std::uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

Status Bad(std::uint64_t offset) {
  return Status::Corruption(
      fmt::format("the MANIFEST's record at offset {} is damaged, or of a newer RocksDB", offset));
}

}  // namespace

std::string ManifestNameIn(std::span<const std::byte> current) {
  std::string name(reinterpret_cast<const char*>(current.data()), current.size());
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

Result<std::map<std::uint64_t, std::uint64_t>> LiveTables(std::span<const std::byte> manifest) {
  constexpr std::uint64_t kHeaderBytes = 7;
  const LogScan scan = ScanLog(manifest);
  if (scan.damaged) return Fail(Bad(scan.good_bytes));
  Tables tables;
  std::vector<std::byte> edit;
  for (std::uint64_t at = 0; at < scan.good_bytes;) {
    const std::uint64_t left = kLogBlockBytes - at % kLogBlockBytes;
    if (left < kHeaderBytes) {
      at += left;
      continue;
    }
    const std::uint64_t length = LoadLittle<std::uint16_t>(manifest.data() + at + 4);
    const auto part = static_cast<Part>(manifest[at + 6]);
    const Bytes payload = manifest.subspan(at + kHeaderBytes, length);
    if (part == Part::kWhole || part == Part::kFirst) edit.clear();
    edit.insert(edit.end(), payload.begin(), payload.end());
    const bool ends = part == Part::kWhole || part == Part::kLast;
    if (ends && !tables.Apply(edit)) return Fail(Bad(at));
    at += kHeaderBytes + length;
  }
  return tables.Take();
}

}  // namespace rhizome
