#include "reliability/catalog_mutation_testing.h"

namespace rhizome::testing {
namespace {

TEST(CatalogMutationTest, AreRefusedOrSayTheSame) { ExpectRefusedOrTheSame(500); }

}  // namespace
}  // namespace rhizome::testing
