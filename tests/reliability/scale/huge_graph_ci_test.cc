// Tests a graph with more than 2^32 edges. Its partition files are written directly, as sparse
// files with few distinct lists: look-ups and samples beyond 32 bits in a single partition, and
// verify over 256 partitions.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <utility>

#include "cache/lists/direct_neighbors.h"
#include "index/base/memory_sink.h"
#include "index/topology/adjacency.h"
#include "index/topology/adjacency_format.h"
#include "index/topology/blocked_offsets.h"
#include "index/topology/patched_column.h"
#include "index/topology/section_struct.h"
#include "index/topology/vertex_order.h"
#include "rhizome/graph.h"
#include "rhizome/maintenance.h"
#include "rhizome/sampler.h"
#include "rhizome/store.h"
#include "storage/io/forwarding_file_system.h"
#include "storage/maintenance/verify_files.h"
#include "storage/store/generation_writer.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::TempDir;

// 65,536 vertices with 65,537 edges each are 2^32 + 65,536 edges.
constexpr std::uint64_t kVertices = std::uint64_t{1} << 16;
constexpr std::uint64_t kDegree = kVertices + 1;
constexpr std::uint64_t kEdges = kVertices * kDegree;
static_assert(kEdges > std::uint64_t{1} << 32);

/// A file in which large writes of zeros become holes.
class HoledFile final : public WritableFile {
 public:
  HoledFile(int descriptor, Path path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~HoledFile() override { static_cast<void>(Close()); }

  Status Append(std::span<const std::byte> bytes) override {
    const bool hole = bytes.size() >= 4096 && std::ranges::all_of(bytes, [](std::byte byte) {
                        return byte == std::byte{0};
                      });
    while (!hole && !bytes.empty()) {
      const ssize_t written =
          ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
      if (written <= 0) return Status::FromErrno(errno, "writing " + path_.string());
      size_ += static_cast<std::uint64_t>(written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    size_ += bytes.size();
    return Status::Ok();
  }
  Status Sync() override {
    const bool done =
        ::ftruncate(descriptor_, static_cast<off_t>(size_)) == 0 && ::fdatasync(descriptor_) == 0;
    return done ? Status::Ok() : Status::FromErrno(errno, "syncing " + path_.string());
  }
  Status Close() override {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    return Status::Ok();
  }
  std::uint64_t size_bytes() const override { return size_; }
  const Path& path() const override { return path_; }

 private:
  int descriptor_;
  const Path path_;
  std::uint64_t size_ = 0;
};

class HoledFileSystem final : public ForwardingFileSystem {
 public:
  HoledFileSystem() : ForwardingFileSystem(FileSystem::Posix()) {}
  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override {
    if (path.extension() != ".adj") return base().CreateFile(path);
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor < 0) return Fail(Status::FromErrno(errno, "creating " + path.string()));
    return std::make_unique<HoledFile>(descriptor, path);
  }
};

/// Writes the vertex order by id, with the same number of vertices in each partition.
VertexOrder MakeOrder(std::uint32_t partitions, GenerationWriter& writer) {
  std::vector<VertexId> rows(kVertices);
  std::iota(rows.begin(), rows.end(), VertexId{0});
  std::vector<PartitionId> owners(kVertices);
  for (std::uint64_t v = 0; v < kVertices; ++v)
    owners[v] = static_cast<PartitionId>(v * partitions / kVertices);
  MemorySink bytes;
  EXPECT_OK(VertexOrder::Write(bytes, StoreId{}, {rows, owners, {}, partitions, 1}));
  auto file = writer.CreateFile(kOrderPath);
  EXPECT_OK(file);
  EXPECT_OK((*file)->Append(bytes.bytes()));
  EXPECT_OK((*file)->Close());
  auto sections = SectionFile::Parse(bytes.Take(), kOrderPath, FileKind::kOrder, StoreId{});
  return *VertexOrder::Parse(*std::move(sections), kVertices, partitions, 1);
}

/// Writes lists that repeat the partition's first vertex. Only the list of the very last vertex
/// names each vertex of its partition in turn, and then repeats itself.
Status WriteLists(SectionFileWriter& writer, std::uint64_t owned, bool last) {
  RHIZOME_RETURN_IF_ERROR(
      writer.BeginSection(static_cast<std::uint32_t>(kOutKinds.neighbors), sizeof(LocalId)));
  const std::vector<LocalId> zeros(kDegree);
  for (std::uint64_t v = 0; v + 1 < owned; ++v)
    RHIZOME_RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span(zeros))));
  std::vector<LocalId> rising(kDegree);
  for (std::uint64_t i = 0; i < kDegree && last; ++i)
    rising[i] = static_cast<LocalId>(std::min(i, owned - 1));
  return writer.Append(std::as_bytes(std::span(rising)));
}

