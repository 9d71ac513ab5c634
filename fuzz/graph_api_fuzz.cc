#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "index/generation/graph_builder.h"
#include "input.h"
#include "reliability/harness/rocks_disk.h"
#include "rhizome/graph.h"
#include "rhizome/maintenance.h"
#include "rhizome/verify.h"
#include "seeds.h"
#include "storage/base/check.h"
#include "storage/maintenance/verify_files.h"
#include "testing/update_model.h"

namespace {

using namespace rhizome;
using Mode = rhizome::testing::FakeFileSystem::CrashMode;
using rhizome::testing::StoreDisk;
using rhizome::testing::UpdateModel;

const Path kPath = "/g.rz";
constexpr std::size_t kMaxSteps = 10;  // a step takes milliseconds under the sanitizers

/// A small graph with the array "feat"; the input chooses its kind.
struct Base {
  GraphInput input;
  BuildOptions options;

  explicit Base(fuzzing::Input& in) {
    const std::uint8_t kinds = in.Byte();
    std::mt19937_64 rng(in.Byte());
    constexpr ExternalIdKind kIdKinds[] = {ExternalIdKind::kDense, ExternalIdKind::kInteger,
                                           ExternalIdKind::kString};
    constexpr Direction kDirections[] = {Direction::kBoth, Direction::kOut, Direction::kIn};
    input = rhizome::testing::RandomGraph(rng, {.vertices = 1 + rng() % 8,
                                                .edges = rng() % 16,
                                                .vertex_types = 1U + (kinds & 1U),
                                                .edge_types = 1U + (kinds >> 1 & 3U),
                                                .weighted = (kinds & 8) != 0,
                                                .undirected = (kinds & 16) != 0,
                                                .id_kind = kIdKinds[kinds / 32 % 3]});
    UpdateModel::AddRows(input);
    options.partition.kind = PartitionerKind::kRandom;
    options.partition.partitions = 1U + static_cast<std::uint32_t>(rng() % 3);
    options.directions = kDirections[rng() % 3];
    options.topology_codec = rng() % 2 == 0 ? TopologyCodec::kNone : TopologyCodec::kEliasFano;
  }
};

/// A store on a fake disk, and a model of its contents. Each step performs one operation of the
/// interface. After each step every query is run on the live graph; some steps also query a
/// snapshot or a second reader.
class Run {
 public:
  explicit Run(fuzzing::Input& in) : in_(in), base_(in), model_(base_.input) {
    strings_ = base_.input.id_kind == ExternalIdKind::kString;
    directions_ = base_.options.directions;
    auto store = Store::Create(*disk_, kPath, StoreId{});
    RHIZOME_CHECK(store.has_value());
    const JobControl control;
    RHIZOME_CHECK(BuildGeneration(**store, std::move(base_.input), base_.options, control).ok());
    store->reset();
    Open();
  }

  void Steps(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) Step();
    Verify();
  }

 private:
  void Step() {
    switch (in_.Byte() % 12) {
      case 0:
        snapshot_ = graph_->Snapshot();
        snapshot_model_ = model_;
        break;
      case 1:
        if (snapshot_) snapshot_model_->ExpectAgrees(*snapshot_, directions_);
        snapshot_ = nullptr;
        break;
      case 2:
        Compact();
        break;
      case 3:
        Reopen();
        break;
      case 4:
        Crash();
        break;
      case 5:
        Follow();
        break;
      case 6:
        Verify();
        break;
      default:
        Write();
    }
    model_.ExpectAgrees(*graph_, directions_);
  }

  ExternalId Id() {
    const std::uint8_t drawn = in_.Byte();
    const auto& known = model_.vertices();
    if (drawn % 4 != 0 && !known.empty()) {
      const std::string& id =
          std::next(known.begin(), static_cast<std::ptrdiff_t>(drawn / 4 % known.size()))->first;
      return strings_ ? ExternalId(id) : ExternalId(*ParseCanonicalInteger(id));
    }
    const std::int64_t fresh = 1000 + drawn / 4 % 8;
    return strings_ ? ExternalId("new" + std::to_string(fresh)) : ExternalId(fresh);
  }

  EdgeFields Fields() {
    const std::uint8_t drawn = in_.Byte();
    const auto& types = graph_->edge_types();
    EdgeFields fields;
    fields.type = drawn % 8 == 7 ? "fresh" : types[drawn % types.size()];
    if (graph_->Snapshot()->info().weighted) fields.weight = static_cast<float>(drawn / 8) / 4;
    return fields;
  }

