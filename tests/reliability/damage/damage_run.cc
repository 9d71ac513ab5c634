// Damages the files of a small store and classifies what happens (Found): flipped bits (FlipBits,
// FlipOpenLogs) and other injuries such as cut, swapped or outdated files (ListInjuries, Injure).
// Each damaged store is read completely, as a reader and as a writer, and verified (OpenAndRead). A
// wrong answer without an error is "silent".

#include "reliability/damage/damage_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "reliability/harness/description.h"
#include "reliability/harness/process.h"
#include "rhizome/chunk_array.h"
#include "rhizome/graph.h"
#include "rhizome/maintenance.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/row_reader.h"
#include "storage/base/hash.h"
#include "storage/base/mutex.h"
#include "storage/io/files.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

using Files = std::map<std::string, std::vector<std::byte>>;

/// The outcome of one damage.
enum class Found : std::uint8_t { kByReading, kByVerify, kHarmless, kUnread, kSilent };

void Count(DamageCounts& counts, Found outcome) {
  ++counts.cases;
  counts.by_reading += outcome == Found::kByReading ? 1 : 0;
  counts.by_verify += outcome == Found::kByVerify ? 1 : 0;
  counts.harmless += outcome == Found::kHarmless ? 1 : 0;
  counts.unread += outcome == Found::kUnread ? 1 : 0;
  counts.silent += outcome == Found::kSilent ? 1 : 0;
}

void PrintCase(const char* what, const std::string& name, std::uint64_t count) {
  if (count > 20) return;
  std::printf("%s %s\n", what, name.c_str());
  std::fflush(stdout);
}

/// Counts the outcomes of several threads.
class Tally {
 public:
  /// `repeat` returns a text that describes the case and how to repeat it.
  void Add(const std::string& file, Found outcome, const std::function<std::string()>& repeat) {
    const MutexLock lock(mutex_);
    Count(counts_, outcome);
    Count(files_[file], outcome);
    if (outcome == Found::kSilent) PrintCase("SILENT", repeat(), counts_.silent);
  }
  void AddUnnamed(const std::string& repeat) {
    const MutexLock lock(mutex_);
    PrintCase("UNNAMED", repeat, ++counts_.unnamed);
  }
  void Print() {
    const MutexLock lock(mutex_);
    for (const auto& [file, counts] : files_)
      std::printf(
          "BITS %s: %llu, found by reading %llu, by verify %llu, harmless %llu, unread %llu\n",
          file.c_str(), static_cast<unsigned long long>(counts.cases),
          static_cast<unsigned long long>(counts.by_reading),
          static_cast<unsigned long long>(counts.by_verify),
          static_cast<unsigned long long>(counts.harmless),
          static_cast<unsigned long long>(counts.unread));
  }
  /// Returns whether a run that stops at the first silent damage may stop.
  bool Enough(bool stop_at_first) {
    const MutexLock lock(mutex_);
    return stop_at_first && counts_.silent > 0;
  }
  DamageCounts counts() {
    const MutexLock lock(mutex_);
    return counts_;
  }

 private:
  Mutex mutex_;
  DamageCounts counts_ RHIZOME_GUARDED_BY(mutex_);
  std::map<std::string, DamageCounts> files_ RHIZOME_GUARDED_BY(mutex_);
};

bool VerifyFinds(FileSystem& fs, std::string* said) {
  const auto report = VerifyStore(fs, kStorePath, JobControl());
  if (said != nullptr && !report) *said += report.error().message() + "\n";
  if (said != nullptr && report)
    for (const Damage& damage : report->damaged) *said += damage.file + ": " + damage.what + "\n";
  return !report || !report->ok();
}

