#include "cache/feed/task_labels.h"

#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "cache/feed/compute_metrics.h"
#include "cache/feed/score_table.h"
#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_graph.h"
#include "testing/planted_graph.h"
#include "testing/testing.h"

// Tests of ReadTaskLabels and ScoreTable: the task follows from the data type and shape of the
// label array, each task reads its own labels, bad labels are named, and scores may arrive in any
// order.

namespace rhizome {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kTaskVertices = 60;

/// Creates a store with an array `split`, [0, 1, 2, none, 0, ...], and the given arrays.
Status MakeTaskStore(const Path& path, std::vector<ArrayInput> arrays) {
  GraphInput input;
  input.vertex_count = kTaskVertices;
  input.edges.src = {0, 1};
  input.edges.dst = {1, 2};
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  input.arrays = std::move(arrays);
  std::vector<std::uint8_t> split;
  for (std::uint64_t v = 0; v < kTaskVertices; ++v)
    split.push_back(v % 4 == 3 ? 255 : static_cast<std::uint8_t>(v % 4));
  input.arrays.push_back(testing::MakeArray("split", 1, DataType::kUint8, split));
  return testing::AsStatus(
      IngestGraph(FileSystem::Posix(), path, std::move(input), {}, StoreId(), JobControl()));
}

Result<Labels> ReadOf(const Path& path, const std::string& array, std::optional<Task> asked) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(std::as_const(*store)));
  return ReadTaskLabels(*graph, array, "split", asked);
}

void ExpectRefused(const Result<Labels>& labels, const std::vector<std::string>& words) {
  EXPECT_STATUS(labels, kInvalidArgument);
  for (const std::string& word : words) EXPECT_THAT(labels.error().message(), HasSubstr(word));
}

template <typename T>
std::vector<T> Filled(std::size_t columns, T value) {
  return std::vector<T>(kTaskVertices * columns, value);
}

TEST(TaskLabelsTest, TheTaskFollowsTypeAndShape) {
  const auto task_of = [](DataType dtype, std::uint64_t dim, std::optional<Task> asked) {
    ArrayEntry entry;
    entry.name = "label";
    entry.dtype = dtype;
    entry.dim = dim;
    entry.rows = 9;
    const Result<Task> task = TaskOf(entry, asked);
    return task ? std::optional<Task>(*task) : std::nullopt;
  };
  using enum Task;
  EXPECT_EQ(task_of(DataType::kInt64, 1, {}), kMulticlass);
  EXPECT_EQ(task_of(DataType::kInt32, 1, {}), kMulticlass);
  EXPECT_EQ(task_of(DataType::kInt32, 1, kBinary), kBinary);
  EXPECT_EQ(task_of(DataType::kInt32, 1, kMultilabel), std::nullopt);
  EXPECT_EQ(task_of(DataType::kInt32, 1, kRegression), std::nullopt);
  EXPECT_EQ(task_of(DataType::kInt32, 2, {}), std::nullopt);
  EXPECT_EQ(task_of(DataType::kUint8, 5, {}), kMultilabel);
  EXPECT_EQ(task_of(DataType::kUint8, 5, kBinary), std::nullopt);
  EXPECT_EQ(task_of(DataType::kUint8, 1, {}), std::nullopt);
  EXPECT_EQ(task_of(DataType::kUint8, 1, kBinary), kBinary);
  EXPECT_EQ(task_of(DataType::kUint8, 1, kMultilabel), kMultilabel);
  EXPECT_EQ(task_of(DataType::kFloat32, 1, {}), kRegression);
  EXPECT_EQ(task_of(DataType::kFloat32, 7, {}), kRegression);
  EXPECT_EQ(task_of(DataType::kFloat32, 1, kMulticlass), std::nullopt);
  EXPECT_EQ(task_of(DataType::kFloat16, 1, {}), std::nullopt);
}

