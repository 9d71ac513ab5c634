#include "gnn/train/accuracy.h"
#include "rhizome/sampler.h"
#include "rhizome/train_options.h"

namespace rhizome {
namespace {

/// Trains the GCN of Kipf and Welling (ICLR 2017) with full neighbourhoods on the public split. The
/// settings differ from the paper: 64 hidden units instead of 16; 100 epochs of minibatches with
/// the best validation epoch, instead of up to 200 full-batch epochs with early stopping; weight
/// decay on both layers instead of the first.
void ExpectGcnAccuracy(const std::string& name, double least) {
  const auto data = testing::TestData();
  if (!data) GTEST_SKIP() << "RHIZOME_TEST_DATA is not set; it names a folder with " << name;
  const testing::TempDir folder;
  ASSERT_OK(testing::IngestDataSet(*data, name, folder / "s"));
  TrainOptions options;
  options.store = folder / "s";
  options.model = {.kind = "gcn",
                   .layers = 2,
                   .hidden = 64,
                   .dropout = 0.5,
                   .normalize_features = true,
                   .no_edges = false};
  options.minibatch()->fanouts = {kAllNeighbors, kAllNeighbors};
  options.learning.epochs = 100;
  options.learning.weight_decay = 5e-4;
  options.resources.threads = 1;
  const Result<double> accuracy = testing::MeanTestAccuracy(options, name, 5);
  ASSERT_OK(accuracy);
  EXPECT_GE(*accuracy, least);
}

// The paper reports .815 and .703.
TEST(AccuracyTest, GcnOnCora) { ExpectGcnAccuracy("cora", 0.79); }
TEST(AccuracyTest, GcnOnCiteseer) { ExpectGcnAccuracy("citeseer", 0.67); }

}  // namespace
}  // namespace rhizome
