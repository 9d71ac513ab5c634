#include "storage/catalog/catalog_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/catalog/catalog_key.h"
#include "storage/catalog/catalog_log.h"
#include "storage/catalog/rocks_unpacker.h"

namespace rhizome {
inline namespace internal {
namespace {

using Bytes = std::span<const std::byte>;

// The tags of the fields of an edit (RocksDB, db/version_edit.h). An unknown field may be skipped
// if its tag has the bit kIgnorable.
enum Tag : std::uint64_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFileNumber = 3,
  kLastSequence = 4,
  kDeletedFile = 6,
  kPreviousLogNumber = 9,
  kMinLogNumber = 10,
  kNewFile4 = 103,
  kColumnFamily = 200,
  kColumnFamilyAdd = 201,
  kMaxColumnFamily = 203,
  kInAtomicGroup = 300,
  kIgnorable = 1 << 13,
  kDatabaseId = kIgnorable + 1,
  kLogAddition = kIgnorable + 7,
  kLogDeletion = kIgnorable + 8,
};

// The tags of the fields of kNewFile4 (RocksDB, db/version_edit.h).
enum FileTag : std::uint64_t {
  kLastField = 1,
  kNeedsCompaction = 2,
  kMinLog = 3,
  kOldestTime = 5,
  kCreationTime = 6,
  kChecksum = 7,
  kChecksumName = 8,
  kTemperature = 9,
  kUniqueId = 12,
};

// RocksDB's default is 7 levels. The other bounds are far above the needs of a catalogue and far
// from an overflow.
constexpr std::uint64_t kMaxLevel = 6;
constexpr std::uint64_t kMaxFamily = 255;
constexpr std::uint64_t kMaxGroup = 1000;
constexpr std::uint64_t kMaxTime = std::uint64_t{1} << 48;
constexpr std::uint64_t kMaxTableBytes = std::uint64_t{1} << 40;
constexpr std::string_view kBytewise = "leveldb.BytewiseComparator";

/// Returns whether a field is a single number, at most `most`.
bool IsNumberTo(Bytes field, std::uint64_t most) {
  Unpacker in(field);
  in.NumberTo(most);
  return !in.bad() && in.empty();
}

bool IsFileField(std::uint64_t tag, Bytes field) {
  switch (tag) {
    case kNeedsCompaction:
      return field.size() == 1 && field[0] == std::byte{1};
    case kMinLog:
      return field.size() == sizeof(std::uint64_t) &&
             LoadLittle<std::uint64_t>(field.data()) <= kMaxRocksNumber;
    case kOldestTime:
    case kCreationTime:
      return IsNumberTo(field, kMaxTime);
    case kChecksum:
    case kChecksumName:
      return true;
    case kTemperature:
      return field.size() == 1;
    case kUniqueId:
      return field.size() == 16 || field.size() == 24;
    default:
      return false;
  }
}

bool KeysFit(const TableClaim& claim) {
  const auto smallest = RocksKey::Parse(claim.smallest);
  const auto largest = RocksKey::Parse(claim.largest);
  if (!smallest || !largest || *largest < *smallest) return false;
  // The largest key may be the exclusive end of a range deletion, which has no change number.
  const bool end = largest->change == kMaxRocksChange && largest->type == RocksType::kRangeDeletion;
  const auto inside = [&](const RocksKey& key) {
    return claim.smallest_change <= key.change && key.change <= claim.largest_change;
  };
  return inside(*smallest) && (end || inside(*largest));
}

}  // namespace

struct ManifestEdits::Edit {
  std::uint32_t family = 0;
  std::optional<std::string> added_family;
  std::optional<std::uint64_t> next_number;
  std::optional<std::uint64_t> last_change;
  std::uint64_t log = 0;      // the family needs no earlier log
  std::uint64_t min_log = 0;  // no family needs an earlier log
  std::optional<std::uint64_t> group_left;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> deleted;  // level, number
  std::vector<std::pair<std::uint64_t, TableClaim>> added;
};

/// Reads one edit.
class ManifestEdits::Parser {
 public:
  /// Returns nullopt if RocksDB, with a catalogue's options, does not write such edits.
  static std::optional<Edit> Parse(Bytes bytes) {
    Parser parser(bytes);
    while (!parser.in_.empty() && !parser.in_.bad())
      if (!parser.Field(parser.in_.Number())) return std::nullopt;
    if (parser.in_.bad()) return std::nullopt;
    return std::move(parser.edit_);
  }