TEST(TaskLabelsTest, EachTaskReadsItsOwn) {
  const testing::TempDir dir;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::int64_t> bits;
  std::vector<std::uint8_t> flags = Filled<std::uint8_t>(3, 0), one;
  std::vector<float> numbers = Filled<float>(2, 1.5F);
  for (std::uint64_t v = 0; v < kTaskVertices; ++v) {
    bits.push_back(v % 4 == 3 ? -1 : static_cast<std::int64_t>(v % 2));
    one.push_back(v % 4 == 3 ? 255 : static_cast<std::uint8_t>(v % 2));
  }
  flags[5 * 3 + 1] = 1;
  flags[5 * 3 + 2] = 255;
  numbers[7 * 2 + 1] = nan;
  ASSERT_OK(MakeTaskStore(dir / "s", {testing::MakeArray("bits", 1, DataType::kInt64, bits),
                                      testing::MakeArray("one", 1, DataType::kUint8, one),
                                      testing::MakeArray("flags", 3, DataType::kUint8, flags),
                                      testing::MakeArray("num", 2, DataType::kFloat32, numbers)}));
  const auto store = Store::Open(FileSystem::Posix(), dir / "s", Store::Mode::kRead);
  ASSERT_OK(store);
  const auto graph = Graph::Open(std::as_const(**store));
  ASSERT_OK(graph);
  const auto row_of = [&](VertexId v) { return static_cast<std::size_t>(*(*graph)->RowOf(v)); };
  for (const char* name : {"bits", "one"}) {
    const Result<Labels> binary = ReadTaskLabels(**graph, name, "split", Task::kBinary);
    ASSERT_OK(binary);
    EXPECT_EQ(binary->outputs(), 1);
    for (VertexId v = 0; v < static_cast<VertexId>(kTaskVertices); ++v)
      EXPECT_EQ(binary->label[row_of(v)], v % 4 == 3 ? -1 : v % 2);
  }
  const Result<Labels> several = ReadTaskLabels(**graph, "flags", "split", {});
  ASSERT_OK(several);
  EXPECT_EQ(several->task, Task::kMultilabel);
  EXPECT_EQ(several->outputs(), 3);
  EXPECT_EQ(several->flags[row_of(5) * 3 + 1], 1);
  EXPECT_EQ(several->flags[row_of(5) * 3 + 2], kMissingFlag);
  const Result<Labels> regression = ReadTaskLabels(**graph, "num", "split", {});
  ASSERT_OK(regression);
  EXPECT_EQ(regression->outputs(), 2);
  EXPECT_TRUE(std::isnan(regression->values[row_of(7) * 2 + 1]));
  EXPECT_EQ(regression->values[row_of(7) * 2], 1.5F);
  EXPECT_EQ(regression->Members(**graph, Split::kTrain).size(), kTaskVertices / 4);
}

TEST(TaskLabelsTest, BadLabelsAreNamed) {
  const testing::TempDir dir;
  std::vector<std::int64_t> three = Filled<std::int64_t>(1, 1), none = three;
  three[11] = 2;
  none[4] = -1;
  std::vector<std::uint8_t> flags = Filled<std::uint8_t>(3, 1);
  flags[13 * 3 + 2] = 7;
  std::vector<float> numbers = Filled<float>(1, 2), missing = numbers;
  numbers[17] = std::numeric_limits<float>::infinity();
  for (std::uint64_t v = 1; v < kTaskVertices; v += 4)
    missing[v] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_OK(
      MakeTaskStore(dir / "s", {testing::MakeArray("three", 1, DataType::kInt64, three),
                                testing::MakeArray("none", 1, DataType::kInt64, none),
                                testing::MakeArray("flags", 3, DataType::kUint8, flags),
                                testing::MakeArray("num", 1, DataType::kFloat32, numbers),
                                testing::MakeArray("missing", 1, DataType::kFloat32, missing)}));
  ExpectRefused(ReadOf(dir / "s", "three", Task::kBinary),
                {"array three", "vertex 11:", "label 2", "multiclass"});
  ASSERT_OK(ReadOf(dir / "s", "three", {}));
  ExpectRefused(ReadOf(dir / "s", "none", {}), {"vertex 4 ", "training set"});
  ExpectRefused(ReadOf(dir / "s", "none", Task::kBinary), {"vertex 4 ", "training set"});
  ExpectRefused(ReadOf(dir / "s", "flags", {}), {"array flags", "vertex 13:", "column 2 is 7"});
  ExpectRefused(ReadOf(dir / "s", "num", {}), {"array num", "vertex 17:", "infinite"});
  ExpectRefused(ReadOf(dir / "s", "missing", {}), {"array missing", "validation set"});
  ExpectRefused(ReadOf(dir / "s", "num", Task::kMultilabel),
                {"array num", "float32", "multilabel", "`task`"});
  EXPECT_STATUS(ReadOf(dir / "s", "other", {}), kNotFound);
}