/// Opens the store again and reads all of it, as a reader and then as a writer, and verifies it.
/// `said`, if given, receives the messages about damage; verify then runs in any case.
Found OpenAndRead(const FakeImage& damaged, const std::string& description,
                  std::string* said = nullptr) {
  bool found = false;
  for (const Store::Mode mode : {Store::Mode::kRead, Store::Mode::kWrite}) {
    StoreDisk disk(damaged);
    const auto store = Store::Open(disk, kStorePath, mode);
    const auto seen = store ? Describe(**store) : Result<std::string>(Fail(store.error()));
    if (seen && *seen != description) return Found::kSilent;
    const auto arrays = store ? DescribeArrays(**store) : Result<std::string>(Fail(store.error()));
    if (arrays && description.find(*arrays) == std::string::npos) return Found::kSilent;
    if (!seen && said != nullptr) *said += seen.error().message() + "\n";
    found = found || !seen;
  }
  if (found && said == nullptr) return Found::kByReading;
  StoreDisk disk(damaged);
  const bool verified = VerifyFinds(disk, said);
  if (found) return Found::kByReading;
  return verified ? Found::kByVerify : Found::kHarmless;
}

/// Returns whether the messages name one of the files, or the catalogue for files of RocksDB.
bool Names(const std::string& said, const std::vector<std::string>& files) {
  const std::string store = kStorePath.native() + "/";
  return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    std::string part = file.substr(store.size());
    if (part.starts_with("catalog/")) part = "catalog";
    constexpr std::string_view kGenerations = "generations/000001/";
    if (part.starts_with(kGenerations)) part = part.substr(kGenerations.size());
    return said.find(part) != std::string::npos;
  });
}

/// Returns the part of a path below the current generation's folder; empty for other files.
std::string InGeneration(const std::string& file, const Store& store) {
  const std::string folder = store.GenerationFolder().string() + "/";
  if (!file.starts_with(folder) || file.find("MANIFEST-") != std::string::npos) return "";
  return file.substr(folder.size());
}

/// Reads a file of the generation through an open store. Returns false after an error.
bool ReadsWell(const Store& store, const std::string& relative) {
  std::string name(ArrayOfFile(relative));
  if (name.empty()) return Graph::Open(store).has_value();
  if (name.ends_with(".crc32c")) name.resize(name.size() - 7);
  if (store.manifest().FindArray(name) == nullptr) {
    // Only verify reads a coordinate, as a whole file, so its hash is compared as by verify.
    const FileEntry* const file = store.manifest().FindFile(relative);
    if (file == nullptr) return true;
    const auto bytes = ReadWholeFile(store.fs(), store.GenerationFolder() / relative, 1 << 20);
    return bytes && Xxh3(*bytes) == file->xxh3;
  }
  const auto array = store.OpenArray(name);
  if (!array) return false;
  const ArrayEntry& entry = (*array)->entry();
  std::vector<std::byte> rows(entry.rows * entry.row_bytes());
  return (*array)->ReadRows(0, entry.rows, rows).ok();
}

/// Returns all rows of a raw array as gathered by RowReader, or nullopt after an error.
std::optional<std::vector<std::byte>> GatherRows(const Store& store, const std::string& name) {
  const auto array = store.OpenArray(name);
  const auto sidecar = store.OpenArray(SidecarName(name));
  if (!array || !sidecar) return std::nullopt;
  const auto reader = RowReader::Open(**array, **sidecar, {});
  if (!reader) return std::nullopt;
  const ArrayEntry& entry = (*array)->entry();
  std::vector<std::byte> rows(entry.rows * entry.row_bytes());
  std::vector<RowTarget> targets;
  for (std::uint64_t row = 0; row < entry.rows; ++row)
    targets.push_back({static_cast<std::int64_t>(row), rows.data() + row * entry.row_bytes()});
  if (!(*reader)->Read(targets).ok()) return std::nullopt;
  return rows;
}

/// Returns the array whose rows a gather verifies, if `relative` is one of its files; else empty.
std::string RowArrayOf(const Store& store, const std::string& relative) {
  std::string name(ArrayOfFile(relative));
  if (name.ends_with(".crc32c")) name.resize(name.size() - 7);
  const ArrayEntry* const entry = store.manifest().FindArray(name);
  return entry != nullptr && entry->layout == ArrayLayout::kRow ? name : "";
}

