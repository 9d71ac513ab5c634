#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "index/generation/graph_builder.h"
#include "rhizome/backup.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/maintenance.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

// Replaces each file of a store, and of a folder of backups, by something that is not a regular
// file.

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::RandomGraph;
using testing::TempDir;
using testing::UpdateModel;

FileSystem& posix = FileSystem::Posix();

using VerifyFunction = std::function<Result<VerifyReport>(const Path&)>;

Result<VerifyReport> VerifyAll(const Path& store) {
  return VerifyStore(posix, store, JobControl());
}
Result<VerifyReport> VerifyAllBackups(const Path& folder) {
  return VerifyBackups(posix, folder, JobControl());
}

std::vector<std::string> FilesBelow(const Path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files.push_back(entry.path().lexically_relative(folder).generic_string());
  std::sort(files.begin(), files.end());
  return files;
}

class VerifyKindsTest : public ::testing::Test {
 protected:
  /// Creates a store with arrays, a kept earlier generation, and commits after the last compaction.
  void SetUp() override {
    GraphInput input = RandomGraph(rng_, {.edge_types = 2,
                                          .weighted = rng_() % 2 == 0,
                                          .undirected = rng_() % 2 == 0,
                                          .id_kind = ExternalIdKind::kInteger});
    UpdateModel::AddRows(input);
    BuildOptions options;
    options.partition.partitions = 2;
    const std::vector<std::int64_t> ids = input.integer_ids;
    ASSERT_OK(BuildStore(store_, std::move(input), options));
    const auto store = Store::Open(posix, store_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    for (int commit = 0; commit < 2; ++commit) {
      WriteBatch batch;
      batch.PutEdge(ids[rng_() % ids.size()], ids[rng_() % ids.size()]);
      ASSERT_OK((*graph)->Write(batch));
      if (commit > 0) continue;
      ASSERT_OK((*graph)->Compact({.keep_generations = 1}, JobControl()));
    }
  }

  std::string Draw(std::initializer_list<const char*> from) {
    return std::data(from)[rng_() % from.size()];
  }

  /// Creates an object of the given kind at `path`, which must not exist. A link may point to
  /// `good`.
  void Put(const std::string& kind, const Path& path, const Path& good) {
    if (kind == "folder") std::filesystem::create_directory(path);
    if (kind == "pipe") {
      ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    }
    if (kind == "link") std::filesystem::create_symlink(good, path);
    if (kind == "link to nothing") std::filesystem::create_symlink("nothing", path);
    if (kind == "link without end") std::filesystem::create_symlink("/dev/zero", path);
    if (kind == "link to a folder") std::filesystem::create_symlink(dir_.path(), path);
  }

  /// Expects a report of damage that names `file`.
  static void ExpectNamed(const VerifyFunction& verify, const Path& folder,
                          const std::string& file) {
    const auto report = verify(folder);
    ASSERT_OK(report);
    EXPECT_STATUS(report->verdict(), kCorruption);
    const bool named = std::any_of(report->damaged.begin(), report->damaged.end(),
                                   [&](const Damage& damage) { return damage.file == file; });
    std::string all;
    for (const Damage& damage : report->damaged) all += damage.file + ": " + damage.what + "\n";
    EXPECT_TRUE(named) << all;
  }

  void ExpectEachFileIsMissed(const VerifyFunction& verify, const Path& folder) {
    std::vector<std::string> files = FilesBelow(folder);
    std::shuffle(files.begin(), files.end(), rng_);
    for (const std::string& file : files) {
      const Path place = folder / file, aside = dir_ / "aside";
      std::filesystem::rename(place, aside);
      for (const std::string& kind :
           {std::string("folder"), std::string("pipe"),
            Draw({"link", "link to nothing", "link without end", "link to a folder"})}) {
        SCOPED_TRACE(file + " is a " + kind);
        ASSERT_NO_FATAL_FAILURE(Put(kind, place, aside));
        ExpectNamed(verify, folder, file);
        std::filesystem::remove(place);
      }
      std::filesystem::rename(aside, place);
    }
    const auto report = verify(folder);
    ASSERT_OK(report);
    EXPECT_TRUE(report->ok()) << report->verdict().ToString();
  }

  std::mt19937_64 rng_{testing::TestSeed()};
  TempDir dir_;
  Path store_ = dir_ / "s.rz";
};

TEST_F(VerifyKindsTest, WhatIsNoFileInThePlaceOfAStoresFileIsNamed) {
  ASSERT_GT(FilesBelow(store_).size(), 30u);
  ExpectEachFileIsMissed(VerifyAll, store_);
}

TEST_F(VerifyKindsTest, WhatIsNoFileInThePlaceOfABackupsFileIsNamed) {
  const auto backup = [&] { return BackupStore(posix, store_, dir_ / "b", {}, JobControl()); };
  ASSERT_OK(backup());
  ExpectEachFileIsMissed(VerifyAllBackups, dir_ / "b");
}

// If the next writer cannot remove what a killed writer left, verify reports it as damage, not as a
// leftover.
TEST_F(VerifyKindsTest, WhatAWriterDoesNotRemoveIsNamed) {
  for (const char* file : {"generations/000002/MANIFEST-000009", "generations/000002/left",
                           "generations/000002/arrays/left", "generations/000001/left",
                           "generations/000009/MANIFEST-000001", "generations/000009/topology/left",
                           "scratch/left", "scratch/killed/left", "catalog/left"}) {
    const std::string kind = Draw({"pipe", "link to nothing", "link to a folder"});
    SCOPED_TRACE(file + (" is a " + kind));
    for (const char* folder : {"generations/000009/topology", "scratch/killed"})
      std::filesystem::create_directories(store_ / folder);
    std::ofstream(store_ / "scratch/killed/LOCK") << "rhizome job 1\n";
    ASSERT_TRUE(VerifyAll(store_)->ok());
    Put(kind, store_ / file, "");
    EXPECT_FALSE(Store::Open(posix, store_, Store::Mode::kWrite));
    ExpectNamed(VerifyAll, store_, file);
    std::filesystem::remove(store_ / file);
  }
  EXPECT_OK(Store::Open(posix, store_, Store::Mode::kWrite));
}

}  // namespace
}  // namespace rhizome
