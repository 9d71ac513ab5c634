// Tests the reliability tests: each seeded mistake of the library (Mutants) is switched on, and the
// check that should find it (Check, run by Catch) must fail.

#include "storage/base/mutant.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "reliability/catalog/catalog_mutation.h"
#include "reliability/crash/crash_run.h"
#include "reliability/damage/damage_run.h"
#include "reliability/faults/fault_run.h"
#include "reliability/harness/counts.h"
#include "reliability/harness/input_check.h"
#include "reliability/harness/rows_check.h"
#include "reliability/live/live_writer.h"
#include "reliability/upkeep/upkeep_run.h"
#include "rhizome/file_system.h"
#include "testing/care.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

/// The check that should find a mistake first.
enum class Check : std::uint8_t {
  kHistory,   // an undisturbed history and the promises of its steps
  kCrash,     // power cuts before the operations of a history
  kFault,     // operations that fail
  kSharing,   // concurrent processes
  kRows,      // rows of vertices after a deletion and a compaction
  kInputs,    // what an ingestion accepts and refuses
  kLive,      // a live writer (live_writer.h) that is not killed
  kFlips,     // flipped bits of files with `place` in their paths
  kLogFlips,  // flipped bits of the log of a store that was not closed
  kInjuries,  // injuries with `place` in their names
  kUpkeep,    // power cuts before the operations of the upkeep `place`
  kCare,      // a complaint of testing/care.h
  kCatalog,   // changed files of RocksDB with `place` in their names and correct checksums
};

struct Mutant {
  std::string name;
  Check check = Check::kCrash;

  /// Name of a history or check, or part of the names of files.
  std::string place;

  /// kFault: only operations with this text in their names. kCrash: instead of a switch in the
  /// library, syncs of paths with this text are omitted.
  std::string at = {};
};

void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

