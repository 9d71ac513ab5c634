#include "storage/store_crash.h"

namespace rhizome {
namespace {

using testing::CrashMode;
using testing::Stops;
using testing::TestSeed;

/// The disk stops at every operation, and loses the unsynced changes in one of three ways.
class CrashTest : public ::testing::TestWithParam<CrashMode> {};

TEST_P(CrashTest, IngestionIsAllOrNothing) {
  testing::CheckIngestion(Stops(), GetParam(), TestSeed());
}

TEST_P(CrashTest, IngestionMayStopAgainAndAgain) {
  testing::CheckIngestionAgainAndAgain(Stops(), GetParam(), TestSeed());
}

TEST_P(CrashTest, TheNextGenerationComesWholeOrNotAtAll) {
  testing::CheckNextGeneration(Stops(), GetParam(), TestSeed());
}

TEST_P(CrashTest, CleaningUpMayStopAnywhere) {
  testing::CheckCleaningUp(Stops(), GetParam(), TestSeed());
}

TEST_P(CrashTest, PublishingByLinksComesWholeOrNotAtAll) {
  testing::CheckPublishing(Stops(), GetParam(), TestSeed(), /*links=*/true);
}

TEST_P(CrashTest, PublishingByCopiesComesWholeOrNotAtAll) {
  testing::CheckPublishing(Stops(), GetParam(), TestSeed(), /*links=*/false);
}

std::string ModeName(const ::testing::TestParamInfo<CrashMode>& info) {
  constexpr const char* kNames[] = {"Drop", "Keep", "Random"};
  return kNames[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(GenerationWriter, CrashTest,
                         ::testing::Values(CrashMode::kDropUnsynced, CrashMode::kKeepUnsynced,
                                           CrashMode::kRandom),
                         ModeName);

}  // namespace
}  // namespace rhizome
