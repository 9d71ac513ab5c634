#include "index/generation/key_sorter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "index/base/parallel.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
// Maximum number of positions in one record; a key with more takes several records.
constexpr std::size_t kPositionsOfRecord = 1024;

/// Head of a record of a run; the key and the positions follow.
struct RecordHead {
  std::uint32_t key_bytes;
  std::uint32_t positions;
};

std::uint64_t PrefixOf(std::string_view text) {
  std::uint64_t prefix = 0;
  std::memcpy(&prefix, text.data(), std::min(text.size(), sizeof(prefix)));
  return __builtin_bswap64(prefix);
}

/// Groups (key, position) pairs that arrive in order into records.
class RunWriter {
 public:
  static Result<RunWriter> Create(SpillSpace& space, std::size_t block_bytes) {
    RHIZOME_ASSIGN_OR_RETURN(SpillWriter writer, SpillWriter::Create(space, block_bytes));
    return RunWriter(std::move(writer));
  }

  Status Add(std::string_view key, std::uint64_t position) {
    if (positions_.size() == kPositionsOfRecord || key != key_) RHIZOME_RETURN_IF_ERROR(Flush());
    if (positions_.empty()) key_.assign(key);
    positions_.push_back(position);
    return Status::Ok();
  }

  Result<SpillFile> Finish() {
    RHIZOME_RETURN_IF_ERROR(Flush());
    return writer_.Finish();
  }

 private:
  explicit RunWriter(SpillWriter writer) : writer_(std::move(writer)) {}

  Status Flush() {
    if (positions_.empty()) return Status::Ok();
    const RecordHead head{static_cast<std::uint32_t>(key_.size()),
                          static_cast<std::uint32_t>(positions_.size())};
    record_.resize(sizeof(head) + key_.size() + positions_.size() * sizeof(std::uint64_t));
    std::memcpy(record_.data(), &head, sizeof(head));
    if (!key_.empty()) std::memcpy(record_.data() + sizeof(head), key_.data(), key_.size());
    std::memcpy(record_.data() + sizeof(head) + key_.size(), positions_.data(),
                positions_.size() * sizeof(std::uint64_t));
    positions_.clear();
    return writer_.Append(record_);
  }

  SpillWriter writer_;
  std::string key_;
  std::vector<std::uint64_t> positions_;
  std::vector<std::byte> record_;
};

/// Reads the records of a run in order.
class RunReader {
 public:
  static Result<RunReader> Open(const SpillFile& run) {
    RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(run, /*ahead=*/false));
    return RunReader(std::move(reader));
  }

  /// Moves to the next record; false at the end.
  Result<bool> Next() {
    if (rest_.empty()) {
      RHIZOME_ASSIGN_OR_RETURN(rest_, reader_.Next());
      if (rest_.empty()) return false;
    }
    RecordHead head{};
    if (rest_.size() < sizeof(head)) return Fail(Short());
    std::memcpy(&head, rest_.data(), sizeof(head));
    const std::size_t bytes = head.positions * sizeof(std::uint64_t);
    if (rest_.size() - sizeof(head) < head.key_bytes + bytes) return Fail(Short());
    key_ = {reinterpret_cast<const char*>(rest_.data()) + sizeof(head), head.key_bytes};
    positions_.resize(head.positions);
    if (bytes > 0)
      std::memcpy(positions_.data(), rest_.data() + sizeof(head) + head.key_bytes, bytes);
    rest_ = rest_.subspan(sizeof(head) + head.key_bytes + bytes);
    return true;
  }

  std::string_view key() const { return key_; }
  std::span<const std::uint64_t> positions() const { return positions_; }

 private:
  explicit RunReader(SpillReader reader) : reader_(std::move(reader)) {}
  static Status Short() { return Status::Corruption("a record of a spilled run is truncated"); }

  SpillReader reader_;
  std::span<const std::byte> rest_;
  std::string_view key_;
  std::vector<std::uint64_t> positions_;
};

}  // namespace

KeySorter::KeySorter(SpillSpace& space, std::uint64_t memory_bytes)
    : space_(space), memory_bytes_(std::max<std::uint64_t>(memory_bytes, 64 << 10)) {}

std::int64_t KeySorter::IntegerOf(std::string_view key) {
  return static_cast<std::int64_t>(PrefixOf(key) ^ kSignBit);
}

Status KeySorter::AddString(std::string_view key, std::uint64_t position) {
  const Entry entry{PrefixOf(key), position, static_cast<std::uint32_t>(text_.size()),
                    static_cast<std::uint32_t>(key.size())};
  text_.append(key);
  return Add(entry);
}

Status KeySorter::AddInteger(std::int64_t key, std::uint64_t position) {
  integers_ = true;
  return Add({static_cast<std::uint64_t>(key) ^ kSignBit, position, 0, 0});
}