 private:
  explicit Parser(Bytes bytes) : in_(bytes) {}

  bool Field(std::uint64_t tag) {
    switch (tag) {
      case kComparator:
        return TextOf(in_.Field()) == kBytewise;
      case kLogNumber:
        edit_.log = in_.NumberTo(kMaxRocksNumber);
        return true;
      case kMinLogNumber:
        edit_.min_log = in_.NumberTo(kMaxRocksNumber);
        return true;
      case kNextFileNumber:
        edit_.next_number = in_.NumberTo(kMaxRocksNumber);
        return true;
      case kLastSequence:
        edit_.last_change = in_.NumberTo(kMaxRocksChange - 1);
        return true;
      case kPreviousLogNumber:
        return in_.Number() == 0;
      case kDeletedFile: {
        const std::uint64_t level = in_.NumberTo(kMaxLevel);
        edit_.deleted.emplace_back(level, in_.NumberTo(kMaxRocksNumber));
        return true;
      }
      case kNewFile4:
        return AddFile();
      case kColumnFamily:
        edit_.family = static_cast<std::uint32_t>(in_.NumberTo(kMaxFamily));
        return true;
      case kColumnFamilyAdd:
        edit_.added_family = TextOf(in_.Field());
        return true;
      case kMaxColumnFamily:
        in_.NumberTo(kMaxFamily);
        return true;
      case kInAtomicGroup:
        edit_.group_left = in_.NumberTo(kMaxGroup);
        return true;
      default:
        return Ignorable(tag);
    }
  }

  bool Ignorable(std::uint64_t tag) {
    if ((tag & kIgnorable) == 0) return false;
    const Bytes field = in_.Field();
    if (tag > kLogDeletion) return tag <= 0xFFFFFFFF;  // from a newer RocksDB
    Unpacker log(field);
    log.NumberTo(kMaxRocksNumber);
    if (tag == kLogAddition) {
      constexpr std::uint64_t kSyncedBytes = 2;
      std::uint64_t part = log.Number();
      if (part == kSyncedBytes) {
        log.NumberTo(kMaxTableBytes);
        part = log.Number();
      }
      return part == 1 && !log.bad() && log.empty();
    }
    return tag == kDatabaseId || (tag == kLogDeletion && !log.bad() && log.empty());
  }

  bool AddFile() {
    TableClaim claim;
    claim.level = static_cast<std::uint32_t>(in_.NumberTo(kMaxLevel));
    const std::uint64_t number = in_.NumberTo(kMaxRocksNumber);
    claim.bytes = in_.NumberTo(kMaxTableBytes);
    claim.smallest = TextOf(in_.Field());
    claim.largest = TextOf(in_.Field());
    claim.smallest_change = in_.NumberTo(kMaxRocksChange - 1);
    claim.largest_change = in_.NumberTo(kMaxRocksChange - 1);
    if (in_.bad() || number == 0 || claim.bytes == 0 || !KeysFit(claim)) return false;
    for (std::uint64_t tag = in_.Number(); tag != kLastField; tag = in_.Number()) {
      const Bytes field = in_.Field();
      if (in_.bad() || !IsFileField(tag, field)) return false;
    }
    edit_.added.emplace_back(number, std::move(claim));
    return true;
  }