Status WritePartition(ByteSink& sink, const VertexOrder& order, std::uint32_t partition,
                      std::uint32_t partitions) {
  const std::uint64_t owned = order.owned_count(partition);
  SectionFileWriter writer(sink, FileKind::kPartition, StoreId{});
  const PartitionHeader header{
      .vertices = kVertices,
      .edges = owned * kDegree,
      .owned = owned,
      .mirrors = 0,
      .first_row = static_cast<std::uint64_t>(order.owner_begin(partition)),
      .boundary_owned = 0,
      .partition = partition,
      .partitions = partitions,
      .edge_types = 1,
      .flags = kPartitionOut | kPartitionGrouped};
  RHIZOME_RETURN_IF_ERROR(WriteStructs<PartitionHeader>(writer, Kind(PartitionSection::kHeader),
                                                        std::span(&header, 1)));
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, Kind(PartitionSection::kMirrors), {}));
  std::vector<std::uint64_t> offsets(owned + 1);
  for (std::uint64_t v = 0; v <= owned; ++v) offsets[v] = v * kDegree;
  RHIZOME_RETURN_IF_ERROR(WriteOffsets(writer, kOutKinds.offsets, offsets));
  RHIZOME_RETURN_IF_ERROR(WriteLists(writer, owned, partition + 1 == partitions));
  const std::vector<std::uint64_t> boundary((owned + 63) / 64);
  RHIZOME_RETURN_IF_ERROR(writer.AddSection(Kind(PartitionSection::kBoundaryOwned),
                                            std::span<const std::uint64_t>(boundary)));
  RHIZOME_RETURN_IF_ERROR(WritePatched(writer, kOutKinds.degrees, {}));
  RHIZOME_RETURN_IF_ERROR(
      writer.AddSection(Kind(PartitionSection::kPartitionSets), std::span<const std::uint8_t>()));
  return writer.Finish();
}

/// Creates a store whose partition files are written directly, because sorting this many edges
/// needs too much memory; the engine writes everything else.
void MakeStore(const Path& path, std::uint32_t partitions) {
  HoledFileSystem fs;
  const auto store = Store::Create(fs, path, StoreId{});
  ASSERT_OK(store);
  const auto writer = GenerationWriter::Create(**store);
  ASSERT_OK(writer);
  const VertexOrder order = MakeOrder(partitions, **writer);
  for (std::uint32_t p = 0; p < partitions; ++p) {
    const auto file = (*writer)->CreateFile(PartitionPath(p));
    ASSERT_OK(file);
    ASSERT_OK(WritePartition(**file, order, p, partitions));
    ASSERT_OK((*file)->Close());
  }
  GenerationInfo info;
  info.vertices = kVertices;
  info.edges = kEdges;
  info.partitions = partitions;
  info.directions = Direction::kOut;
  info.partitioner = "range";
  info.order = "natural";
  info.vertex_types = {"vertex"};
  info.edge_types = {"edge"};
  ASSERT_OK((*writer)->Commit(info));
}

