#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "reliability/catalog/catalog_mutation.h"
#include "reliability/harness/counts.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// Catalogues of people who mean harm: whatever they hold behind right checksums, they are refused,
/// or say what they said before; no process ends in an assertion of RocksDB's, and none hangs.
/// `only`: only files with this in their names are changed. RHIZOME_CATALOG_MUTATION: only the case
/// of this seed.
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
