#include "gnn/train/accuracy.h"
#include "rhizome/train_options.h"

namespace rhizome {
namespace {

void ExpectSageAccuracy(const std::string& name, double least) {
  const auto data = testing::TestData();
  if (!data) GTEST_SKIP() << "RHIZOME_TEST_DATA is not set; it names a folder with " << name;
  const testing::TempDir folder;
  ASSERT_OK(testing::IngestDataSet(*data, name, folder / "s", {"id", "label", "split", "-"}));
  TrainOptions options;
  options.store = folder / "s";
  options.model = {.kind = "sage",
                   .layers = 2,
                   .hidden = 128,
                   .dropout = 0.5,
                   .normalize_features = true,
                   .no_edges = false};
  options.minibatch()->fanouts = {25, 15};
  options.minibatch()->batch_size = 512;
  options.learning.epochs = 150;
  options.learning.weight_decay = 5e-4;
  options.resources.threads = 2;
  const Result<double> accuracy = testing::MeanTestAccuracy(options, name, 1);
  ASSERT_OK(accuracy);
  EXPECT_GE(*accuracy, least);
}

// Published means over random splits are .824 and .913.
TEST(AccuracyTest, SageOnAmazonComputers) { ExpectSageAccuracy("amazon_computers", 0.80); }
TEST(AccuracyTest, SageOnCoauthorCs) { ExpectSageAccuracy("coauthor_cs", 0.89); }

}  // namespace
}  // namespace rhizome