/// Returns every file of the store that is opened by verify, or by a reader or a writer that reads
/// everything.
std::set<std::string> FilesThatAreOpened(const SmallStore& store) {
  StoreDisk disk(store.now);
  const auto verify = [&] { EXPECT_OK(VerifyStore(disk, kStorePath, JobControl())); };
  EXPECT_OK(Describe(disk, kStorePath));
  verify();
  {
    const auto writer = Store::Open(disk, kStorePath, Store::Mode::kWrite);
    EXPECT_OK(writer);
    if (writer) EXPECT_OK(Describe(**writer));
  }
  verify();
  std::set<std::string> out;
  for (const std::string& operation : disk.Trace())
    if (operation.starts_with("open")) out.insert(operation.substr(operation.find(' ') + 1));
  return out;
}

/// A thread's copy of the store, which remains open while its files are damaged and restored.
class Flipper {
 public:
  Flipper(const SmallStore& store, const FlipPlan& plan, Tally& tally)
      : store_(store), plan_(plan), tally_(tally), disk_(store.now) {
    auto opened = Store::Open(disk_, kStorePath, Store::Mode::kRead);
    if (opened) open_ = *std::move(opened);
  }

  void FlipAll(const std::string& file, bool unread, std::uint64_t first_bit,
               std::uint64_t end_bit) {
    const std::string relative = open_ ? InGeneration(file, *open_) : "";
    const std::string rows = relative.empty() ? "" : RowArrayOf(*open_, relative);
    const std::uint64_t first = (first_bit + plan_.seed) % plan_.stride;
    for (std::uint64_t bit = first_bit + (plan_.stride - first) % plan_.stride;
         bit < end_bit && !tally_.Enough(plan_.stop_at_first); bit += plan_.stride) {
      const Found outcome = unread ? FlipUnread(file, bit) : Flip(file, relative, rows, bit);
      tally_.Add(file, outcome,
                 [&] { return fmt::format("bit {} of {}: RHIZOME_FLIP={}", bit, file, file); });
    }
  }

 private:
  bool OneIn(std::uint64_t stride, std::uint64_t bit) const {
    return (bit + plan_.seed) / plan_.stride % stride == 0;
  }

  Found FlipUnread(const std::string& file, std::uint64_t bit) {
    if (!OneIn(plan_.unread_stride, bit)) return Found::kUnread;
    const Found outcome = Afresh(file, bit);
    return outcome == Found::kHarmless ? Found::kUnread : outcome;
  }

  Found Afresh(const std::string& file, std::uint64_t bit) {
    StoreDisk copy(store_.now);
    EXPECT_OK(copy.FlipBit(file, bit));
    return OpenAndRead(copy.Image(), store_.description);
  }

  Found Flip(const std::string& file, const std::string& relative, const std::string& rows,
             std::uint64_t bit) {
    if (relative.empty()) return Afresh(file, bit);
    EXPECT_OK(disk_.FlipBit(file, bit));
    const bool well = ReadsWell(*open_, relative);
    const auto gathered = rows.empty() ? std::nullopt : GatherRows(*open_, rows);
    EXPECT_OK(disk_.FlipBit(file, bit));
    if (gathered && *gathered != *GatherRows(*open_, rows)) return Found::kSilent;
    if (well && (rows.empty() || gathered)) return Afresh(file, bit);
    const bool found = !OneIn(plan_.afresh_stride, bit) || Afresh(file, bit) != Found::kHarmless;
    return found ? Found::kByReading : Found::kSilent;
  }

  const SmallStore& store_;
  const FlipPlan& plan_;
  Tally& tally_;
  StoreDisk disk_;
  std::unique_ptr<Store> open_;
};

Files FilesOf(const FakeImage& image) {
  Files files = StoreDisk(image).Files();
  std::erase_if(files,
                [](const auto& file) { return !file.first.starts_with(kStorePath.native()); });
  return files;
}

using Bytes = std::vector<std::byte>;

/// Returns an injury that applies `change` to a file's bytes.
Injury Change(std::string name, const std::string& file, const std::shared_ptr<const Bytes>& from,
              std::function<void(Bytes&)> change) {
  return {std::move(name), {file}, [file, from, change = std::move(change)](FakeFileSystem& disk) {
            Bytes bytes = *from;
            change(bytes);
            EXPECT_OK(disk.Overwrite(file, std::move(bytes)));
          }};
}