  void Write() {
    WriteBatch batch;
    const std::uint8_t operations = 1 + in_.Byte() % 6;
    for (std::uint8_t i = 0; i < operations; ++i) {
      const std::uint8_t kind = in_.Byte() % 8;
      const ExternalId id = Id();
      if (kind < 2) batch.PutEdge(id, Id(), Fields());
      if (kind == 2) batch.UpsertEdge(id, Id(), Fields());
      if (kind == 3) {
        const std::string type = graph_->edge_types()[in_.Byte() % graph_->edge_types().size()];
        batch.DeleteEdge(id, Id(), type);
      }
      if (kind == 4) batch.DeleteVertex(id);
      if (kind == 5) batch.PutVertex(id, in_.Byte() % 4 == 0 ? "kind" : "");
      if (kind > 5) {
        std::vector<float> row(UpdateModel::kDim);
        for (float& value : row) value = in_.Byte();
        batch.PutRow(id, "feat", std::span<const float>(row));
      }
    }
    const bool sync = in_.Byte() % 2 == 0;
    model_.Apply(batch);
    const auto written = graph_->Write(batch, {.sync = sync, .create_types = true});
    RHIZOME_CHECK(written.has_value());
    if (sync) durable_ = model_;
  }

  void Compact() {
    CompactOptions options;
    const std::uint8_t drawn = in_.Byte();
    options.repartition = drawn % 2 == 1;
    options.partition.kind = drawn % 4 < 2 ? PartitionerKind::kHash2d : PartitionerKind::kRefined;
    options.partition.partitions = drawn / 4 % 4;
    if (drawn % 16 >= 8) options.order = OrderKind::kNatural;
    const JobControl control;
    const auto done = graph_->Compact(options, control);
    RHIZOME_CHECK(done.has_value());
    durable_ = model_;
  }

  void Close() {
    snapshot_ = nullptr;  // it holds the writer's lock
    follower_ = nullptr;
    reader_ = nullptr;
    graph_ = nullptr;
    store_ = nullptr;
  }

  void Open() {
    auto store = Store::Open(*disk_, kPath, Store::Mode::kWrite);
    RHIZOME_CHECK(store.has_value());
    store_ = *std::move(store);
    auto graph = Graph::Open(*store_);
    RHIZOME_CHECK(graph.has_value());
    graph_ = *std::move(graph);
    durable_ = model_;
  }

  void Reopen() {
    Close();
    Open();
  }

  /// Cuts the power while the store is open. Writes that were not synced may be lost; here either
  /// all of them are lost or none.
  void Crash() {
    const bool keep = in_.Byte() % 2 == 0;
    const rhizome::testing::FakeImage image =
        disk_->ImageAfterCrash(keep ? Mode::kKeepUnsynced : Mode::kDropUnsynced, 0);
    Close();
    disk_ = std::make_unique<StoreDisk>(image);
    if (!keep) model_ = durable_;
    Open();
  }

  void Follow() {
    if (reader_ == nullptr) {
      auto reader = Store::Open(*disk_, kPath, Store::Mode::kRead);
      RHIZOME_CHECK(reader.has_value());
      reader_ = *std::move(reader);
      auto follower = Graph::Open(*reader_);
      RHIZOME_CHECK(follower.has_value());
      follower_ = *std::move(follower);
    }
    RHIZOME_CHECK(follower_->Refresh().ok());
    model_.ExpectAgrees(*follower_, directions_);
  }

  void Verify() {
    const JobControl control;
    auto report = VerifyFiles(*disk_, kPath, control);
    RHIZOME_CHECK(report.has_value());
    RHIZOME_CHECK(VerifyGraph(*disk_, kPath, control, *report).ok());
    RHIZOME_CHECK(report->damaged.empty());
  }

  fuzzing::Input& in_;
  Base base_;
  UpdateModel model_;
  UpdateModel durable_ = model_;  ///< the model that may be found after a power cut
  bool strings_ = false;
  Direction directions_ = Direction::kBoth;
  std::unique_ptr<StoreDisk> disk_ = std::make_unique<StoreDisk>();
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Store> reader_;
  std::unique_ptr<Graph> follower_;
  std::shared_ptr<const GraphSnapshot> snapshot_;
  std::optional<UpdateModel> snapshot_model_;
};

}  // namespace

// Runs operations on a store on a fake disk: batches of every kind of change, synced or not,
// snapshots, a second reader, compactions, openings, power cuts, verifications. Every query must
// return the answer of a plain model.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The model reports through GoogleTest; its first failure ends the process.
  static const bool once = [] {
    int argc = 1;
    char name[] = "graph_api_fuzz";
    char* argv[] = {name, nullptr};
    ::testing::InitGoogleTest(&argc, argv);
    return ::testing::FLAGS_gtest_break_on_failure = true;
  }();
  static_cast<void>(once);
  fuzzing::Input input({data, size});
  const std::size_t steps = std::min(kMaxSteps, 1 + size / 8);
  Run(input).Steps(steps);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < 40; ++i) {
    Seed seed(8 + random() % 100);
    for (std::uint8_t& byte : seed) byte = static_cast<std::uint8_t>(random());
    seeds.push_back(std::move(seed));
  }
  return seeds;
}