  Unpacker in_;
  Edit edit_;
};

/// Applies an edit in these steps:
///   1. Parses the edit, and refuses unknown fields and values out of bounds.
///   2. An edit of a group waits until its group is complete.
///   3. ApplyAtOnce applies one edit: adds its family, checks that change and file numbers only
///      increase, removes and adds its tables.
bool ManifestEdits::Apply(Bytes bytes) {
  if (RHIZOME_MUTANT("the catalogue's MANIFEST is believed")) return true;
  const auto edit = Parser::Parse(bytes);
  if (!edit) return false;
  if (!edit->group_left) return group_.empty() && ApplyAtOnce(*edit);
  if (!group_.empty() && *edit->group_left + 1 != group_left_) return false;
  group_left_ = *edit->group_left;
  group_.emplace_back(bytes.begin(), bytes.end());
  if (group_left_ > 0) return true;
  for (const std::vector<std::byte>& member : std::exchange(group_, {}))
    if (!ApplyAtOnce(*Parser::Parse(member))) return false;
  return true;
}

bool ManifestEdits::ApplyAtOnce(const Edit& edit) {
  if (edit.added_family) {
    const auto same = [&](const auto& family) { return family.second.name == *edit.added_family; };
    if (std::ranges::any_of(families_, same)) return false;
    if (!families_.try_emplace(edit.family, Family{*edit.added_family}).second) return false;
  }
  const auto family = families_.find(edit.family);
  if (family == families_.end()) return false;
  if (edit.last_change) {
    if (*edit.last_change < last_change_) return false;
    last_change_ = *edit.last_change;
  }
  if (edit.next_number) {
    if (*edit.next_number < next_number_) return false;
    next_number_ = *edit.next_number;
  }
  family->second.first_log = std::max(family->second.first_log, edit.log);
  min_log_ = std::max(min_log_, edit.min_log);
  largest_log_ = std::max({largest_log_, edit.log, edit.min_log});
  for (const auto& [level, number] : edit.deleted) {
    const auto at = live_.find(number);
    if (at == live_.end() || at->second.level != level || at->second.family != edit.family)
      return false;
    live_.erase(at);
  }
  for (const auto& [number, claim] : edit.added) {
    if (claim.largest_change > last_change_) return false;
    TableClaim whole = claim;
    whole.family = edit.family;
    added_.insert_or_assign(number, whole);
    if (!live_.emplace(number, std::move(whole)).second) return false;
  }
  return true;
}

/// Checks, for tables with a single key, that tables at one level contain later changes than those
/// at deeper levels, which they hide.
bool ManifestEdits::LevelsFit() const {
  using Place = std::tuple<std::uint32_t, std::string, std::uint32_t>;  // family, key, level
  std::map<Place, LoggedChanges> levels;  // the changes of tables with a single key
  for (const auto& [number, claim] : live_) {
    const auto smallest = RocksKey::Parse(claim.smallest);
    const auto largest = RocksKey::Parse(claim.largest);
    if (!smallest || !largest || smallest->user != largest->user) continue;
    const Place place(claim.family, smallest->user, claim.level);
    const auto [at, first] =
        levels.try_emplace(place, LoggedChanges{claim.smallest_change, claim.largest_change});
    at->second.first = std::min(at->second.first, claim.smallest_change);
    at->second.last = std::max(at->second.last, claim.largest_change);
  }
  const auto hides = [](const auto& above, const auto& below) {
    const bool same = std::get<0>(above.first) == std::get<0>(below.first) &&
                      std::get<1>(above.first) == std::get<1>(below.first);
    return same && above.second.first <= below.second.last;
  };
  return std::ranges::adjacent_find(levels, hides) == levels.end();
}

FamilyClaim ManifestEdits::ClaimOf(std::uint32_t family) const {
  FamilyClaim claim;
  if (const auto at = families_.find(family); at != families_.end())
    claim.first_log = at->second.first_log;
  for (const auto& [number, table] : live_)
    if (table.family == family)
      claim.last_change = std::max(claim.last_change, table.largest_change);
  return claim;
}

std::uint64_t ManifestEdits::first_log() const {
  std::uint64_t least = ~std::uint64_t{0};
  for (const auto& [number, family] : families_) least = std::min(least, family.first_log);
  return std::max(least, min_log_);
}

bool ManifestEdits::Good() const {
  if (next_number_ == 0) return true;  // too short; RocksDB itself reports it
  if (!LevelsFit()) return false;
  return largest_log_ < next_number_ && (live_.empty() || live_.rbegin()->first < next_number_);
}

namespace {

Status Bad(std::uint64_t offset) {
  return Status::Corruption(fmt::format(
      "the MANIFEST's record at offset {} is damaged, or was written by a newer RocksDB", offset));
}

}  // namespace

std::string ManifestNameIn(std::span<const std::byte> current) {
  std::string name(reinterpret_cast<const char*>(current.data()), current.size());
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

Result<std::map<std::uint64_t, std::uint64_t>> LiveTables(std::span<const std::byte> manifest) {
  const LogScan scan = ScanLog(manifest);
  if (scan.damaged) return Fail(Bad(scan.good_bytes));
  ManifestEdits edits;
  LogRecords records;
  const auto refused = records.Read(manifest.first(scan.good_bytes), 0,
                                    [&](Bytes edit) { return edits.Apply(edit); });
  if (refused) return Fail(Bad(*refused));
  std::map<std::uint64_t, std::uint64_t> live;
  for (const auto& [number, claim] : edits.live()) live.emplace(number, claim.bytes);
  return live;
}

}  // namespace internal
}  // namespace rhizome