/// Lists the injuries of a store's files.
class InjuryList {
 public:
  explicit InjuryList(const Files& files) {
    for (const auto& [file, bytes] : files)
      files_.emplace_back(file, std::make_shared<const Bytes>(bytes));
  }

  void Cut(std::uint64_t stride, const std::set<std::string>& opened) {
    constexpr std::uint64_t kUnreadStride = 512;
    for (const auto& [file, bytes] : files_) {
      const std::uint64_t step = opened.contains(file) ? stride : std::max(stride, kUnreadStride);
      for (std::uint64_t size = 0; size < bytes->size(); size += step)
        out_.push_back(Change(fmt::format("{} cut at {}", file, size), file, bytes,
                              [size](Bytes& left) { left.resize(size); }));
    }
  }

  void SwapPieces() {
    constexpr std::size_t kMinPiece = 16;
    for (const auto& [file, bytes] : files_) {
      const std::size_t piece = std::max(kMinPiece, bytes->size() / 10);
      for (std::size_t a = 0; a + piece <= bytes->size(); a += piece) {
        for (std::size_t b = a + piece; b + piece <= bytes->size(); b += piece) {
          const auto at = [&bytes = bytes](std::size_t offset) {
            return bytes->begin() + static_cast<std::ptrdiff_t>(offset);
          };
          if (std::equal(at(a), at(a + piece), at(b))) continue;
          out_.push_back(Change(fmt::format("{}: pieces at {} and {} swapped", file, a, b), file,
                                bytes, [a, b, piece](Bytes& out) {
                                  const auto from = out.begin() + static_cast<std::ptrdiff_t>(a);
                                  std::swap_ranges(from, from + static_cast<std::ptrdiff_t>(piece),
                                                   out.begin() + static_cast<std::ptrdiff_t>(b));
                                }));
        }
      }
    }
  }

  void Lengthen() {
    for (const auto& [file, bytes] : files_) {
      for (const std::size_t more : {1, 7, 64, 512, 4096}) {
        for (const bool zeros : {false, true})
          out_.push_back(Change(
              fmt::format("{} longer by {} {}", file, more, zeros ? "zeros" : "bytes"), file, bytes,
              [more, zeros](Bytes& longer) {
                for (std::size_t i = 0; i < more; ++i)
                  longer.push_back(zeros ? std::byte{0} : static_cast<std::byte>(i * 37 + 11));
              }));
      }
    }
  }

  void Exchange() {
    for (const auto& [a, of_a] : files_) {
      for (const auto& [b, of_b] : files_) {
        if (a == b || *of_a == *of_b) continue;
        out_.push_back(Change(fmt::format("{} replaced by {}", a, b), a, of_b, [](Bytes&) {}));
        if (b < a) continue;
        out_.push_back({fmt::format("{} and {} swapped", a, b),
                        {a, b},
                        [a = a, b = b, of_a = of_a, of_b = of_b](FakeFileSystem& disk) {
                          EXPECT_OK(disk.Overwrite(a, *of_b));
                          EXPECT_OK(disk.Overwrite(b, *of_a));
                        }});
      }
    }
  }

  void RemoveAndCopy() {
    for (const auto& [file, bytes] : files_) {
      out_.push_back({file + " removed", {file}, [file = file](FakeFileSystem& disk) {
                        EXPECT_OK(disk.RemoveFile(file));
                      }});
      out_.push_back({file + " twice", {file}, [file = file, bytes = bytes](FakeFileSystem& disk) {
                        EXPECT_OK(WriteWholeFile(disk, file + ".copy", *bytes));
                      }});
    }
  }

  void TakeBack(const Files& earlier) {
    for (const auto& [file, bytes] : files_) {
      const auto at = earlier.find(file);
      if (at == earlier.end() || at->second == *bytes) continue;
      out_.push_back(Change(file + " as it was earlier", file,
                            std::make_shared<const Bytes>(at->second), [](Bytes&) {}));
    }
  }

