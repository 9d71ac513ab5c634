#include "rhizome/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "rhizome/verify.h"
#include "storage/array_fixture.h"
#include "storage/io/files.h"
#include "storage/io/forwarding_file_system.h"
#include "storage/io/job_folder.h"
#include "storage/maintenance/verify_files.h"
#include "storage/store/generation_writer.h"
#include "storage/store/store_files.h"
#include "testing/child_process.h"
#include "testing/fake_file_system.h"

// Tests of opening and creating stores: missing, damaged and foreign files, leftovers and their
// removal, the retention of generations, links, and the exclusion of a second writer.

namespace rhizome {
namespace {

using testing::AsStatus;
using testing::FixedStoreId;
using testing::MakeEntry;
using testing::MakeStore;
using testing::TempDir;
using testing::WriteByFormula;

FileSystem& local = FileSystem::Posix();

/// Counts how often a catalogue is opened.
class CountingFileSystem final : public ForwardingFileSystem {
 public:
  CountingFileSystem() : ForwardingFileSystem(local) {}
  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override {
    if (path.filename() == "SEAL") ++seals;
    return base().OpenRead(path, options);
  }
  int seals = 0;
};

// The log of a catalogue may be gigabytes long.
TEST(StoreTest, ADamagedCatalogueIsReadOnce) {
  TempDir dir;
  ASSERT_OK(MakeStore(local, dir / "s"));
  CountingFileSystem fs;
  ASSERT_OK(Store::Open(fs, dir / "s", Store::Mode::kRead));
  const int once = std::exchange(fs.seals, 0);
  for (const auto& entry : std::filesystem::directory_iterator(dir / "s/catalog"))
    if (entry.path().extension() == ".log")
      std::ofstream(entry.path(), std::ios::app) << std::string(4096, '\1');
  EXPECT_STATUS(Store::Open(fs, dir / "s", Store::Mode::kRead), kCorruption);
  EXPECT_EQ(fs.seals, once);
}

TEST(StoreTest, ACommittedStoreOpensWithItsFilesAndArrays) {
  TempDir dir;
  ASSERT_OK(MakeStore(local, dir / "s"));
  const auto store = Store::Open(local, dir / "s", Store::Mode::kRead);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->id(), FixedStoreId());
  EXPECT_EQ((*store)->manifest().generation, 1u);
  EXPECT_EQ((*store)->manifest().info.vertices, 300u);
  const auto array = (*store)->OpenArray("feat");
  ASSERT_OK(array);
  std::vector<std::byte> rows(300 * 12);
  ASSERT_OK((*array)->ReadRows(0, 300, rows));
  EXPECT_EQ(rows, testing::RowsByFormula(0, 300, 12));
  const auto missing = (*store)->OpenArray("nothing");
  EXPECT_STATUS(missing, kNotFound);
  EXPECT_NE(missing.error().message().find("feat"), std::string::npos);
  EXPECT_STATUS((*store)->LoadSectionFile("ids/ids.dict", FileKind::kVertexIds), kNotFound);
  EXPECT_STATUS((*store)->LoadSectionFile("topology/part-0000.adj", FileKind::kPartition),
                kCorruption);
}

/// Writes a section file with one section of a hundred equal numbers.
Status WriteSections(GenerationWriter& writer, const std::string& path, std::uint32_t value) {
  RHIZOME_ASSIGN_OR_RETURN(const auto file, writer.CreateFile(path));
  SectionFileWriter sections(*file, FileKind::kPartition, writer.store_id());
  const std::vector<std::uint32_t> numbers(100, value);
  RHIZOME_RETURN_IF_ERROR(sections.AddSection<std::uint32_t>(1, numbers));
  RHIZOME_RETURN_IF_ERROR(sections.Finish());
  return file->Close();
}

// Both files are valid, belong to this store and have the same length. Only the hash in the
// manifest distinguishes them.
TEST(StoreTest, ASoundFileInTheWrongPlaceIsCorruption) {
  TempDir dir;
  {
    const auto store = Store::Create(local, dir / "s", FixedStoreId());
    ASSERT_OK(store);
    const auto writer = GenerationWriter::Create(**store);
    ASSERT_OK(writer);
    ASSERT_OK(WriteSections(**writer, "topology/part-0000.adj", 1));
    ASSERT_OK(WriteSections(**writer, "topology/part-0001.adj", 2));
    ASSERT_OK((*writer)->Commit(testing::SmallInfo()));
  }
  const auto store = Store::Open(local, dir / "s", Store::Mode::kRead);
  ASSERT_OK(store);
  const auto good = (*store)->LoadSectionFile("topology/part-0000.adj", FileKind::kPartition);
  ASSERT_OK(good);
  EXPECT_EQ((*good->Section<std::uint32_t>(1))[99], 1u);
  const Path topology = dir / "s/generations/000001/topology";
  std::filesystem::copy_file(topology / "part-0001.adj", topology / "part-0000.adj",
                             std::filesystem::copy_options::overwrite_existing);
  const auto stale = (*store)->LoadSectionFile("topology/part-0000.adj", FileKind::kPartition);
  EXPECT_STATUS(stale, kCorruption);
  EXPECT_NE(AsStatus(stale).message().find("part-0000.adj"), std::string::npos);
  std::filesystem::remove(topology / "part-0000.adj");
  EXPECT_STATUS((*store)->LoadSectionFile("topology/part-0000.adj", FileKind::kPartition),
                kCorruption);
}

// The changed zarr.json has the same meaning and length, but other bytes.
TEST(StoreTest, MetadataThatTheManifestDoesNotNameIsCorruption) {
  TempDir dir;
  ASSERT_OK(MakeStore(local, dir / "s"));
  const auto store = Store::Open(local, dir / "s", Store::Mode::kRead);
  ASSERT_OK(store);
  const Path json = dir / "s/generations/000001/arrays/feat/zarr.json";
  std::ifstream in(json);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.back() = ' ';  // same meaning, same length
  std::ofstream(json) << text;
  EXPECT_STATUS((*store)->OpenArray("feat"), kCorruption);
}

TEST(StoreTest, UnfinishedIngestionIsNoStoreAndIsCleared) {
  TempDir dir;
  for (int attempt = 0; attempt < 2; ++attempt) {
    {
      const auto store = Store::Create(local, dir / "s", FixedStoreId());
      ASSERT_OK(store);
      const auto writer = GenerationWriter::Create(**store);
      ASSERT_OK(writer);
      ASSERT_OK((*writer)->CreateFile("topology/part-0000.adj"));
    }
    EXPECT_STATUS(Store::Open(local, dir / "s", Store::Mode::kRead), kNotFound);
    EXPECT_STATUS(Store::Open(local, dir / "s", Store::Mode::kWrite), kNotFound);
  }
  ASSERT_OK(MakeStore(local, dir / "s"));
  EXPECT_OK(Store::Open(local, dir / "s", Store::Mode::kRead));
}

TEST(StoreTest, CreateTouchesNothingElse) {
  TempDir dir;
  std::ofstream(dir / "file") << "mine";
  EXPECT_STATUS(Store::Create(local, dir / "file", FixedStoreId()), kAlreadyExists);
  EXPECT_STATUS(Store::Create(local, dir.path(), FixedStoreId()), kAlreadyExists);
  std::filesystem::create_directory(dir / "other");
  std::ofstream(dir / "other/LOCK") << "somebody else's";
  EXPECT_STATUS(Store::Create(local, dir / "other", FixedStoreId()), kAlreadyExists);
  EXPECT_EQ(std::filesystem::file_size(dir / "other/LOCK"), 15u);
  ASSERT_OK(MakeStore(local, dir / "s"));
  EXPECT_STATUS(Store::Create(local, dir / "s", FixedStoreId(2)), kAlreadyExists);
  std::filesystem::remove(dir / "s/catalog/CURRENT");  // a damaged store is not a leftover
  EXPECT_STATUS(Store::Create(local, dir / "s", FixedStoreId(2)), kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(dir / "s/generations/000001/MANIFEST-000001"));
}

TEST(StoreTest, TornFirstFilesAreAnIngestionsOwn) {
  for (const std::string& text : {std::string(), std::string("rhi"), std::string(20, '\0'),
                                  std::string("rhizome\0\0\0", 10), std::string("rhizome 12\n")}) {
    TempDir dir;
    std::filesystem::create_directory(dir / "s");
    std::ofstream(dir / "s/LOCK") << text;
    std::ofstream(dir / "s/FORMAT") << FormatText(FixedStoreId()).substr(0, 2 * text.size());
    EXPECT_OK(MakeStore(local, dir / "s"));
  }
  for (const char* text : {"x", "rhizomatic"}) {
    TempDir dir;
    std::filesystem::create_directory(dir / "s");
    std::ofstream(dir / "s/FORMAT") << text;
    EXPECT_STATUS(MakeStore(local, dir / "s"), kAlreadyExists);
    EXPECT_EQ(std::filesystem::file_size(dir / "s/FORMAT"), std::string_view(text).size());
  }
}

// Without these files the current state is unknown, but the manifests show that this was a store.
TEST(StoreTest, LostRootsAreDamage) {
  for (const char* lost :
       {"catalog", "catalog/CURRENT", "FORMAT", "generations/000001/MANIFEST-000001"}) {
    SCOPED_TRACE(lost);
    TempDir dir;
    ASSERT_OK(MakeStore(local, dir / "s"));
    std::filesystem::remove_all(dir / "s" / lost);
    for (const Store::Mode mode : {Store::Mode::kRead, Store::Mode::kWrite}) {
      const auto opened = Store::Open(local, dir / "s", mode);
      EXPECT_STATUS(opened, kCorruption);
      const bool root = std::string_view(lost).find("generations") == std::string_view::npos;
      const bool says = opened.error().message().find("run repair") != std::string::npos;
      EXPECT_TRUE(says || !root) << opened.error().message();
    }
  }
}

TEST(StoreTest, FormatIsChecked) {
  TempDir dir;
  EXPECT_STATUS(Store::Open(local, dir / "none", Store::Mode::kRead), kNotFound);
  EXPECT_STATUS(Store::Open(local, dir.path(), Store::Mode::kWrite), kNotFound);
  ASSERT_OK(MakeStore(local, dir / "s"));
  const auto write = [&](std::string_view text) { std::ofstream(dir / "s/FORMAT") << text; };
  write("rhizome store\nformat 2\nsomething else\n");
  const auto newer = Store::Open(local, dir / "s", Store::Mode::kRead);
  EXPECT_STATUS(newer, kUnsupported);
  EXPECT_NE(newer.error().message().find("format 2"), std::string::npos);
  for (const char* text : {"", "rhizome store\n", "rhizome store\nformat 0\nid x\n",
                           "rhizome store\nformat 1\nid 12\n", "hello\n"}) {
    write(text);
    EXPECT_STATUS(Store::Open(local, dir / "s", Store::Mode::kRead), kCorruption);
  }
  write(FormatText(FixedStoreId(9)));  // of another store
  EXPECT_STATUS(Store::Open(local, dir / "s", Store::Mode::kRead), kCorruption);
}

TEST(StoreTest, PublishedArrayIsSeenByNewReadersOnly) {
  TempDir dir;
  ASSERT_OK(MakeStore(local, dir / "s"));
  const Path scratch = dir / "s/scratch/job";
  ASSERT_OK(CreateDirectories(local, scratch));
  const auto written = WriteByFormula(
      local, scratch,
      MakeEntry("emb", 300, 4, DataType::kFloat32, ArrayLayout::kChunk, CodecKind::kZstd));
  ASSERT_OK(written);
  const auto before = Store::Open(local, dir / "s", Store::Mode::kRead);
  ASSERT_OK(before);
  EXPECT_STATUS(Store::PublishArray(local, dir / "s", 2, written->arrays, scratch, written->files),
                kInvalidArgument);
  ASSERT_OK(Store::PublishArray(local, dir / "s", 1, written->arrays, scratch, written->files));
  EXPECT_STATUS(Store::PublishArray(local, dir / "s", 1, written->arrays, scratch, written->files),
                kAlreadyExists);
  EXPECT_STATUS((*before)->OpenArray("emb"), kNotFound);
  std::filesystem::remove_all(scratch);
  const auto after = Store::Open(local, dir / "s", Store::Mode::kRead);
  ASSERT_OK(after);
  const auto array = (*after)->OpenArray("emb");
  ASSERT_OK(array);
  std::vector<std::byte> rows(300 * 16);
  ASSERT_OK((*array)->ReadRows(0, 300, rows));
  EXPECT_EQ(rows, testing::RowsByFormula(0, 300, 16));
  EXPECT_OK((*before)->OpenArray("feat"));
}

TEST(StoreTest, OrphansGoAtTheNextOpenForWriting) {
  TempDir dir;
  ASSERT_OK(MakeStore(local, dir / "s"));
  std::filesystem::create_directories(dir / "s/generations/000002/topology");
  std::filesystem::create_directories(dir / "s/generations/000001/arrays/half");
  std::ofstream(dir / "s/generations/000001/arrays/half/c.0.0") << "x";
  std::ofstream(dir / "s/generations/000001/MANIFEST-000002") << "x";
  std::filesystem::create_directories(dir / "s/scratch/empty");
  ASSERT_OK(ClaimJobFolder(local, dir / "s/scratch/dead"));
  std::ofstream(dir / "s/scratch/dead/000001.spill") << "x";
  const auto held = ClaimJobFolder(local, dir / "s/scratch/alive");
  ASSERT_OK(held);
  ASSERT_OK(Store::Open(local, dir / "s", Store::Mode::kWrite));
  for (const char* gone :
       {"s/generations/000002", "s/generations/000001/arrays/half",
        "s/generations/000001/MANIFEST-000002", "s/scratch/dead", "s/scratch/empty"})
    EXPECT_FALSE(std::filesystem::exists(dir / gone)) << gone;
  EXPECT_TRUE(std::filesystem::exists(dir / "s/scratch/alive"));
  EXPECT_OK(Store::Open(local, dir / "s", Store::Mode::kRead));
}

/// Commits an empty generation after the current one.
void AddGeneration(const Path& path, const KeepRule& keep) {
  const auto store = Store::Open(local, path, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto writer = GenerationWriter::Create(**store);
  ASSERT_OK(writer);
  (*writer)->set_keep(keep);
  ASSERT_OK((*writer)->Commit(testing::SmallInfo()));
}

std::vector<std::string> GenerationFolders(const Path& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path / "generations"))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

using FolderNames = std::vector<std::string>;

// The rule is stored in the store and applies to all later writers.
TEST(StoreTest, EarlierGenerationsAreKeptAsTheRuleSays) {
  TempDir dir;
  const Path path = dir / "s";
  const auto reopen = [&] { ASSERT_OK(Store::Open(local, path, Store::Mode::kWrite)); };
  ASSERT_OK(MakeStore(local, path));
  for (int i = 0; i < 3; ++i) AddGeneration(path, KeepRule{.generations = 2});
  reopen();
  EXPECT_EQ(GenerationFolders(path), (FolderNames{"000002", "000003", "000004"}));
  AddGeneration(path, {});
  reopen();
  EXPECT_EQ(GenerationFolders(path), (FolderNames{"000004", "000005"}));
  EXPECT_TRUE(VerifyFiles(local, path, JobControl())->ok());
  {
    const auto store = Store::Open(local, path, Store::Mode::kWrite);
    ASSERT_OK(store);
    ASSERT_OK((*store)->RemoveKept());
    EXPECT_EQ(GenerationFolders(path), (FolderNames{"000005"}));
  }
  AddGeneration(path, {});
  reopen();
  EXPECT_EQ(GenerationFolders(path), (FolderNames{"000005", "000006"}));
  const auto store = Store::Open(local, path, Store::Mode::kWrite);
  ASSERT_OK(store);
  const std::uint64_t version = (*store)->manifest().version;
  ASSERT_OK((*store)->Keep({.generations = 0}));
  EXPECT_EQ((*store)->manifest().version, version + 1);
  ASSERT_OK((*store)->Keep({.generations = 0}));
  EXPECT_EQ((*store)->manifest().version, version + 1);
  ASSERT_OK((*store)->CollectGarbage());
  EXPECT_EQ(GenerationFolders(path), (FolderNames{"000006"}));
}

/// A disk with a given amount of free space.
class DiskWithRoom final : public ForwardingFileSystem {
 public:
  DiskWithRoom() : ForwardingFileSystem(FileSystem::Posix()) {}
  Result<std::uint64_t> FreeBytes(const Path&) override { return free_bytes; }
  std::uint64_t free_bytes = UINT64_MAX;
};

// Kept generations are limited by bytes, and by the free space of the disk.
TEST(StoreTest, EarlierGenerationsThatAreTooLargeAreNotKept) {
  TempDir dir;
  DiskWithRoom disk;
  const Path path = dir / "s";
  ASSERT_OK(MakeStore(disk, path));
  Manifest first;
  {
    const auto store = Store::Open(disk, path, Store::Mode::kRead);
    ASSERT_OK(store);
    first = (*store)->manifest();
  }
  std::uint64_t bytes = 0;
  for (const FileEntry& file : first.files) bytes += file.size_bytes;
  Manifest next = first;
  next.generation = 2;
  const auto kept = [&](std::uint64_t most) {
    next.keep.bytes = most;
    return KeptGenerations(disk, path, FixedStoreId(), next).size();
  };
  EXPECT_EQ(kept(bytes), 1U);
  EXPECT_EQ(kept(bytes - 1), 0U);
  disk.free_bytes = bytes;
  EXPECT_EQ(kept(bytes), 1U);
  disk.free_bytes = bytes - 1;
  EXPECT_EQ(kept(bytes), 0U);
}

// Other programs put folders into scratch: a database of another kind, another store, or the job
// folder of a version that left no mark.
TEST(StoreTest, OnlyWhatCarriesAJobsMarkIsRemoved) {
  TempDir dir;
  ASSERT_OK(MakeStore(local, dir / "s"));
  for (const char* lock : {"", "rhizome 1\n", "rhizome\n1\n", "other"}) {
    const Path folder = dir / "s/scratch" / ("of-" + std::to_string(std::strlen(lock)));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "LOCK") << lock;
    std::ofstream(folder / "precious") << "x";
  }
  std::filesystem::create_directories(dir / "s/scratch/unmarked/folder");
  ASSERT_OK(Store::Open(local, dir / "s", Store::Mode::kWrite));
  for (const char* left : {"of-0/precious", "of-10/precious", "of-5/precious", "unmarked/folder"})
    EXPECT_TRUE(std::filesystem::exists(dir / "s/scratch" / left)) << left;
}