/// The seeded mistakes. Those with a switch have the same name in the library (RHIZOME_MUTANT).
const std::vector<Mutant>& Mutants() {
  static const std::vector<Mutant> mutants = {
      // Changes are acknowledged or referenced before they are durable.
      {"commit is not synced", Check::kCrash, "updates"},
      {"file is not synced", Check::kCrash, "ingestion"},
      {"chunk is not synced", Check::kCrash, "arrays"},
      {"folders are not synced", Check::kCrash, "ingestion"},
      {"folder of an array is not synced", Check::kCrash, "arrays"},
      {"CURRENT moves first", Check::kCrash, "updates"},
      {"FORMAT is not synced", Check::kCrash, "ingestion", "/FORMAT"},
      {"manifest is not synced", Check::kCrash, "arrays", "/000001/MANIFEST-"},
      {"generation is not synced", Check::kCrash, "arrays", "/generations/000001"},
      {"generations are not synced", Check::kCrash, "ingestion", "/generations"},
      {"store folder is not synced", Check::kCrash, "ingestion", "/g.rz"},
      {"catalogue folder is not synced", Check::kCrash, "updates", "/catalog"},
      {"log of RocksDB is not synced", Check::kCrash, "updates", ".log"},
      {"tables of RocksDB are not synced", Check::kCrash, "updates", ".sst"},
      // Steps are done in the wrong order.
      {"commit before its manifest", Check::kCrash, "arrays"},
      {"files go before their manifest", Check::kCrash, "compaction"},
      {"writer keeps the seal", Check::kHistory, "arrays"},
      // Files are left behind, or removed too early.
      {"orphans stay", Check::kCrash, "arrays"},
      {"quarantine is forgotten", Check::kUpkeep, "repair of a partition"},
      {"pin leaks", Check::kHistory, "arrays"},
      {"pinned generation is removed", Check::kSharing, ""},
      {"pinned version is removed", Check::kSharing, ""},
      {"reader holds no pin", Check::kSharing, ""},
      {"writers share the lock", Check::kSharing, ""},
      // Steps are omitted, or done twice.
      {"sequence stands still", Check::kHistory, "updates"},
      {"compaction leaves a commit in the delta", Check::kHistory, "compaction"},
      {"compaction forgets the commits before it", Check::kHistory, "compaction"},
      {"a commit has no state", Check::kHistory, "updates"},
      {"array is published where rows moved", Check::kHistory, "publishing"},
      {"shard is read off by one", Check::kHistory, "arrays"},
      {"rows of deleted vertices belong to live ones", Check::kCrash, "compaction"},
      // Verify or repair does harm.
      {"shortage is damage", Check::kCare, "FaultsAreNoDamage"},
      {"damage is believed at once", Check::kCare, "DamageIsReadTwice"},
      {"repair lets go of the lock", Check::kCare, "RepairKeepsTheLock"},
      {"repair clears scratch", Check::kCare, "RepairKeepsOtherJobs"},
      {"a chunk is lost whole", Check::kCare, "OneRowCostsOneRow"},
      {"shared files are not read", Check::kCare, "RottenSharedFilesAreCopiedAgain"},
      {"a test of the lock is a writer", Check::kCare, "VerifyLetsWritersIn"},
      {"links in a store are followed", Check::kCare, "LinksAreNotFollowed"},
      {"unmarked scratch is removed", Check::kCare, "UnmarkedFoldersStay"},
      {"outputs go into stores", Check::kCare, "OutputsStayOutside"},
      {"a missing file is a wrong name", Check::kCare, "MissingFilesAreDamage"},
      // The store's environment differs from what is assumed.
      {"claimed lengths are believed", Check::kCare, "ClaimedLengthsAreCompared"},
      {"a fork is not noticed", Check::kCare, "ForksAreNoticed"},
      {"a fork's exit waits for the parent's threads", Check::kCare, "ForksMayExit"},
      {"a thread that does not start is done", Check::kCare, "ThreadsThatDoNotStartAreErrors"},
      // Rows go to other vertices.
      {"deleted vertices have rows once they are compacted", Check::kRows, ""},
      {"the type of a row is not checked", Check::kRows, ""},
      {"rows that were put are forgotten", Check::kRows, ""},
      {"lists still name deleted vertices", Check::kLive, ""},
      // Inputs are changed by the ingestion.
      {"vertices that a file does not name have a class", Check::kInputs, ""},
      {"integers beyond their type are rounded", Check::kInputs, ""},
      {"names that the store reserves can be used", Check::kInputs, ""},
      // Errors are ignored.
      {"failed write is forgotten", Check::kFault, "compaction",
       "sync /data/g.rz/generations/000002/MANIFEST"},
      {"failed sync is ignored", Check::kFault, "ingestion",
       "sync /data/g.rz/generations/000001/topology"},
      {"errors of small files are ignored", Check::kFault, "ingestion", "append /data/g.rz/FORMAT"},
      {"short read is taken for whole", Check::kFault, "updates", "read /data/g.rz/generations"},
      // Damage is not detected, or reported where there is none.
      {"blocks are not checked", Check::kFlips, "/topology/"},
      {"row is not checked", Check::kFlips, "/arrays/feat/c."},
      {"manifest is not checked", Check::kFlips, "/000001/MANIFEST-"},
      {"chunk is not compared", Check::kInjuries, "/c.0.0 swapped"},
      {"seal is not compared", Check::kInjuries, "/catalog/MANIFEST-"},
      {"blocks of the catalogue are believed", Check::kCatalog, ".sst"},
      {"the catalogue's MANIFEST is believed", Check::kCatalog, "MANIFEST-"},
      {"batches of the log are believed", Check::kCatalog, ".log"},
      {"an earlier catalogue is shown", Check::kFlips, ".sst"},
      {"damaged log is torn", Check::kLogFlips, ""},
      {"torn log is damage", Check::kCrash, "updates"},
  };
  return mutants;
}

const Scenario& ScenarioOf(const std::string& name) {
  for (const Scenario& scenario : Scenarios())
    if (scenario.name == name) return scenario;
  std::abort();
}

/// Returns how the history differs from the sound program's; empty if the mistake does not show.
std::string LookAtHistory(const Mutant& mutant, const History& sound) {
  const auto history = Record(ScenarioOf(mutant.place));
  if (!history) return history.error().ToString();
  if (history->states != sound.states) return "a reader sees another store than it should";
  return "";
}

constexpr const char* kMistakeOfChild = "RHIZOME_MUTANT_OF_CHILD";

/// Switches a mistake on from the start of this process, if it is the child of a test (kCatalog).
class ChildsMistake : public ::testing::Environment {
 public:
  void SetUp() override {
    if (const char* mistake = std::getenv(kMistakeOfChild)) active_mutant = mistake;
  }
};
const auto* const kChildsMistake = ::testing::AddGlobalTestEnvironment(new ChildsMistake);

std::string Count(std::uint64_t failures, const char* what) {
  return failures == 0 ? "" : std::string(what) + " (the line above repeats it)";
}