// A run takes half of the memory, because growing its vectors needs the other half.
Status KeySorter::Add(const Entry& entry) {
  entries_.push_back(entry);
  const std::uint64_t bytes = entries_.size() * sizeof(Entry) + text_.size();
  return bytes < std::min<std::uint64_t>(memory_bytes_ / 2, UINT32_MAX / 2) ? Status::Ok()
                                                                            : SpillRun();
}

bool KeySorter::Before(const Entry& a, const Entry& b) const {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  if (const int order = TextOf(a).compare(TextOf(b)); order != 0) return order < 0;
  return a.position < b.position;
}

std::size_t KeySorter::FanIn() const {
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(memory_bytes_ / (std::uint64_t{64} << 10), 2, 256));
}

Status KeySorter::SpillRun() {
  if (entries_.empty()) return Status::Ok();
  const auto before = [this](const Entry& a, const Entry& b) { return Before(a, b); };
  ParallelSort(entries_.begin(), entries_.end(), before);
  RHIZOME_ASSIGN_OR_RETURN(RunWriter writer,
                           RunWriter::Create(space_, SpillBlockBytes(memory_bytes_ / 2, FanIn())));
  for (const Entry& entry : entries_) {
    const std::uint64_t big_endian = __builtin_bswap64(entry.prefix);
    const std::string_view key =
        integers_ ? std::string_view(reinterpret_cast<const char*>(&big_endian), sizeof(big_endian))
                  : TextOf(entry);
    RHIZOME_RETURN_IF_ERROR(writer.Add(key, entry.position));
  }
  entries_.clear();
  text_.clear();
  RHIZOME_ASSIGN_OR_RETURN(SpillFile run, writer.Finish());
  runs_.push_back(std::move(run));
  return Status::Ok();
}

// Merges runs by a heap. Runs are in the order of their positions, so among equal keys the one of
// the earlier run comes first.
Status KeySorter::MergeRuns(std::span<const SpillFile> runs, const Visit& visit) {
  std::vector<RunReader> readers;
  std::vector<std::size_t> heap;
  for (const SpillFile& run : runs) {
    RHIZOME_ASSIGN_OR_RETURN(RunReader reader, RunReader::Open(run));
    readers.push_back(std::move(reader));
    RHIZOME_ASSIGN_OR_RETURN(const bool more, readers.back().Next());
    if (more) heap.push_back(readers.size() - 1);
  }
  const auto after = [&](std::size_t a, std::size_t b) {
    const int order = readers[a].key().compare(readers[b].key());
    return order != 0 ? order > 0 : a > b;
  };
  std::make_heap(heap.begin(), heap.end(), after);
  std::string last;
  bool any = false;
  while (!heap.empty()) {
    RunReader& reader = readers[heap.front()];
    const bool is_new = !any || reader.key() != last;
    if (is_new) last.assign(reader.key());
    any = true;
    RHIZOME_RETURN_IF_ERROR(visit(reader.key(), reader.positions(), is_new));
    std::pop_heap(heap.begin(), heap.end(), after);
    RHIZOME_ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (more)
      std::push_heap(heap.begin(), heap.end(), after);
    else
      heap.pop_back();
  }
  return Status::Ok();
}

Result<SpillFile> KeySorter::MergeToRun(std::span<const SpillFile> runs) {
  RHIZOME_ASSIGN_OR_RETURN(RunWriter writer,
                           RunWriter::Create(space_, SpillBlockBytes(memory_bytes_ / 2, FanIn())));
  RHIZOME_RETURN_IF_ERROR(MergeRuns(
      runs, [&](std::string_view key, std::span<const std::uint64_t> positions, bool) -> Status {
        for (const std::uint64_t position : positions)
          RHIZOME_RETURN_IF_ERROR(writer.Add(key, position));
        return Status::Ok();
      }));
  return writer.Finish();
}

// Merges all runs:
// 1. spills the last run and frees the memory of runs;
// 2. merges groups of runs into longer ones until the rest can be merged at once;
// 3. merges the rest into `visit`.
Status KeySorter::Merge(const JobControl& control, const Visit& visit) {
  RHIZOME_RETURN_IF_ERROR(SpillRun());
  std::vector<Entry>().swap(entries_);
  std::string().swap(text_);
  while (runs_.size() > FanIn()) {
    std::vector<SpillFile> merged;
    for (std::size_t begin = 0; begin < runs_.size(); begin += FanIn()) {
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "merge ids", .done = begin, .total = runs_.size()}));
      const std::size_t count = std::min(FanIn(), runs_.size() - begin);
      const auto group = std::span(runs_).subspan(begin, count);
      RHIZOME_ASSIGN_OR_RETURN(SpillFile run, MergeToRun(group));
      for (SpillFile& used : group) used.Remove();
      merged.push_back(std::move(run));
    }
    runs_ = std::move(merged);
  }
  RHIZOME_RETURN_IF_ERROR(MergeRuns(runs_, visit));
  runs_.clear();
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