TEST(StoreTest, LinksInAStoreAreRefusedByNameAndNotFollowed) {
  for (const char* link : {"scratch", "scratch/job", "scratch/job/inside", "generations",
                           "generations/000001", "generations/000002", "generations/000001/arrays",
                           "generations/000001/arrays/stray", "catalog", "catalog/CURRENT"}) {
    SCOPED_TRACE(link);
    TempDir dir;
    ASSERT_OK(MakeStore(local, dir / "s"));
    std::filesystem::create_directories(dir / "victim/folder");
    std::ofstream(dir / "victim/folder/precious") << "x";
    ASSERT_OK(ClaimJobFolder(local, dir / "victim/000003"));  // looks like the folder of a job
    const Path path = dir / "s" / link;
    if (path.filename() == "inside") {
      ASSERT_OK(ClaimJobFolder(local, path.parent_path()));
    } else {
      std::filesystem::create_directories(path.parent_path());
    }
    if (std::filesystem::exists(path)) std::filesystem::rename(path, dir / "aside");
    std::filesystem::create_symlink(dir / "victim", path);
    const Status opened = AsStatus(Store::Open(local, dir / "s", Store::Mode::kWrite));
    EXPECT_STATUS(opened, kCorruption);
    EXPECT_NE(opened.message().find(path.string()), std::string::npos) << opened.message();
    EXPECT_TRUE(std::filesystem::is_symlink(path));
    EXPECT_TRUE(std::filesystem::exists(dir / "victim/folder/precious"));
    EXPECT_TRUE(std::filesystem::exists(dir / "victim/000003/LOCK"));
    EXPECT_EQ(local.List(dir / "victim")->size(), 2U);
  }
}

