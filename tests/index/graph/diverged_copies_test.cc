// Copies of a store that were written to independently have commits, generations and manifests of
// equal numbers. Every operation that compares states must distinguish them.

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "index/delta/delta_record.h"
#include "index/delta/stale_vertices.h"
#include "rhizome/array_change.h"
#include "rhizome/backup.h"
#include "rhizome/change_feed.h"
#include "storage/catalog/catalog.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::OpenStore;

/// A store that is open for writing, and its graph.
struct Writer {
  explicit Writer(const Path& path) {
    auto opened = OpenStore(path, Store::Mode::kWrite);
    EXPECT_OK(opened);
    store = *std::move(opened);
    auto made = Graph::Open(*store);
    EXPECT_OK(made);
    graph = *std::move(made);
  }
  HistoryState history() const { return graph->Snapshot()->history(); }
  StorePoint point() const { return graph->Snapshot()->point(); }

  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
};

void PutEdge(Graph& graph, std::int64_t src, std::int64_t dst, const WriteOptions& options = {}) {
  WriteBatch batch;
  batch.PutEdge(src, dst);
  ASSERT_OK(graph.Write(batch, options));
}

void PutRow(Graph& graph, std::int64_t id, float value) {
  WriteBatch batch;
  const std::vector<float> row(testing::UpdateModel::kDim, value);
  batch.PutRow(id, "feat", std::span<const float>(row));
  ASSERT_OK(graph.Write(batch, {}));
}

/// Puts an edge with a record of version 1, which contains no state.
void PutEdgeOfVersionOne(const Path& path, VertexId src, VertexId dst) {
  constexpr std::ptrdiff_t kStateAt = 17;
  constexpr std::ptrdiff_t kStateBytes = 17;
  const auto store = OpenStore(path, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto delta = Delta::Load(Delta::Empty(DeltaBaseOf(**store)), **store);
  ASSERT_OK(delta);
  const DeltaContext context = (*delta)->Context();
  DeltaRunBuilder builder(context.symmetric, 0, static_cast<VertexId>(context.vertices));
  builder.AddEdge(src, dst, 0, 1, {});
  std::vector<std::byte> record;
  ASSERT_OK((*store)->CommitDelta(true, [&](std::uint64_t first, const HistoryState&) {
    record = EncodeDeltaRecord(builder.Finish(first), context);
    record[0] = std::byte{1};
    record.erase(record.begin() + kStateAt, record.begin() + kStateAt + kStateBytes);
    return std::vector<DeltaCommit>{{.sequence = first, .record = record, .rows = {}}};
  }));
}

class DivergedCopiesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::RandomGraphOptions options;
    options.vertices = 20;
    options.edges = 60;
    options.id_kind = ExternalIdKind::kInteger;
    GraphInput input = testing::RandomGraph(random_, options);
    testing::UpdateModel::AddRows(input);
    BuildOptions build;
    build.partition.partitions = 2;
    ASSERT_OK(testing::BuildStore(a_, std::move(input), build));
  }
  void Copy() { std::filesystem::copy(a_, b_, std::filesystem::copy_options::recursive); }

  /// Creates copies that diverge by one commit each.
  void Diverge() {
    Copy();
    PutEdge(*Writer(a_).graph, 1, 2);
    PutEdge(*Writer(b_).graph, 2, 3);
  }

  Result<std::unique_ptr<Store>> OpenAt(const Path& path, const StorePoint& at) {
    return Store::Open(FileSystem::Posix(), path, Store::Mode::kRead, {.at = at});
  }

  std::mt19937_64 random_{testing::TestSeed()};
  testing::TempDir folder_;
  const Path a_ = folder_ / "a.rz";
  const Path b_ = folder_ / "b.rz";
};