/// Returns random labels of rows, without a store.
Labels MakeLabels(Task task, std::size_t rows, std::mt19937_64& random) {
  Labels labels;
  labels.task = task;
  labels.columns = task == Task::kMultilabel || task == Task::kRegression ? 3 : 1;
  labels.classes = task == Task::kMulticlass ? 4 : 2;
  for (std::size_t row = 0; row < rows; ++row) {
    labels.split.push_back(static_cast<Split>(random() % 3));
    if (random() % 5 == 0) labels.split.back() = Split::kNone;
    if (labels.columns == 1)
      labels.label.push_back(
          static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(labels.classes)));
    for (std::size_t c = 0; c < labels.columns && labels.columns > 1; ++c) {
      if (task == Task::kMultilabel)
        labels.flags.push_back(random() % 6 == 0 ? kMissingFlag : random() % 2);
      else
        labels.values.push_back(static_cast<float>(random() % 100));
    }
  }
  return labels;
}

std::vector<std::optional<double>> ValuesOf(const SplitMetrics& metrics) {
  std::vector<std::optional<double>> values;
  for (const MetricValue& value : metrics.values) values.push_back(value.value);
  return values;
}

TEST(ScoreTableTest, MetricsAreThoseOfTheSetInWhateverOrderScoresCome) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::size_t kRows = 200;
  for (const Task task : {Task::kMulticlass, Task::kMultilabel, Task::kBinary, Task::kRegression}) {
    SCOPED_TRACE(TaskName(task));
    const Labels labels = MakeLabels(task, kRows, random);
    const auto outputs = static_cast<std::size_t>(labels.outputs());
    std::vector<float> scores(kRows * outputs);
    for (float& score : scores) score = static_cast<float>(random() % 7) - 3;
    std::vector<Row> order(kRows);
    std::iota(order.begin(), order.end(), Row{0});
    ScoreTable ascending(labels, std::nullopt), shuffled(labels, std::nullopt);
    ScoreTable one_set(labels, Split::kValid);
    ascending.Take(order, scores);
    std::shuffle(order.begin(), order.end(), random);
    for (const Row row : order) {
      const auto of_row =
          std::span(scores).subspan(static_cast<std::size_t>(row) * outputs, outputs);
      shuffled.Take(std::span(&row, 1), of_row);
      one_set.Take(std::span(&row, 1), of_row);
    }
    for (const Split set : {Split::kTrain, Split::kValid, Split::kTest})
      EXPECT_EQ(ValuesOf(ascending.Metrics(set)), ValuesOf(shuffled.Metrics(set)));
    EXPECT_EQ(ValuesOf(ascending.Metrics(Split::kValid)), ValuesOf(one_set.Metrics(Split::kValid)));
    EXPECT_EQ(one_set.Metrics(Split::kTest).vertices, 0u);
    std::uint64_t members = 0, right = 0;
    for (std::size_t row = 0; row < kRows && task == Task::kMulticlass; ++row) {
      if (labels.split[row] != Split::kTest) continue;
      const auto first = scores.begin() + static_cast<std::ptrdiff_t>(row * outputs);
      const auto best = std::max_element(first, first + static_cast<std::ptrdiff_t>(outputs));
      ++members;
      right += best - first == labels.label[row] ? 1 : 0;
    }
    if (task == Task::kMulticlass) {
      EXPECT_EQ(ascending.Metrics(Split::kTest).Of(Metric::kAccuracy),
                static_cast<double>(right) / static_cast<double>(members));
    }
    one_set.Clear();
    EXPECT_FALSE(one_set.Metrics(Split::kValid).values.front().value.has_value());
  }
}

}  // namespace
}  // namespace rhizome