// The path given by the user may be a link, or contain one.
TEST(StoreTest, AStoreMayBeReachedThroughALink) {
  TempDir dir;
  std::filesystem::create_directories(dir / "real");
  std::filesystem::create_directory_symlink("real", dir / "linked");
  ASSERT_OK(MakeStore(local, dir / "linked/s"));
  std::filesystem::create_directory_symlink("s", dir / "real/t");
  EXPECT_OK(Store::Open(local, dir / "linked/t/", Store::Mode::kWrite));
  EXPECT_OK(Store::Open(local, dir / "linked/t", Store::Mode::kRead));
}

TEST(StoreTest, ScratchMayLieElsewhere) {
  TempDir dir;
  ASSERT_OK(MakeStore(local, dir / "s"));
  const StoreOptions options{.scratch = dir / "elsewhere"};
  Path folder;
  {
    const auto store = Store::Open(local, dir / "s", Store::Mode::kRead, options);
    ASSERT_OK(store);
    folder = (*store)->scratch() / "job";
    EXPECT_EQ(folder, dir / "elsewhere" / (*store)->id().ToString() / "job");
    ASSERT_OK(ClaimJobFolder(local, folder));
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "LOCK"));
  ASSERT_OK(Store::Open(local, dir / "s", Store::Mode::kWrite));
  EXPECT_TRUE(std::filesystem::exists(folder));
  ASSERT_OK(Store::Open(local, dir / "s", Store::Mode::kWrite, options));
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_FALSE(std::filesystem::exists(dir / "s/scratch"));
}