  std::vector<Injury> Finish() { return std::move(out_); }

 private:
  std::vector<std::pair<std::string, std::shared_ptr<const Bytes>>> files_;
  std::vector<Injury> out_;
};

}  // namespace

std::vector<Injury> ListInjuries(const SmallStore& store, std::uint64_t stride) {
  InjuryList list(FilesOf(store.now));
  list.Cut(stride, FilesThatAreOpened(store));
  list.SwapPieces();
  list.Lengthen();
  list.Exchange();
  list.RemoveAndCopy();
  list.TakeBack(FilesOf(store.earlier));
  return list.Finish();
}

DamageCounts Injure(const SmallStore& store, const std::vector<Injury>& injuries,
                    bool stop_at_first) {
  PrepareProcess();
  const char* const only = std::getenv("RHIZOME_INJURY");
  Tally tally;
  std::atomic<std::size_t> next{0};
  OnAllProcessors([&] {
    for (std::size_t at = next++; at < injuries.size() && !tally.Enough(stop_at_first);
         at = next++) {
      const Injury& injury = injuries[at];
      if (only != nullptr && injury.name.find(only) == std::string::npos) continue;
      StoreDisk disk(store.now);
      injury.inflict(disk);
      std::string said;
      const Found outcome = OpenAndRead(disk.Image(), store.description, &said);
      const auto repeat = [&] {
        return fmt::format("RHIZOME_INJURY='{}'{}{}", injury.name, said.empty() ? "" : ": ", said);
      };
      tally.Add("", outcome, repeat);
      const bool found = outcome == Found::kByReading || outcome == Found::kByVerify;
      if (found && !Names(said, injury.files)) tally.AddUnnamed(repeat());
    }
  });
  return tally.counts();
}

DamageCounts FlipOpenLogs(const SmallStore& store, std::uint64_t stride, std::uint64_t seed,
                          bool stop_at_first) {
  PrepareProcess();
  struct Bit {
    std::string file;
    std::uint64_t bit;
  };
  std::vector<Bit> bits;
  for (const auto& [file, bytes] : FilesOf(store.open)) {
    if (!file.ends_with(".log") && file.find("/catalog/MANIFEST-") == std::string::npos) continue;
    for (std::uint64_t bit = seed % stride; bit < bytes.size() * 8; bit += stride)
      bits.push_back({file, bit});
  }
  Tally tally;
  std::atomic<std::size_t> next{0};
  OnAllProcessors([&] {
    for (std::size_t at = next++; at < bits.size() && !tally.Enough(stop_at_first); at = next++) {
      StoreDisk disk(store.open);
      EXPECT_OK(disk.FlipBit(bits[at].file, bits[at].bit));
      tally.Add(bits[at].file, OpenAndRead(disk.Image(), store.open_description), [&] {
        return fmt::format("bit {} of {}, not closed", bits[at].bit, bits[at].file);
      });
    }
  });
  return tally.counts();
}

DamageCounts FlipBits(const SmallStore& store, const FlipPlan& plan) {
  PrepareProcess();
  struct Part {
    std::string file;
    bool unread;
    std::uint64_t first;
    std::uint64_t end;
  };
  constexpr std::uint64_t kPartBits = 8192;
  std::vector<Part> parts;
  const std::set<std::string> opened = FilesThatAreOpened(store);
  for (const auto& [file, bytes] : FilesOf(store.now)) {
    if (file.find(plan.only) == std::string::npos) continue;
    for (std::uint64_t bit = 0; bit < bytes.size() * 8; bit += kPartBits)
      parts.push_back({file, !opened.contains(file), bit,
                       std::min<std::uint64_t>(bit + kPartBits, bytes.size() * 8)});
  }
  Tally tally;
  std::atomic<std::size_t> next{0};
  OnAllProcessors([&] {
    Flipper flipper(store, plan, tally);
    for (std::size_t at = next++; at < parts.size(); at = next++)
      flipper.FlipAll(parts[at].file, parts[at].unread, parts[at].first, parts[at].end);
  });
  if (plan.print) tally.Print();
  return tally.counts();
}

}  // namespace rhizome::testing