TEST_F(DivergedCopiesTest, HaveEqualNumbersAndOtherHashes) {
  Copy();
  Writer a(a_), b(b_);
  EXPECT_EQ(a.point(), b.point());
  EXPECT_TRUE(a.point().state.known());
  PutEdge(*a.graph, 1, 2);
  PutEdge(*b.graph, 1, 2);
  EXPECT_EQ(a.point(), b.point());  // their histories are equal
  PutEdge(*a.graph, 3, 4);
  PutEdge(*b.graph, 4, 3);
  StorePoint other = b.point();
  EXPECT_NE(a.point(), other);
  other.state = a.point().state;
  EXPECT_EQ(a.point(), other);  // only the hashes differ
  PutEdge(*a.graph, 5, 6);
  PutEdge(*b.graph, 5, 6);
  EXPECT_NE(a.history().commits, b.history().commits);  // they never become equal again
}

TEST_F(DivergedCopiesTest, DifferByTheValueOfOneRow) {
  Copy();
  Writer a(a_), b(b_);
  PutRow(*a.graph, 1, 1.0F);
  PutRow(*b.graph, 1, 2.0F);
  EXPECT_EQ(a.graph->sequence(), b.graph->sequence());
  EXPECT_NE(a.history(), b.history());
}

TEST_F(DivergedCopiesTest, KeepTheirHashesOverOpeningsAndCompactions) {
  Diverge();
  const HistoryState had = Writer(a_).history();
  EXPECT_NE(had, Writer(b_).history());
  for (const Path& path : {a_, b_}) {
    Writer writer(path);
    ASSERT_OK(writer.graph->Compact({}, JobControl()));
    EXPECT_EQ(writer.history() == had, path == a_);
  }
  EXPECT_EQ(Writer(a_).history(), had);
  const auto reader = OpenStore(a_, Store::Mode::kRead);
  ASSERT_OK(reader);
  const auto graph = Graph::Open(std::as_const(**reader));
  ASSERT_OK(graph);
  EXPECT_EQ((*graph)->history(), had);
  EXPECT_EQ((*graph)->point(), Writer(a_).point());
}

TEST_F(DivergedCopiesTest, AreNotOpenedAtThePointOfTheOther) {
  Diverge();
  for (const bool compacted : {false, true}) {
    SCOPED_TRACE(compacted);
    if (compacted) {
      ASSERT_OK(Writer(a_).graph->Compact({}, JobControl()));
      ASSERT_OK(Writer(b_).graph->Compact({}, JobControl()));
    }
    const Writer a(a_), b(b_);
    EXPECT_OK(OpenAt(a_, a.point()));
    const auto refused = OpenAt(b_, a.point());
    EXPECT_STATUS(refused, kInvalidArgument);
    if (!refused) {
      EXPECT_NE(refused.error().message().find("diverged"), std::string::npos)
          << refused.error().message();
    }
    StorePoint numbers = a.point();
    numbers.state = {};
    EXPECT_OK(OpenAt(b_, numbers));  // points of older versions: only the numbers are compared
  }
}

TEST_F(DivergedCopiesTest, PointsOfAnotherBaseAreRefused) {
  Diverge();
  const Writer a(a_);
  for (const bool known : {true, false}) {
    StorePoint at = a.point();
    if (!known) at.state = {};
    ++at.base_sequence;
    EXPECT_FALSE(OpenAt(a_, at).has_value());
    at.first_commit = 0;
    EXPECT_FALSE(OpenAt(a_, at).has_value());
  }
}

TEST_F(DivergedCopiesTest, ChangesContinueOnlyWhatTheirReaderHas) {
  Copy();
  Writer a(a_), b(b_);
  PutEdge(*a.graph, 1, 2);
  PutEdge(*b.graph, 2, 3);
  const StorePoint seen = a.point();
  PutEdge(*a.graph, 3, 4);
  PutEdge(*b.graph, 3, 4);
  const ChangeRange range{.after = seen.sequence, .after_commits = seen.state.commits};
  const auto feed = ChangeFeed::Open(*a.graph, range);
  ASSERT_OK(feed);
  EXPECT_EQ((*feed)->continued().commits, seen.state.commits);
  EXPECT_EQ((*feed)->reached().commits, a.history().commits);
  EXPECT_EQ((*feed)->reached().commit, a.graph->sequence());
  EXPECT_STATUS(ChangeFeed::Open(*b.graph, range), kInvalidArgument);
  EXPECT_OK(ChangeFeed::Open(*b.graph, {.after = seen.sequence}));
}

