#include "reliability/damage_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "reliability/description.h"
#include "reliability/process.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/verify_store.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/row_reader.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

using Files = std::map<std::string, std::vector<std::byte>>;

/// What became of one damage.
enum class Outcome : std::uint8_t { kByReading, kByVerify, kHarmless, kSilent };

/// Counts outcomes of many threads.
class Tally {
 public:
  void Add(Outcome outcome, const std::string& name) {
    const MutexLock lock(mutex_);
    ++counts_.cases;
    counts_.by_reading += outcome == Outcome::kByReading ? 1 : 0;
    counts_.by_verify += outcome == Outcome::kByVerify ? 1 : 0;
    counts_.harmless += outcome == Outcome::kHarmless ? 1 : 0;
    if (outcome != Outcome::kSilent) return;
    if (++counts_.silent > 20) return;
    std::printf("SILENT %s\n", name.c_str());
    std::fflush(stdout);
  }
  /// May those that stop at the first find stop?
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
};

bool VerifyFinds(FileSystem& fs) {
  const auto report = VerifyStore(fs, kStorePath, JobControl());
  return !report || !report->ok();
}

/// Opens the store afresh and reads all of it. By a writer, as a reader looks at a damaged
/// catalogue several times, in case that somebody is at work.
Outcome OpenAndRead(const FakeImage& damaged, const std::string& description) {
  {
    StoreDisk disk(damaged);
    const auto store = Store::Open(disk, kStorePath, Store::Mode::kWrite);
    if (!store) return Outcome::kByReading;
    const auto seen = Describe(**store);
    if (!seen) return Outcome::kByReading;
    if (*seen != description) return Outcome::kSilent;
  }
  StoreDisk disk(damaged);
  return VerifyFinds(disk) ? Outcome::kByVerify : Outcome::kHarmless;
}

/// The part of a path below the current generation's folder; empty for other files.
std::string InGeneration(const std::string& file, const Store& store) {
  const std::string folder = store.GenerationFolder().string() + "/";
  if (!file.starts_with(folder) || file.find("MANIFEST-") != std::string::npos) return "";
  return file.substr(folder.size());
}

/// Reads a file of the generation as readers do that have the store open. False: an error.
bool ReadsWell(const Store& store, const std::string& relative) {
  if (!relative.starts_with("arrays/")) return Graph::Open(store).has_value();
  std::string name = Path(relative.substr(7)).begin()->string();
  if (name.ends_with(".crc32c")) name.resize(name.size() - 7);
  if (store.manifest().FindArray(name) == nullptr) return true;
  const auto array = store.OpenArray(name);
  if (!array) return false;
  const ArrayEntry& entry = (*array)->entry();
  std::vector<std::byte> rows(entry.rows * entry.row_bytes());
  return (*array)->ReadRows(0, entry.rows, rows).ok();
}

/// What a gather of all rows of a raw array brings; nothing after an error.
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

/// The array of which a gather checks each row, if `relative` is a file of one.
std::string RowArrayOf(const Store& store, const std::string& relative) {
  if (!relative.starts_with("arrays/")) return "";
  std::string name = Path(relative.substr(7)).begin()->string();
  if (name.ends_with(".crc32c")) name.resize(name.size() - 7);
  const ArrayEntry* const entry = store.manifest().FindArray(name);
  return entry != nullptr && entry->layout == ArrayLayout::kRow ? name : "";
}

/// One thread's store, which stays open while its files are damaged and mended.
class Flipper {
 public:
  Flipper(const SmallStore& store, const FlipPlan& plan, Tally& tally)
      : store_(store), plan_(plan), tally_(tally), disk_(store.now) {
    auto opened = Store::Open(disk_, kStorePath, Store::Mode::kRead);
    if (opened) open_ = *std::move(opened);
  }

  void FlipAll(const std::string& file, std::uint64_t first_bit, std::uint64_t end_bit) {
    const std::string relative = open_ ? InGeneration(file, *open_) : "";
    const bool unread = relative.ends_with("zarr.json") ||
                        file.find("/catalog/OPTIONS") != std::string::npos ||
                        file.ends_with("/IDENTITY") || file.ends_with("/LOCK");
    const std::uint64_t stride = unread             ? plan_.unread_stride
                                 : relative.empty() ? plan_.head_stride
                                                    : plan_.stride;
    const std::uint64_t first = (first_bit + plan_.seed) % stride;
    for (std::uint64_t bit = first_bit + (stride - first) % stride;
         bit < end_bit && !tally_.Enough(plan_.stop_at_first); bit += stride)
      tally_.Add(Flip(file, relative, bit), fmt::format("bit {} of {}", bit, file));
  }

