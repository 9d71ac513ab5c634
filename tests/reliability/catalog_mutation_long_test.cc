#include "reliability/catalog_mutation_testing.h"

namespace rhizome::testing {
namespace {

TEST(CatalogMutationLongTest, AreRefusedOrSayTheSame) { ExpectRefusedOrTheSame(30000); }

}  // namespace
}  // namespace rhizome::testing