std::uint64_t BytesOnDisk(const Path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) == 0)
      bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
  }
  return bytes;
}

void ExpectVerifies(const Path& path) {
  const JobControl control;
  const auto report = VerifyStore(FileSystem::Posix(), path, control);
  ASSERT_OK(report);
  for (const Damage& damage : report->damaged) ADD_FAILURE() << damage.file << ": " << damage.what;
}

// A single file holds all edges, so edge numbers and the positions of the last lists exceed 32
// bits.
TEST(HugeGraphTest, LookedUpAndSampledBeyond32Bits) {
  const TempDir dir;
  MakeStore(dir / "g.rz", 1);
  if (HasFatalFailure()) return;
  if (BytesOnDisk(dir.path()) > std::uint64_t{1} << 30)
    GTEST_SKIP() << "the file system has no holes";
  const auto store = Store::Open(FileSystem::Posix(), dir / "g.rz", Store::Mode::kRead);
  ASSERT_OK(store);
  const auto graph = Graph::Open(std::as_const(**store), {.topology = TopologyPlace::kDirect});
  ASSERT_OK(graph);
  EXPECT_EQ((*graph)->generation_edge_count(), kEdges);
  const auto count = (*graph)->CountEdges();
  ASSERT_OK(count);
  EXPECT_EQ(*count, kEdges);

  const auto last = static_cast<VertexId>(kVertices - 1);
  const auto degree = (*graph)->Degree(last, Direction::kOut);
  ASSERT_OK(degree);
  EXPECT_EQ(*degree, kDegree);
  const auto list = (*graph)->Neighbors(last, Direction::kOut);
  ASSERT_OK(list);
  ASSERT_EQ(list->size(), kDegree);
  for (std::uint64_t i = 0; i < kDegree; ++i)
    ASSERT_EQ((*list)[i].vertex, static_cast<VertexId>(std::min(i, kVertices - 1)));

  const auto source =
      DirectNeighbors::Open(**graph, Direction::kOut, nullptr, {.io = {.maker = IoMaker::kPread}});
  ASSERT_OK(source);
  SamplerOptions options;
  options.fanouts = {200};
  options.direction = Direction::kOut;
  options.edge_ids = true;
  const auto sampler = Sampler::Create(**graph, options, *source);
  ASSERT_OK(sampler);
  const std::vector<VertexId> seeds = {last, 0};
  const auto sample = (*sampler)->Sample(seeds, testing::TestSeed());
  ASSERT_OK(sample);
  ASSERT_EQ(sample->edges.size(), 400U);
  std::uint64_t beyond = 0;
  for (std::size_t i = 0; i < sample->edges.size(); ++i) {
    const std::uint64_t edge = sample->edges[i].position;
    ASSERT_LT(edge, kEdges);
    beyond += edge >> 32 != 0 ? 1 : 0;
    const std::uint64_t first = (kVertices - 1) * kDegree;
    const std::uint64_t expected = edge < first ? 0 : std::min(edge - first, kVertices - 1);
    EXPECT_EQ(sample->rows[static_cast<std::size_t>(sample->neighbors[i])],
              static_cast<Row>(expected));
  }
  EXPECT_GE(beyond, 199U);  // one of 200 is the edge before them

  const JobControl control;
  const auto report = VerifyFiles(FileSystem::Posix(), dir / "g.rz", control);
  ASSERT_OK(report);
  EXPECT_TRUE(report->damaged.empty());
}

// The same edges in 256 files, so that each file fits in memory while its lists are verified.
TEST(HugeGraphTest, VerifiesWhatTheListsHold) {
  const TempDir dir;
  MakeStore(dir / "g.rz", 256);
  if (HasFatalFailure()) return;
  if (BytesOnDisk(dir.path()) > std::uint64_t{1} << 30)
    GTEST_SKIP() << "the file system has no holes";
  ExpectVerifies(dir / "g.rz");
}

}  // namespace
}  // namespace rhizome