std::string Catch(const Mutant& mutant, const History* sound, const SmallStore* store) {
  const std::uint64_t seed = TestSeed();
  switch (mutant.check) {
    case Check::kHistory:
      return LookAtHistory(mutant, *sound);
    case Check::kCrash: {
      const auto history = Record(ScenarioOf(mutant.place));
      if (!history) return history.error().ToString();
      const CrashPlan plan{
          .seed = seed, .draws = 4, .recoveries_one_in = 1 << 20, .stop_at_first = true};
      return Count(RunCrashes(*history, plan).failures, "a power cut");
    }
    case Check::kFault:
      return Count(RunFaults(ScenarioOf(mutant.place), *sound,
                             {.seed = seed, .stop_at_first = true, .at = mutant.at})
                       .failures,
                   "a failed operation");
    case Check::kSharing:
      return CheckSharing().value_or("");
    case Check::kRows:
      return CheckRows().value_or("");
    case Check::kInputs:
      return CheckInputs().value_or("");
    case Check::kLive: {
      const TempDir dir;
      Status status = MakeLiveStore(dir / "g.rz");
      if (status.ok()) status = CheckUndisturbed(dir / "g.rz", 60);
      return status.ok() ? "" : status.ToString();
    }
    case Check::kFlips:
      return Count(
          FlipBits(*store, {.stride = 5, .seed = seed, .only = mutant.place, .stop_at_first = true})
              .silent,
          "a flipped bit");
    case Check::kLogFlips:
      return Count(FlipOpenLogs(*store, 5, seed, /*stop_at_first=*/true).silent, "a flipped bit");
    case Check::kInjuries: {
      std::vector<Injury> injuries = ListInjuries(*store, 16);
      std::erase_if(injuries, [&](const Injury& injury) {
        return injury.name.find(mutant.place) == std::string::npos;
      });
      return Count(Injure(*store, injuries, /*stop_at_first=*/true).silent, "an injured file");
    }
    case Check::kUpkeep: {
      std::vector<Upkeep> upkeeps = Upkeeps();
      std::erase_if(upkeeps, [&](const Upkeep& upkeep) { return upkeep.name != mutant.place; });
      return Count(RunUpkeepCrashes(upkeeps.at(0), {.seed = seed}).failures,
                   "a power cut in a repair");
    }
    case Check::kCare:
      return Complaints().at(mutant.place)().value_or("");
    case Check::kCatalog: {
      ::setenv(kMistakeOfChild, mutant.name.c_str(), /*overwrite=*/1);
      const MutationCounts counts = MutateCatalogs(
          {.seed = seed % 1'000'000, .cases = 3000, .only = mutant.place, .stop_at_first = true});
      ::unsetenv(kMistakeOfChild);
      return Count(counts.crashed + counts.silent + counts.hung, "a changed catalogue");
    }
  }
  return "";
}

class MutantTest : public ::testing::TestWithParam<Mutant> {};

TEST_P(MutantTest, IsCaught) {
  const Mutant& mutant = GetParam();
  const bool of_history = mutant.check == Check::kHistory || mutant.check == Check::kFault;
  const auto sound = of_history ? Record(ScenarioOf(mutant.place)) : History{};
  ASSERT_OK(sound);
  const bool of_files = mutant.check == Check::kFlips || mutant.check == Check::kLogFlips ||
                        mutant.check == Check::kInjuries;
  const auto store = of_files ? MakeSmallStore() : SmallStore{};
  ASSERT_OK(store);
  if (mutant.check != Check::kCrash || mutant.at.empty()) {
    active_mutant = mutant.name;
  } else {
    // A file is selected by a part of its path, a folder by the end of its path.
    const bool of_file = mutant.at.ends_with('-') || mutant.at.starts_with('.');
    FakeFileSystem::LieAboutSyncs([of_file, at = mutant.at](const Path& path) {
      const std::string& text = path.native();
      return of_file ? text.find(at) != text.npos : text.ends_with(at);
    });
  }
  const std::string caught = Catch(mutant, &*sound, &*store);
  active_mutant = "";
  FakeFileSystem::LieAboutSyncs(nullptr);
  EXPECT_FALSE(caught.empty()) << mutant.name << " is not caught";
  PrintCount("mutants-caught", caught.empty() ? 0 : 1);
  std::printf("MUTANT %s: %s\n", mutant.name.c_str(), caught.c_str());
}

// Other tests of the harness show that these checks find nothing without a mistake.
INSTANTIATE_TEST_SUITE_P(Seeded, MutantTest, ::testing::ValuesIn(Mutants()), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

TEST(MutantListTest, HoldsThirty) {
  EXPECT_GE(Mutants().size(), 30U);
  PrintCount("mutants", Mutants().size());
}

}  // namespace
}  // namespace rhizome::testing
