#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "reliability/catalog/catalog_mutation.h"
#include "reliability/harness/counts.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// Expects that maliciously changed catalogues with correct checksums are refused or give the same
/// answers as before, that no process ends in an assertion of RocksDB, and that none hangs. `only`:
/// change only files with this text in their names. RHIZOME_CATALOG_MUTATION runs only the case
/// with that seed.
inline void ExpectRefusedOrTheSame(std::uint64_t cases, const std::string& only) {
  std::uint64_t seed = TestSeed() % 1'000'000'000;
  if (const char* only = std::getenv("RHIZOME_CATALOG_MUTATION")) {
    seed = std::strtoull(only, nullptr, 10);
    cases = 1;
  }
  const MutationCounts counts = MutateCatalogs({.seed = seed, .cases = cases, .only = only});
  PrintCount("catalog-mutations", counts.cases);
  PrintCount("catalog-mutations-refused", counts.refused);
  PrintCount("catalog-mutations-same", counts.same);
  PrintCount("catalog-mutations-silent", counts.silent);
  PrintCount("catalog-mutations-died", counts.crashed);
  PrintCount("catalog-mutations-hung", counts.hung);
  EXPECT_EQ(counts.cases, cases);
  EXPECT_EQ(counts.silent, 0U);
  EXPECT_EQ(counts.crashed, 0U);
  EXPECT_EQ(counts.hung, 0U);
}

}  // namespace rhizome::testing
