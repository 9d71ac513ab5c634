// Checks of a store's environment: links and unmarked folders, files of a wrong length, forks, a
// system that starts no threads.

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/store.h"
#include "storage/array/row_sums.h"
#include "storage/array_fixture.h"
#include "storage/io/job_folder.h"
#include "testing/care.h"
#include "testing/child_process.h"
#include "testing/graph_model.h"
#include "testing/test_store.h"

namespace rhizome::testing {
namespace {

FileSystem& DiskAround() { return FileSystem::Posix(); }

/// Prevents new threads during its lifetime, by a default stack size that exceeds the address
/// space.
class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_attr_t huge;
    pthread_getattr_default_np(&before_);
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoNewThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_ = {};
};

Status OpenForWriting(const Path& store) {
  return AsStatus(Store::Open(DiskAround(), store, Store::Mode::kWrite));
}

}  // namespace

Complaint LinksAreNotFollowed() {
  TempDir dir;
  const Path store = dir / "s";
  const Path kept = dir / "elsewhere/job/file";
  if (!MakeStore(DiskAround(), store).ok()) return "no store";
  std::filesystem::create_directory(dir / "elsewhere");
  if (!ClaimJobFolder(DiskAround(), dir / "elsewhere/job")) return "no job";
  std::ofstream(kept) << "somebody else's";
  std::filesystem::create_directory_symlink(dir / "elsewhere", store / "scratch");
  const Status opened = OpenForWriting(store);
  if (!std::filesystem::exists(kept)) return "what a link points at was removed";
  if (opened.ok()) return "a store is opened whose scratch folder is a link";
  std::filesystem::remove(store / "scratch");
  std::filesystem::rename(store / "generations/000001", dir / "generation");
  std::filesystem::create_directory_symlink(dir / "generation", store / "generations/000001");
  if (Store::Open(DiskAround(), store, Store::Mode::kRead)) return "a generation is read by a link";
  return std::nullopt;
}

Complaint UnmarkedFoldersStay() {
  TempDir dir;
  const Path store = dir / "s";
  const Path kept = store / "scratch/mine/file";
  if (!MakeStore(DiskAround(), store).ok()) return "no store";
  std::filesystem::create_directories(kept.parent_path());
  std::ofstream(kept) << "no job's";
  if (const Status opened = OpenForWriting(store); !opened.ok()) return opened.ToString();
  if (!std::filesystem::exists(kept)) return "a folder in scratch that no job has marked is gone";
  return std::nullopt;
}

Complaint ClaimedLengthsAreCompared() {
  TempDir dir;
  const Path store = dir / "s";
  if (!MakeStore(DiskAround(), store).ok()) return "no store";
  std::filesystem::resize_file(store / "generations/000001/sums/feat.crc32c/c.0.0", 8);
  const auto opened = Store::Open(DiskAround(), store, Store::Mode::kRead);
  if (!opened) return opened.error().ToString();
  const auto array = (*opened)->OpenArray("feat");
  auto sums = (*opened)->OpenArray("feat.crc32c");
  if (!array || !sums) return std::nullopt;  // rejected earlier
  const auto loaded = RowSums::Open((*array)->entry(), *std::move(sums));
  if (loaded) return "memory is taken for sums that are not there";
  if (loaded.error().code() != StatusCode::kCorruption) return loaded.error().ToString();
  return std::nullopt;
}

Complaint ForksAreNoticed() {
  TempDir dir;
  const Path store = dir / "s";
  if (!MakeStore(DiskAround(), store).ok()) return "no store";
  const auto reader = Store::Open(DiskAround(), store, Store::Mode::kRead);
  if (!reader) return reader.error().ToString();
  const int how = RunForked(
      [&] { return (*reader)->Refresh().code() == StatusCode::kInvalidArgument ? 0 : 1; }, 20);
  if (how != 0) return "a child reads the catalogue through what it inherited, or there was none";
  const Status refreshed = (*reader)->Refresh();
  return refreshed.ok() ? std::nullopt : Complaint(refreshed.ToString());
}

Complaint ForksMayExit() {
  TempDir dir;
  const Path path = dir / "s";
  if (!MakeStore(DiskAround(), path).ok()) return "no store";
  const auto store = Store::Open(DiskAround(), path, Store::Mode::kWrite);
  if (!store) return store.error().ToString();
  ::usleep(200'000);  // gives RocksDB's thread time to go to sleep
  const auto exit = [&]() -> int { std::exit((*store)->OpenArray("feat") ? 0 : 1); };
  const int how = RunForked(exit, 5);
  return how == 0 ? std::nullopt : Complaint("a child that ends by exit() does not end");
}

Complaint ThreadsThatDoNotStartAreErrors() {
  TempDir dir;
  const Path path = dir / "s";
  std::mt19937_64 rng(1);
  BuildOptions options;
  options.partition.partitions = 2;
  if (const Status built = BuildStore(path, RandomGraph(rng, {}), options); !built.ok())
    return built.ToString();
  const auto store = Store::Open(DiskAround(), path, Store::Mode::kWrite);
  if (!store) return store.error().ToString();
  const auto graph = Graph::Open(**store);
  if (!graph) return graph.error().ToString();
  WriteBatch batch;
  batch.PutEdge(ExternalId(std::int64_t{0}), ExternalId(std::int64_t{1}));
  if (const auto written = (*graph)->Write(batch); !written) return written.error().ToString();
  const std::uint64_t before = (*graph)->Snapshot()->store().manifest().generation;
  const auto compacted = [&] {
    const NoNewThreads none;
    return (*graph)->Compact({}, JobControl());
  }();
  const bool done = (*graph)->Snapshot()->store().manifest().generation > before;
  if (compacted.has_value() != done) return "a compaction that was not done says that it was";
  if (!compacted && compacted.error().code() != StatusCode::kOutOfMemory)
    return compacted.error().ToString();
  const auto again = (*graph)->Compact({}, JobControl());
  if (!again) return again.error().ToString();
  if (!again->compacted && !compacted) return "the next compaction does nothing";
  return std::nullopt;
}

}  // namespace rhizome::testing