TEST_F(DivergedCopiesTest, AFollowerRemembersItsLeader) {
  const LeaderState leader{.store = StoreId::Random(), .commit = 7, .commits = {std::byte{9}}};
  {
    Writer a(a_);
    EXPECT_FALSE(a.history().leader);
    PutEdge(*a.graph, 1, 2, {.leader = leader});
    EXPECT_EQ(a.history().leader, leader);
    PutEdge(*a.graph, 2, 3);
    EXPECT_EQ(a.history().leader, leader);
  }
  ASSERT_OK(Writer(a_).graph->Compact({}, JobControl()));
  EXPECT_EQ(Writer(a_).history().leader, leader);
  ASSERT_OK(BackupStore(FileSystem::Posix(), a_, folder_ / "backups", {}, JobControl()));
  ASSERT_OK(RestoreStore(FileSystem::Posix(), folder_ / "backups", folder_ / "r.rz", std::nullopt,
                         JobControl()));
  Writer restored(folder_ / "r.rz");
  EXPECT_EQ(restored.history(), Writer(a_).history());
  const LeaderState later{.store = leader.store, .commit = 9, .commits = {std::byte{1}}};
  ASSERT_OK(restored.graph->Write(WriteBatch(), {.leader = later}));  // a batch without changes
  EXPECT_EQ(restored.history().leader, later);
}

TEST_F(DivergedCopiesTest, OfVersionOneAreToldApart) {
  Copy();
  PutEdgeOfVersionOne(a_, 1, 2);
  PutEdgeOfVersionOne(b_, 1, 2);
  const HistoryState had = Writer(a_).history();
  EXPECT_TRUE(had.known());
  EXPECT_EQ(Writer(b_).history(), had);
  PutEdgeOfVersionOne(a_, 3, 4);
  PutEdgeOfVersionOne(b_, 4, 3);
  const HistoryState state = Writer(a_).history();
  EXPECT_NE(Writer(b_).history(), state);
  const StorePoint point = Writer(a_).point();
  EXPECT_OK(OpenAt(a_, point));
  EXPECT_STATUS(OpenAt(b_, point), kInvalidArgument);
  // The next write continues from that state.
  for (const Path& path : {a_, b_}) PutEdge(*Writer(path).graph, 5, 6);
  EXPECT_NE(Writer(a_).history(), Writer(b_).history());
  EXPECT_EQ(Writer(a_).store->StateAt(point.sequence).value(), state);
  const HistoryState last = Writer(a_).history();
  ASSERT_OK(Writer(a_).graph->Compact({}, JobControl()));
  EXPECT_EQ(Writer(a_).history(), last);
}

TEST_F(DivergedCopiesTest, DoNotShareAFolderOfBackups) {
  const Path backups = folder_ / "backups";
  const auto back = [&](const Path& path) {
    return BackupStore(FileSystem::Posix(), path, backups, {}, JobControl());
  };
  ASSERT_OK(back(a_));
  Diverge();
  ASSERT_OK(back(a_));
  EXPECT_STATUS(back(b_), kInvalidArgument);
  ASSERT_OK(Writer(a_).graph->Compact({}, JobControl()));
  ASSERT_OK(Writer(b_).graph->Compact({}, JobControl()));
  EXPECT_OK(back(a_));
  EXPECT_STATUS(back(b_), kInvalidArgument);
  // A restored copy can continue the series of backups.
  ASSERT_OK(
      RestoreStore(FileSystem::Posix(), backups, folder_ / "r.rz", std::nullopt, JobControl()));
  PutEdge(*Writer(folder_ / "r.rz").graph, 5, 6);
  EXPECT_OK(back(folder_ / "r.rz"));
  PutEdge(*Writer(a_).graph, 6, 5);
  EXPECT_STATUS(back(a_), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