 private:
  Outcome Flip(const std::string& file, const std::string& relative, std::uint64_t bit) {
    if (!relative.empty()) {
      EXPECT_OK(disk_.FlipBit(file, bit));
      const bool well = ReadsWell(*open_, relative);
      const std::string name = RowArrayOf(*open_, relative);
      const auto rows = name.empty() ? std::nullopt : GatherRows(*open_, name);
      EXPECT_OK(disk_.FlipBit(file, bit));
      if (rows && *rows != *GatherRows(*open_, name)) return Outcome::kSilent;
      if (!well) return Outcome::kByReading;
    }
    StoreDisk copy(store_.now);
    EXPECT_OK(copy.FlipBit(file, bit));
    return OpenAndRead(copy.Image(), store_.description);
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

void CutFiles(const Files& files, std::uint64_t stride, std::vector<Injury>& out) {
  for (const auto& [file, bytes] : files) {
    for (std::uint64_t size = 0; size < bytes.size(); size += stride) {
      out.push_back({fmt::format("{} cut at {}", file, size), [file = file, size](auto& disk) {
                       auto left = disk.Files().at(file);
                       left.resize(size);
                       EXPECT_OK(disk.Overwrite(file, std::move(left)));
                     }});
    }
  }
}

void SwapFiles(const Files& files, std::vector<Injury>& out) {
  for (auto a = files.begin(); a != files.end(); ++a) {
    for (auto b = std::next(a); b != files.end(); ++b) {
      if (a->second == b->second) continue;
      out.push_back({fmt::format("{} and {} swapped", a->first, b->first), [a, b](auto& disk) {
                       EXPECT_OK(disk.Overwrite(a->first, b->second));
                       EXPECT_OK(disk.Overwrite(b->first, a->second));
                     }});
    }
  }
}

void LengthenFiles(const Files& files, std::vector<Injury>& out) {
  for (const auto& [file, bytes] : files) {
    for (const std::size_t more : {1, 7, 512, 4096}) {
      out.push_back({fmt::format("{} longer by {}", file, more), [&file, &bytes, more](auto& disk) {
                       auto longer = bytes;
                       for (std::size_t i = 0; i < more; ++i)
                         longer.push_back(static_cast<std::byte>(i * 37 + 11));
                       EXPECT_OK(disk.Overwrite(file, std::move(longer)));
                     }});
    }
  }
}

}  // namespace

std::vector<Injury> ListInjuries(const SmallStore& store, std::uint64_t stride) {
  static Files files;
  files = FilesOf(store.now);
  std::vector<Injury> out;
  CutFiles(files, stride, out);
  SwapFiles(files, out);
  LengthenFiles(files, out);
  for (const auto& [file, bytes] : files)
    out.push_back(
        {file + " removed", [&file = file](auto& disk) { EXPECT_OK(disk.RemoveFile(file)); }});
  for (const auto& [file, bytes] : files)
    out.push_back({file + " twice", [&file = file, &bytes = bytes](auto& disk) {
                     EXPECT_OK(WriteWholeFile(disk, file + ".copy", bytes));
                   }});
  for (const auto& [file, bytes] : FilesOf(store.earlier)) {
    if (!files.contains(file) || files.at(file) == bytes) continue;
    out.push_back({file + " as it was earlier", [file = file, bytes = bytes](auto& disk) {
                     EXPECT_OK(disk.Overwrite(file, bytes));
                   }});
  }
  return out;
}

DamageCounts Injure(const SmallStore& store, const std::vector<Injury>& injuries,
                    bool stop_at_first) {
  PrepareProcess();
  Tally tally;
  std::atomic<std::size_t> next{0};
  OnAllProcessors([&] {
    for (std::size_t at = next++; at < injuries.size() && !tally.Enough(stop_at_first);
         at = next++) {
      StoreDisk disk(store.now);
      injuries[at].inflict(disk);
      tally.Add(OpenAndRead(disk.Image(), store.description), injuries[at].name);
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
      tally.Add(OpenAndRead(disk.Image(), store.open_description),
                fmt::format("bit {} of {}, not closed", bits[at].bit, bits[at].file));
    }
  });
  return tally.counts();
}

DamageCounts FlipBits(const SmallStore& store, const FlipPlan& plan) {
  PrepareProcess();
  struct Part {
    std::string file;
    std::uint64_t first;
    std::uint64_t end;
  };
  constexpr std::uint64_t kPartBits = 8192;
  std::vector<Part> parts;
  for (const auto& [file, bytes] : FilesOf(store.now)) {
    if (file.find(plan.only) == std::string::npos) continue;
    for (std::uint64_t bit = 0; bit < bytes.size() * 8; bit += kPartBits)
      parts.push_back({file, bit, std::min<std::uint64_t>(bit + kPartBits, bytes.size() * 8)});
  }
  Tally tally;
  std::atomic<std::size_t> next{0};
  OnAllProcessors([&] {
    Flipper flipper(store, plan, tally);
    for (std::size_t at = next++; at < parts.size(); at = next++)
      flipper.FlipAll(parts[at].file, parts[at].first, parts[at].end);
  });
  return tally.counts();
}

}  // namespace rhizome::testing