// After any failure, everything that was created is removed; LOCK is removed last.
TEST(StoreTest, AStoreThatIsDiscardedLeavesNothing) {
  TempDir dir;
  std::filesystem::create_directories(dir / "there");
  for (const char* path : {"a/b/s", "there"}) {
    auto store = Store::Create(local, dir / path, StoreId{});
    ASSERT_OK(store);
    ASSERT_OK(ClaimJobFolder(local, (*store)->scratch() / "job"));
    ASSERT_OK(Store::Discard(*std::move(store)));
  }
  EXPECT_FALSE(std::filesystem::exists(dir / "a"));
  EXPECT_TRUE(std::filesystem::is_empty(dir / "there"));
  testing::FakeFileSystem full;
  full.FailWhen(
      [](auto operation, const Path& path) {
        return operation == testing::FakeFileSystem::Operation::kAppend &&
               path.filename() == "FORMAT";
      },
      ENOSPC);
  EXPECT_STATUS(Store::Create(full, "/a/b/s", StoreId{}), kOutOfSpace);
  EXPECT_STATUS(full.Stat("/a"), kNotFound);
}

TEST(StoreTest, OldGenerationStaysWhileItIsPinned) {
  TempDir dir;
  ASSERT_OK(MakeStore(local, dir / "s"));
  auto reader = Store::Open(local, dir / "s", Store::Mode::kRead);
  ASSERT_OK(reader);
  {
    const auto store = Store::Open(local, dir / "s", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto writer = GenerationWriter::Create(**store);
    ASSERT_OK(writer);
    (*writer)->set_keep({.generations = 0});
    ASSERT_OK((*writer)->Commit(testing::SmallInfo()));
  }
  ASSERT_OK(Store::Open(local, dir / "s", Store::Mode::kWrite));
  EXPECT_OK((*reader)->OpenArray("feat"));
  EXPECT_EQ((*Store::Open(local, dir / "s", Store::Mode::kRead))->manifest().generation, 2u);
  reader->reset();
  ASSERT_OK(Store::Open(local, dir / "s", Store::Mode::kWrite));
  EXPECT_FALSE(std::filesystem::exists(dir / "s/generations/000001"));
}

constexpr const char* kSecondWritersStore =
    "RHIZOME_TEST_SECOND_WRITER";      // path of the store; set in the child only
constexpr int kFromFirstWriter = 208;  // in the child; no other descriptor has this number
constexpr int kToFirstWriter = 209;

// The other process is this program, started for one test. Each side sees the end of the other as
// the end of a pipe, so neither waits forever.
TEST(StoreTest, SecondWriterIsToldThePidOfTheFirst) {
  char byte = 'g';
  if (const char* path = std::getenv(kSecondWritersStore)) {
    const auto store = Store::Open(local, path, Store::Mode::kWrite);
    byte = store ? 'y' : 'n';
    ASSERT_EQ(write(kToFirstWriter, &byte, 1), 1);
    (void)!read(kFromFirstWriter, &byte, 1);
    _exit(0);
  }
  TempDir dir;
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(pipe2(to_child, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(to_parent, O_CLOEXEC), 0);
  ASSERT_OK(MakeStore(local, dir / "s"));
  auto child = testing::ChildProcess::RunAgain(
      {.arguments = testing::ChildProcess::OnlyTest("StoreTest.SecondWriterIsToldThePidOfTheFirst"),
       .variables = {std::string(kSecondWritersStore) + "=" + (dir / "s").string()},
       .descriptors = {{to_child[0], kFromFirstWriter}, {to_parent[1], kToFirstWriter}}});
  const pid_t first = child.id();
  ASSERT_GT(first, 0);
  close(to_child[0]);
  close(to_parent[1]);
  const int in = to_parent[0];
  const int out = to_child[1];
  ASSERT_EQ(read(in, &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const auto second = Store::Open(local, dir / "s", Store::Mode::kWrite);
  EXPECT_STATUS(second, kBusy);
  EXPECT_NE(second.error().message().find(std::to_string(first)), std::string::npos);
  EXPECT_OK(Store::Open(local, dir / "s", Store::Mode::kRead));  // readers are not affected
  EXPECT_OK(Store::Open(local, dir / "s", Store::Mode::kRead));
  close(out);
  close(in);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_OK(Store::Open(local, dir / "s", Store::Mode::kWrite));
}

}  // namespace
}  // namespace rhizome
